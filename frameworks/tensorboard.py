"""Reads the TensorBoard events that a trainer wrote."""

from __future__ import annotations

from pathlib import Path


def scalars(folder: Path) -> dict[int, dict[str, float]]:
    """By native step, the scalars below the tag `train/`; where a resumed training repeated a step, the later counts.

    An event file that cannot be read is reported and left out.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found: dict[int, dict[str, tuple[float, float]]] = {}
    for file in sorted(folder.rglob("events.out.tfevents.*")):
        try:
            events = EventAccumulator(str(file), size_guidance={"scalars": 0}).Reload()
            for tag in (tag for tag in events.Tags()["scalars"] if tag.startswith("train/")):
                for event in events.Scalars(tag):
                    of_step = found.setdefault(event.step, {})
                    name = tag.removeprefix("train/")
                    of_step[name] = max(of_step.get(name, (0.0, 0.0)), (event.wall_time, event.value))
        except Exception as error:  # TensorBoard has no error of its own for a damaged file
            print(f"WARNING: {file} cannot be read, so the training log has gaps: {error}", flush=True)
    return {step: {name: value for name, (_, value) in of_step.items()} for step, of_step in sorted(found.items())}

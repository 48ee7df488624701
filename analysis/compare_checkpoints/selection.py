"""What was looked at before a comparison: other checkpoints of the run, and the same pair with fewer samples.

The best of 20 equal checkpoints is "better" in about 19 % of comparisons, and looking after 1, 2, 4, … repeats until
one is significant in 11 to 20 %. So both are said, with what is valid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis import hash_order
from analysis.compare_checkpoints import graded_checkpoint
from analysis.compare_checkpoints.comparison import Comparison
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from contracts import steps
from system.errors import UserError


def chosen_on_half(samples: Path, baseline: GradedCheckpoint) -> tuple[GradedCheckpoint, GradedCheckpoint, str]:
    """The best checkpoint of a run on half of the problems, and both sides on the other half.

    Args:
        samples: of any of the run's checkpoints.
        baseline: the other side.

    Returns:
        Checkpoint and baseline with the problems that did not choose, and a note.
    """
    folders = (
        [folder for step, folder in steps.folders(samples.parent).items() if step > 0] if steps_of(samples) else []
    )
    if len(folders) < 2:
        raise UserError(
            f"--choose-on-half needs a run with several evaluated checkpoints, but {samples} is of none; leave it out",
            code="nothing-to-choose", path=str(samples),
        )  # fmt: skip
    candidates = [graded_checkpoint.read(folder, f"{samples.parent}/{folder.name}") for folder in folders]
    best = max(candidates, key=_accuracy_on_first_half)
    note = (
        f"{best.name} is the best of {len(candidates)} checkpoints on half of the problems; it is compared on the "
        "other half, which did not choose it"
    )
    return _on_half(best, 1), _on_half(baseline, 1), note


def _accuracy_on_first_half(checkpoint: GradedCheckpoint) -> float:
    tables = [table for table in _on_half(checkpoint, 0).tables.values() if len(table)]
    return float(np.mean([table["verdict"].eq("correct").mean() for table in tables]))


def _on_half(checkpoint: GradedCheckpoint, half: int) -> GradedCheckpoint:
    """A checkpoint's samples of half of the problems."""
    tables, settings = {}, {}
    for name, table in checkpoint.tables.items():
        tables[name] = table[hash_order.halves(table) == half].reset_index(drop=True)
        size, whole = tables[name]["problem_id"].nunique(), table["problem_id"].nunique()
        settings[name] = dict(checkpoint.settings[name])
        if settings[name].get("subset") or whole == graded_checkpoint.published_sizes().get(name, whole):
            settings[name]["subset"] = {"size": size, "whole": whole, "chosen": "by halves"}
    return replace(checkpoint, tables=tables, settings=settings)


def with_selection(
    result: Comparison, samples: Path, candidates: int, folder: Path | None, chosen: bool = False
) -> Comparison:
    """The comparison with notes on what was looked at before.

    Args:
        result: of the comparison.
        samples: of its checkpoint.
        candidates: checkpoints over which the level was corrected.
        folder: of the stored comparison, in which an earlier one of the pair may be.
        chosen: whether the checkpoint was chosen on other problems.
    """
    notes, looks = [], _earlier_looks(result, folder)
    others = [step for step in steps.folders(samples.parent) if step > 0] if steps_of(samples) else []
    if candidates > 1:
        notes.append(f"the level is divided by {candidates} candidates, of which this checkpoint was chosen")
    elif len(others) > 1 and not chosen:
        notes.append(
            f"{len(others)} checkpoints of this run are evaluated: if this one was chosen by these scores, the best of "
            f"equal ones is often called better; valid are --candidates {len(others)}, --choose-on-half, and for "
            "recipes --rule chosen"
        )
    if looks and not result.always_valid:
        text = "; ".join(", ".join(f"{name} × {k}" for name, k in look.items()) for look in looks)
        notes.append(
            f"this pair was compared before with other samples ({text}): verdicts after several looks are false more "
            f"often than {100 * result.alpha:g} %; --looks N, with at most N completions per problem, is valid "
            "whenever one stops"
        )
    return replace(result, notes=(*result.notes, *notes), looks=(*looks, _look(result.to_json())))


def steps_of(samples: Path) -> bool:
    """Whether samples are those of one checkpoint of a run."""
    return any(folder.resolve() == samples.resolve() for folder in steps.folders(samples.parent).values())


def _look(stored: Mapping[str, Any]) -> dict[str, int]:
    """The repeats of each benchmark that was compared."""
    lines = [line for line in stored["lines"] if line["repeats"][1]]
    return {line["benchmark"]: int(line["repeats"][1]) for line in lines}


def _earlier_looks(result: Comparison, folder: Path | None) -> tuple[dict[str, int], ...]:
    """The looks at the pair that the stored comparison records, without the one that is now; in the order of time."""
    try:
        stored = json.loads((folder / "comparison.json").read_text(encoding="utf-8")) if folder else {}
        if (stored.get("checkpoint"), stored.get("baseline")) != (result.checkpoint, result.baseline):
            return ()
        looks = [dict(look) for look in stored.get("looks") or [_look(stored)]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # none, or not one of this release
        return ()
    return tuple(look for look in looks if look and look != _look(result.to_json()))

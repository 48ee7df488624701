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

from analysis.compare_checkpoints.comparison import Comparison
from contracts import steps


def with_selection(result: Comparison, samples: Path, candidates: int, folder: Path | None) -> Comparison:
    """The comparison with notes on what was looked at before.

    Args:
        result: of the comparison.
        samples: of its checkpoint.
        candidates: checkpoints over which the level was corrected.
        folder: of the stored comparison, in which an earlier one of the pair may be.
    """
    notes, looks = [], _earlier_looks(result, folder)
    others = [step for step in steps.folders(samples.parent) if step > 0] if steps_of(samples) else []
    if candidates > 1:
        notes.append(f"the level is divided by {candidates} candidates, of which this checkpoint was chosen")
    elif len(others) > 1:
        notes.append(
            f"{len(others)} checkpoints of this run are evaluated: if this one was chosen by these scores, the best of "
            f"equal ones is often called better; valid are --candidates {len(others)}, and for recipes --rule chosen, "
            "which chooses on the other half of the problems"
        )
    if looks:
        text = "; ".join(", ".join(f"{name} × {k}" for name, k in look.items()) for look in looks)
        notes.append(
            f"this pair was compared before with other samples ({text}): verdicts after several looks are false more "
            f"often than {100 * result.alpha:g} %; sampling in rounds (sequential=N) is valid whenever one stops"
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
    return tuple(look for look in looks if look != _look(result.to_json()))

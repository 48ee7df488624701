"""The verdicts that another harness stored beside a completion, by the name of the metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from system.errors import UserError

LETTERS = {"C": True, "I": False}  # inspect_ai's
UNNAMED = "score"  # of files with one verdict, without a name


def verdicts(metrics: Any) -> dict[str, bool]:
    """The metrics that call one completion right or wrong; others, such as a mean or a partial score, are left out."""
    items = metrics.items() if isinstance(metrics, Mapping) else ()
    values = {name: LETTERS.get(value) if isinstance(value, str) else value for name, value in items}
    return {name: bool(value) for name, value in values.items() if value in (0, 1)}


def choose_metric(rows: Sequence[dict[str, Any]], metric: str | None) -> str:
    """Let a metric decide which rows are `right`; by default the first of each row, as they come.

    Args:
        rows: as eval.importers.formats gives them.
        metric: the name of one, as the other harness writes it.

    Returns:
        The percentage of each metric, for the user; empty if there are none.

    Raises:
        UserError: no row has the metric.
    """
    named = [row.get("verdicts", {UNNAMED: row.get("right")}) for row in rows]
    names = dict.fromkeys(name for one in named for name, value in one.items() if value is not None)
    if metric is not None and metric not in names:
        raise UserError(
            f"--metric should be one of the file's, {'; '.join(names) or 'which has none'}, not {metric!r}",
            code="unknown-metric",
            metrics=list(names),
        )
    if metric is not None:
        for row, one in zip(rows, named, strict=True):
            row["right"] = one.get(metric)
    shares = []
    for name in names:
        values = [one[name] for one in named if one.get(name) is not None]
        shares.append(f"{name} {100 * sum(values) / len(values):.2f} (of {len(values)})")
    if not shares:
        return ""
    return f"The file's own verdicts, percent right: {'; '.join(shares)}. Kept: {metric or next(iter(names))}"

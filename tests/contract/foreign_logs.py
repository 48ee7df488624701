"""A training's own files, imported as if they were another's, beside the log that we made of the same training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from frameworks import import_log

EXACT = ("reward_mean", "response_length_mean", "grad_norm")


def check(
    framework: str, files: Sequence[Path], ours: Sequence[dict[str, Any]], columns: Iterable[str] = EXACT
) -> None:
    """Fail unless the imported rows have the numbers of ours.

    Args:
        framework: that wrote the files.
        files: of its own loggers.
        ours: rows of the training log.
        columns: that both have.
    """
    rows = import_log.read(files, framework, "imported/again", max_response_tokens=24)
    assert len(rows) == len(ours) > 0
    for row, own in zip(rows, ours, strict=True):
        for column in columns:
            assert row[column] is not None and row[column] == pytest.approx(own[column], rel=1e-5), column
        assert row["accuracy"] is None and row["run"] == "imported/again"

"""Tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.measures.reasoning import KINDS
from analysis.pages.table_texts import Table, percent
from analysis.results import RunResults, checkpoint_labels


def table(runs: Sequence[RunResults], counts: pd.DataFrame) -> Table:
    """The counts for readers; in percent, with intervals."""

    def interval(name: str) -> list[str]:
        columns = (counts[f"{name}_{part}"] for part in ("share", "low", "high"))
        return [
            "–" if np.isnan(value) else f"{percent(value)} [{percent(low)}, {percent(high)}]"
            for value, low, high in zip(*columns, strict=True)
        ]

    shown = {
        "run": counts["run"],
        "benchmark": counts["benchmark"],
        "checkpoint": checkpoint_labels(runs, counts),
        "right answers": interval("accuracy"),
        KINDS["right_right"]: interval("right_right"),
        KINDS["right_wrong"]: interval("right_wrong"),
        KINDS["wrong_right"]: interval("wrong_right"),
        "right reasoning among right answers": interval("of_right"),
        "lines checkable": [percent(value) for value in counts["checkable"]],
        "completions": counts["completions"].map("{:,}".format),
    }
    return Table("reasoning", counts, pd.DataFrame(shown))


def second_table(runs: Sequence[RunResults], counts: pd.DataFrame) -> Table:
    """The counts of `second_verifiers` for readers."""
    shown = {
        "run": counts["run"],
        "benchmark": counts["benchmark"],
        "checkpoint": checkpoint_labels(runs, counts),
        "other verifier": counts["grader"],
        "answers": counts["answers"].map("{:,}".format),
        "accepted by ours": counts["own"].map("{:,}".format),
        "accepted by the other": counts["other"].map("{:,}".format),
        "by ours alone": counts["only_own"].map("{:,}".format),
        "by the other alone": counts["only_other"].map("{:,}".format),
    }
    return Table("second_verifiers", counts, pd.DataFrame(shown))

"""Sample part of a data set's rows as pandas does: a share of each group, then so many of these in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def sample_rows(groups: Sequence[Any], *, one_in: int, rows: int, seed: int) -> list[int]:
    """The indices of the sampled rows, in the order in which they are sampled.

    `groupby(…).sample(frac=1 / one_in)`, then `sample(n=rows)`, both with the same seed: how MMLU-Pro-1k was made
    (github.com/tongyx361/metagen @6229ee6, notebooks/downsample-mmlu-pro.ipynb).

    Args:
        groups: each row's group.
        one_in: the share of each group is one in so many rows, rounded.
        rows: how many are kept in the end.
        seed: of both samplings.

    Raises:
        ValueError: the groups' shares together have fewer rows.
    """
    import pandas as pd

    frame = pd.DataFrame({"group": pd.Series(list(groups), dtype=object)})
    share = frame.groupby("group").sample(frac=1 / one_in, random_state=seed)
    return [int(position) for position in share.sample(n=rows, random_state=seed).index]

"""An order that nobody chose: by a hash of what things are called, the same on every machine."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import pandas as pd


def key(*names: object) -> str:
    """Where a thing of this name stands in the order. Names may hold lone surrogates, as model text does."""
    return hashlib.sha256("\0".join(map(str, names)).encode("utf-8", "surrogatepass")).hexdigest()


def half(name: str) -> int:
    """Which half a problem, or a cluster of them, is in, 0 or 1, by its name alone."""
    return int(key("half of", name)[:2], 16) % 2


def halves(rows: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Which half each row of graded samples is in: what is chosen on one half of the problems is judged on the other.

    Problems of one cluster (eval.statistics.clusters) are in one half.
    """
    groups = rows["problem_id"].astype(str)
    if "cluster" in rows:
        groups = rows["cluster"].astype(object).where(rows["cluster"].notna(), groups)
    return groups.map({name: half(str(name)) for name in groups.unique()}).to_numpy(np.int64)

"""Clusters of problems: those that share a source text or a template succeed and fail together.

A problem without a cluster is one of its own. Where problems share one, the independent observation is the cluster:
every interval is made of one value per cluster, with the same mean, instead of one per problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Codes = npt.NDArray[np.int64]  # of each problem, the number of its cluster


def of_problems(names: Sequence[str], clusters: Sequence[Any]) -> Codes | None:
    """The clusters' numbers, or None if no two problems share one.

    Args:
        names: of the problems.
        clusters: theirs, of the same length; null where a problem has none.
    """
    own = [(None, name) if pd.isna(cluster) else (cluster, None) for name, cluster in zip(names, clusters, strict=True)]
    codes, distinct = pd.factorize(pd.Series(own, dtype=object))
    return None if len(distinct) == len(codes) else np.asarray(codes, dtype=np.int64)


def of_rows(rows: pd.DataFrame) -> Codes | None:
    """The same of graded rows, by their sorted problems; None where the table knows no clusters."""
    if "cluster" not in rows or rows["cluster"].isna().all():
        return None
    by_problem = rows.groupby("problem_id")["cluster"].first()
    return of_problems(list(by_problem.index), list(by_problem))


def of_part(codes: Codes | None, part: npt.NDArray[np.bool_]) -> Codes | None:
    """The clusters' numbers of some of the problems, from 0."""
    return None if codes is None else np.unique(codes[part], return_inverse=True)[1].astype(np.int64)


def sums(values: npt.NDArray[Any], codes: Codes | None) -> npt.NDArray[Any]:
    """The sum over each cluster, of shape (clusters, …), of values of shape (problems, …); without codes the values."""
    if codes is None:
        return values
    numbers = values.astype(np.int64) if values.dtype == bool else values
    total = np.zeros((int(codes.max()) + 1, *values.shape[1:]), dtype=numbers.dtype)
    np.add.at(total, codes, numbers)
    return total


def linearised(values: npt.NDArray[Any], codes: Codes | None) -> npt.NDArray[np.float64]:
    """One value per cluster whose mean is that of the values over problems, and whose spread gives its variance.

    The mean is a ratio of two sums over clusters, of values and of problems; it is linearised (Cochran 1977, Sampling
    Techniques, equation 6.13), which gives the variance that is robust to clusters of any size.

    Args:
        values: of shape (problems,) or (problems, repeats).
        codes: of each problem, the number of its cluster; None leaves the values as they are.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if codes is None:
        return numbers
    sizes, mean = np.bincount(codes).astype(np.float64), float(numbers.mean())
    column = sizes.reshape(-1, *[1] * (numbers.ndim - 1))
    return np.asarray(mean + (sums(numbers, codes) - mean * column) / sizes.mean(), dtype=np.float64)

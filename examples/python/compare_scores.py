"""Compare the verdicts of two models on the same problems.

    python -m examples.python.compare_scores old.csv new.csv

Each file has a row per problem: its id, and 1 if the answer is right, else 0.
"""

import csv
import sys
from pathlib import Path

import numpy as np

from eval.statistics import paired_difference, significance


def read(file: str) -> dict[str, float]:
    """Right or not, by problem."""
    with Path(file).open(encoding="utf-8", newline="") as rows:
        return {problem: float(right) for problem, right in csv.reader(rows)}


def main(old: str, new: str) -> None:
    """Print the difference with its interval, and whether it is beyond chance."""
    before, after = read(old), read(new)
    if before.keys() != after.keys():
        sys.exit("the files have different problems: no paired comparison")
    first, second = (np.array([[side[problem]] for problem in before]) for side in (before, after))
    difference = paired_difference(first, second)
    p = significance.permutation((second - first)[:, 0].astype(int))
    verdict = "cannot tell" if p > significance.ALPHA else "better" if difference.value > 0 else "worse"
    print(f"{verdict}: {100 * difference.value:+.1f} points, 95 % interval {100 * difference.low:+.1f} to "
          f"{100 * difference.high:+.1f}, p = {p:.3f}, n = {len(before)} problems")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:3])

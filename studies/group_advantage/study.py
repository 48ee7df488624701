"""What a random ε in the group advantage does: the GSM8K notes divide by std + ε with ε = 0.001 · N(0, 1).

    crosszero study group_advantage [--output FOLDER]

Advantages are (r - mean) / (std + ε), with the standard deviation of a sample (n - 1), as in the document. So ε
multiplies all advantages of a group by std / (std + ε): by a number near 1 if the group's rewards are far apart, and by
any number of either sign if they are not. All columns are exact; nothing is drawn or trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from analysis.pages import table_texts
from analysis.pages.table_texts import Table, markdown
from system.command_line import argument_parser
from system.errors import run_command

EPSILON = 0.001  # the GSM8K notes, section 3.3: the standard deviation of ε
Z = float(stats.norm.ppf(0.975))
CHARACTER = 0.001  # the GSM8K notes, count_xml: what a character after the last tag costs


class Effect(NamedTuple):
    """What ε does to the advantages of one group.

    Attributes:
        std: of the rewards.
        constant: factor of the advantages with ε = 0.001.
        low: smallest factor with a random ε, of 95 % of the draws.
        high: the largest one; infinite where std + ε may be 0.
        turned: share of the draws with a negative factor, which rewards what should be discouraged.
    """

    std: float
    constant: float
    low: float
    high: float
    turned: float


def effect(rewards: Sequence[float], epsilon: float = EPSILON) -> Effect:
    """The effect on a group of two or more rewards that are not all equal.

    Args:
        rewards: of the group's completions.
        epsilon: the constant, and the standard deviation of the random one.
    """
    std = float(np.std(rewards, ddof=1))
    if not std > 0:
        raise ValueError("a group needs rewards that differ: equal ones have no advantage, whatever ε is")
    low, high = std / (std + Z * epsilon), std / (std - Z * epsilon) if std > Z * epsilon else float("inf")
    return Effect(std, std / (std + epsilon), low, high, float(stats.norm.cdf(-std / epsilon)))


def groups() -> dict[str, list[float]]:
    """Groups of right and wrong answers, and of answers that differ in characters after the last tag alone."""
    reward_groups = {
        f"{right} of {size} right, rewards ±1": [1.0] * right + [-1.0] * (size - right)
        for size in (4, 8, 64)
        for right in (1, size // 2)
    }
    for characters in (1, 3, 10, 100):
        text = f"8 alike, one with {characters} more character{'s' if characters > 1 else ''} after the last tag"
        reward_groups[text] = [0.5] * 7 + [0.5 - CHARACTER * characters]
    return reward_groups


def _share(value: float) -> str:
    if value >= 0.01:
        return f"{100 * value:.0f} %"
    return "never" if value < 1e-9 else "below 1 %"


def table() -> Table:
    """The effects of all groups."""
    rows = {name: effect(rewards) for name, rewards in groups().items()}
    data = pd.DataFrame([{"group": name, **one._asdict()} for name, one in rows.items()])
    display = pd.DataFrame(
        {
            "group": name,
            "std": f"{one.std:.3g}",
            "ε = 0.001": f"× {one.constant:.3f}",
            "ε = 0.001 · N(0, 1), 95 %": f"× {one.low:.3f} to {one.high:.3f}" if np.isfinite(one.high) else "no limit",
            "wrong sign": _share(one.turned),
        }
        for name, one in rows.items()
    )  # fmt: skip
    return Table("group_advantage", data, display)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for the table as CSV, LaTeX, Markdown and HTML")
    arguments = parser.parse_args()
    result = table()
    if arguments.output:
        table_texts.write(result, arguments.output)
    print(markdown(result.display), end="")


if __name__ == "__main__":
    run_command(main)

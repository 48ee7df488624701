"""One table: what the comparisons decide, before and now, by the product and by a second implementation.

    crosszero study gate_validation table --output FILE.md --mirror ../shared/data    about 15 minutes on one core

The draws are in attacks.py and page_verdicts.py, ± is 1.96 Monte Carlo errors. Item 0 held before as well. Without a
mirror of the data sets item 6 is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

from analysis import comparability
from analysis.pages.table_texts import markdown
from studies.gate_validation import attacks, page_verdicts
from studies.gate_validation.page_verdicts import Line, share
from system import durable
from system.command_line import argument_parser
from system.errors import run_command

COLUMNS = ["item", "what", "setting", "before", "now", "second implementation"]


def verdicts(times: int, seed: int, items: Collection[int]) -> Iterator[Line]:
    """Shares of verdicts."""
    for number, (item, what, setting, draw) in enumerate(attacks.cases()):
        if items and item not in items:
            continue
        random = np.random.default_rng([seed, number])
        counts = np.sum([draw(random) for _ in range(times)], axis=0)
        before, now, second = (share(int(count), times) for count in counts)
        yield item, f"{what} (%)", setting, before, now, second


def lines(times: int, seed: int, mirror: Path | None, items: Collection[int]) -> Iterator[Line]:
    """All lines, or those of some items."""
    yield from verdicts(times, seed, items)
    with mock.patch.object(comparability, "differences", return_value=[]):  # all are drawn alike; to look takes long
        for item, part in page_verdicts.PARTS.items():
            if not items or item in items:
                yield from part(times, np.random.default_rng([seed, 1000 + item]))
    if mirror and (not items or 6 in items):
        yield from page_verdicts.read_before(mirror)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--items", type=int, nargs="*", default=[], help="these alone")
    parser.add_argument("--mirror", type=Path, help="with MATH500 and MATH's training problems")
    arguments = parser.parse_args()
    table = pd.DataFrame(lines(arguments.times, arguments.seed, arguments.mirror, arguments.items), columns=COLUMNS)
    durable.write_text(arguments.output, markdown(table.sort_values("item", kind="stable")))


if __name__ == "__main__":
    run_command(main)

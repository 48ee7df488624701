"""Verdicts of a task's judge on pairs of gold answer and answer, such as before and after an upgrade.

    python -m grading.judge_pairs --pairs PAIRS.jsonl --output VERDICTS.json

Lines of PAIRS have `task`, `gold` and `answer`. The verdicts are a list in their order.
"""

from __future__ import annotations

import json
from pathlib import Path

from grading.verdicts import Item, grade
from system import durable, json_lines
from system.command_line import argument_parser
from system.errors import run_command


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--pairs", type=Path, required=True, metavar="JSONL")
    parser.add_argument("--output", type=Path, required=True, metavar="JSON")
    arguments = parser.parse_args()
    items = [Item(row["task"], row["gold"], f"\\boxed{{{row['answer']}}}") for row in json_lines.read(arguments.pairs)]
    durable.write_text(arguments.output, json.dumps([one.verdict for one in grade(items)]))


if __name__ == "__main__":
    run_command(main)

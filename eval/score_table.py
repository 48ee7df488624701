"""Print stored scores as a table: `python -m eval.score_table scores.parquet [--page index.html]`.

Beside each score are its interval, the problems and repeats behind it, how it was asked for (protocol and prompt), and
the shares of completions that were truncated or gave no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts import provenance, steps, tables
from system.command_line import argument_parser
from system.errors import run_command
from system.text_safety import visible

HEAD = ("step", "benchmark", "accuracy", "95 % interval", "n × k", "truncated", "no answer", "protocol", "prompt")


def records(scores: Path) -> dict[tuple[int, str], dict[str, Any]]:
    """By step and benchmark, how the completions behind a score were asked for and graded."""
    graded = {Path(record["graded"]): record for record in provenance.read(scores).get("scored", [])}
    return {(steps.parse(path.parent.name), path.stem): record for path, record in graded.items()}


def prompt_name(record: Mapping[str, Any]) -> str:
    """The prompt of samples, by the record of their scores; empty for samples made elsewhere."""
    protocol = (record.get("samples") or {}).get("protocol")
    return str(protocol.get("prompt", "")) if isinstance(protocol, dict) else ""


def _cells(row: Mapping[str, Any], prompt: str) -> list[str]:
    """A line of the table."""
    total = row["n_problems"] * row["k_repeats"]
    silent = sum(row[f"n_{verdict}"] for verdict in ("no_answer", "format_error"))
    cut = "unknown" if row["truncated_rate"] is None else f"{100 * row['truncated_rate']:.1f} %"
    return [
        str(row["step"]), row["benchmark"] + (f" ({row['subset']})" if row["subset"] else ""),
        f"{100 * row['avg_at_k']:.1f} %", f"[{100 * row['ci_low']:.1f}, {100 * row['ci_high']:.1f}]",
        f"{row['n_problems']} × {row['k_repeats']}", cut, f"{100 * silent / total:.1f} %", row["protocol"],
        prompt or "–",
    ]  # fmt: skip


def table_text(scores: Path) -> str:
    """The scores of a file as a table; the column of steps is left out where there is one model."""
    rows, by_cell = tables.read(scores, tables.SCORE).to_pylist(), records(scores)
    if not rows:
        return f"{scores}: no scores ({provenance.read(scores).get('ended', 'none were made')})"
    lines = [HEAD, *(_cells(row, prompt_name(by_cell.get((row["step"], row["benchmark"]), {}))) for row in rows)]
    first = 1 if {row["step"] for row in rows} == {0} else 0
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    kinds = {kind for record in by_cell.values() if (kind := provenance.quantisation(record))}
    table = "\n".join(
        visible("  ".join(line[column].ljust(widths[column]) for column in range(first, len(HEAD))).rstrip())
        for line in lines
    )
    return "\n".join([table, *(f"the weights came quantised ({visible(kind)})" for kind in sorted(kinds))])


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("scores", type=Path, nargs="+", help="score tables (eval.score)")
    parser.add_argument("--page", type=Path, nargs="*", default=[], help="pages to name at the end")
    parser.add_argument("--note", action="append", default=[], help="a line between the two")
    arguments = parser.parse_args()
    for scores in arguments.scores:
        if len(arguments.scores) > 1:
            print(f"{scores.parent}:")
        print(table_text(scores))
    for note in arguments.note:
        print(note)
    for scores in arguments.scores:
        print(f"scores: {scores.resolve()}")
    for page in arguments.page:
        print(f"page:   {page.resolve()}")


if __name__ == "__main__":
    run_command(main)

"""A picture of when each job of a workflow ran, from the times that Snakemake keeps of them.

    crosszero timeline --output timeline.png

One bar per job, coloured by rule; short jobs are left out. Run it in the folder in which Snakemake ran.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from analysis.pages import figure_style
from system.command_line import argument_parser
from system.errors import UserError, run_command

METADATA = Path(".snakemake/metadata")
RUN = re.compile(r"/runs/([^/]+/[^/]+)(?:/seed-\d+)?(?:/(stage-\d+|checkpoints/step-\d+))?")
REPORT = re.compile(r"/report/([^/]+)/")


def _job_label(rule: str, output: str) -> str:
    """Such as "train simplerl/qwen2.5-math-7b stage-1"."""
    if match := RUN.search(output):
        return " ".join([rule, match[1], *([Path(match[2]).name] if match[2] else [])])
    if match := REPORT.search(output):
        return f"{rule} {match[1]}"
    return f"{rule} {Path(output).parent.name.split('-')[0] if output.endswith('.stamp') else Path(output).stem}"


def read_jobs(metadata: Path) -> pd.DataFrame:
    """One row per job, in the order of their starts, with one of its outputs; times are seconds since the first start.

    Raises:
        UserError: Snakemake kept nothing in this folder.
    """
    by_hash: dict[int, tuple[str, str, str, float, float]] = {}  # one for all outputs of a job
    for file in sorted(metadata.rglob("*")):
        if not file.is_file():
            continue
        # A long name is cut into folders that begin with "@".
        name = "".join(part.removeprefix("@") for part in file.relative_to(metadata).parts)
        record = json.loads(file.read_text())
        rule, output = record["rule"], base64.b64decode(name).decode()
        times = record["starttime"], record["endtime"]
        by_hash.setdefault(record["job_hash"], (rule, _job_label(rule, output), output, *times))
    if not by_hash:
        raise UserError(
            f"{metadata} should have what Snakemake keeps of its jobs, but has none: run a workflow first",
            code="no-jobs-recorded", path=str(metadata),
        )  # fmt: skip
    table = pd.DataFrame(list(by_hash.values()), columns=["rule", "label", "output", "start", "end"])
    begin = table["start"].min()
    return table.assign(start=table["start"] - begin, end=table["end"] - begin).sort_values("start", ignore_index=True)


def plot_jobs(table: pd.DataFrame, shortest: float, output: Path) -> None:
    """Write the picture.

    Args:
        table: as `read_jobs` returns it.
        shortest: jobs of fewer seconds are left out.
        output: a .png, .svg or .pdf file.
    """
    drawn = table[table["end"] - table["start"] >= shortest]
    rules = list(dict.fromkeys(drawn["rule"]))
    colours = dict(zip(rules, itertools.cycle(figure_style.COLOURS)))
    figure_style.set_style()
    figure, axes = plt.subplots(figsize=(9, 0.9 + 0.24 * len(drawn)), layout="constrained")
    for row, (rule, label, start, end) in enumerate(drawn.drop(columns="output").itertuples(index=False, name=None)):
        axes.barh(row, (end - start) / 60, left=start / 60, color=colours[rule], alpha=0.8)
        axes.text(end / 60, row, f" {label}, {end - start:.0f} s", va="center", fontsize=7)
    axes.set(yticks=[], xlabel="minutes", xlim=(0, table["end"].max() / 60 * 1.35))
    axes.invert_yaxis()
    figure.savefig(output, dpi=150)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--metadata", type=Path, default=METADATA, metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--shortest", type=float, default=5.0, metavar="SECONDS", help="default: %(default)s")
    parser.add_argument("--output", type=Path, required=True, metavar="PICTURE")
    arguments = parser.parse_args()
    table = read_jobs(arguments.metadata)
    plot_jobs(table, arguments.shortest, arguments.output)
    print(f"{len(table)} jobs in {table['end'].max() / 60:.1f} minutes: {arguments.output}")


if __name__ == "__main__":
    run_command(main)

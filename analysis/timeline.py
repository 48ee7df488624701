"""A picture of when each job of a workflow ran, from the times that Snakemake keeps of them.

    python -m analysis.timeline --output timeline.png

One bar per job, coloured by rule; short jobs are left out. Run it in the folder in which Snakemake ran.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from analysis.pages import figure_style
from system.errors import UserError, run_command

METADATA = Path(".snakemake/metadata")
RUN = re.compile(r"/runs/([^/]+/[^/]+)(?:/seed-\d+)?(?:/(stage-\d+|checkpoints/step-\d+))?")
REPORT = re.compile(r"/report/([^/]+)/")


def _label(rule: str, output: str) -> str:
    """Such as "train simplerl/qwen2.5-math-7b stage-1"."""
    if found := RUN.search(output):
        return " ".join([rule, found[1], *([Path(found[2]).name] if found[2] else [])])
    if found := REPORT.search(output):
        return f"{rule} {found[1]}"
    return f"{rule} {Path(output).parent.name.split('-')[0] if output.endswith('.stamp') else Path(output).stem}"


def jobs(metadata: Path) -> pd.DataFrame:
    """One row per job, in the order of their starts, with one of its outputs; times are seconds since the first start.

    Raises:
        UserError: Snakemake kept nothing in this folder.
    """
    found: dict[int, tuple[str, str, str, float, float]] = {}  # one for all outputs of a job
    for file in sorted(metadata.rglob("*")):
        if not file.is_file():
            continue
        # A long name is cut into folders that begin with "@".
        name = "".join(part.removeprefix("@") for part in file.relative_to(metadata).parts)
        record = json.loads(file.read_text())
        rule, output = record["rule"], base64.b64decode(name).decode()
        times = record["starttime"], record["endtime"]
        found.setdefault(record["job_hash"], (rule, _label(rule, output), output, *times))
    if not found:
        raise UserError(f"{metadata} should have what Snakemake keeps of its jobs, but has none: run a workflow first")
    table = pd.DataFrame(list(found.values()), columns=["rule", "label", "output", "start", "end"])
    begin = table["start"].min()
    return table.assign(start=table["start"] - begin, end=table["end"] - begin).sort_values("start", ignore_index=True)


def draw(table: pd.DataFrame, shortest: float, output: Path) -> None:
    """Write the picture.

    Args:
        table: as `jobs` returns it.
        shortest: jobs of fewer seconds are left out.
        output: a .png, .svg or .pdf file.
    """
    shown = table[table["end"] - table["start"] >= shortest]
    rules = list(dict.fromkeys(shown["rule"]))
    colours = dict(zip(rules, itertools.cycle(figure_style.COLOURS)))
    figure_style.set_style()
    figure, axes = plt.subplots(figsize=(9, 0.9 + 0.24 * len(shown)), layout="constrained")
    for place, (rule, label, start, end) in enumerate(shown.drop(columns="output").itertuples(index=False, name=None)):
        axes.barh(place, (end - start) / 60, left=start / 60, color=colours[rule], alpha=0.8)
        axes.text(end / 60, place, f" {label}, {end - start:.0f} s", va="center", fontsize=7)
    axes.set(yticks=[], xlabel="minutes", xlim=(0, table["end"].max() / 60 * 1.35))
    axes.invert_yaxis()
    figure.savefig(output, dpi=150)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metadata", type=Path, default=METADATA, metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--shortest", type=float, default=5.0, metavar="SECONDS", help="default: %(default)s")
    parser.add_argument("--output", type=Path, required=True, metavar="PICTURE")
    arguments = parser.parse_args()
    table = jobs(arguments.metadata)
    draw(table, arguments.shortest, arguments.output)
    print(f"{len(table)} jobs in {table['end'].max() / 60:.1f} minutes: {arguments.output}")


if __name__ == "__main__":
    run_command(main)

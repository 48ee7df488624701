"""Drawings in SVG: counts beside a document's (results/reference/svg_drawings.csv), and a sheet of what models drew.

The sheet holds pixels alone, made by the task in processes with limits, so that no code of a model reaches a page.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from functools import cache

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from analysis.pages.figure_style import WIDTH, broken
from analysis.pages.table_texts import Table, percent
from analysis.reference import DRAWINGS, read_csv, source
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults
from analysis.statistics.mean_intervals import mean
from system.text_safety import visible
from tasks import registry

MOST_RUNS, MOST_ROWS, COLUMNS = 4, 24, 16
CELL, FRAME = 64, 3  # pixels of a picture, and of the frame around it
LINE = 30  # characters of a row's words, which have two lines
RIGHT, WRONG, NOTHING = (64, 131, 254), (255, 158, 7), (224, 224, 224)  # frames; the ground where nothing is drawn
Pixels = npt.NDArray[np.uint8]
ALL_PROMPTS = "mean over the prompts drawn (%)"


def success_share(cell: str) -> float:
    """The share of successes in a cell such as 3/16; NaN if nothing was drawn."""
    if not cell:
        return float("nan")
    successes, draws = map(int, cell.split("/"))
    return successes / draws


def success_counts(run: RunResults, step: int) -> dict[str, str]:
    """Successes and draws, such as 3/16, of a checkpoint on each printed prompt that it was given.

    Problems name the printed prompt in `meta.printed`; what could not be judged is left out.
    """
    counts: dict[str, str] = {}
    for benchmark, problems in run.problem_rows.items():
        rows = run.rows(step, benchmark)
        for name, verdicts in rows[rows["verdict"] != "ungradable"].groupby("problem_id")["verdict"]:
            if prompt := problems[str(name)].meta.get("printed"):
                counts[str(prompt)] = f"{(verdicts == 'correct').sum()}/{len(verdicts)}"
    return counts


def drawings_table(runs: Sequence[RunResults] = ()) -> Table:
    """Successes and draws of each model on each prompt as printed, and each model's mean over prompts.

    Models drew different prompts, so that their means are not comparable. Checkpoints that drew the same prompts, and
    were judged by geometry, are further columns.

    Args:
        runs: of whose checkpoints the first and the last are shown.
    """
    printed = read_csv(DRAWINGS, text=True).fillna("").drop(columns="line").set_index("prompt")
    for run in runs:
        for step in dict.fromkeys((run.steps[0], run.last)):
            if counts := success_counts(run, step):
                printed[f"{run.display_name}, {run.label(step)}"] = [
                    counts.get(str(name), "") for name in printed.index
                ]
    shares = printed.map(success_share)
    parts = {model: mean(column.dropna().to_numpy()) for model, column in shares.items()}
    means = {
        model: f"{percent(part.value)} [{percent(max(part.low, 0))}, {percent(min(part.high, 1))}]"
        for model, part in parts.items()
    }
    texts = pd.concat([printed.replace("", "–"), pd.DataFrame(means, index=[ALL_PROMPTS])])
    return Table("svg_drawings", shares.reset_index(), texts.rename_axis("prompt").reset_index())


def runs_that_draw(runs: Sequence[RunResults]) -> list[tuple[RunResults, str]]:
    """The runs and benchmarks whose answers are drawings, the first of them."""
    sheets = []
    for run in runs:
        for name, problems in run.problem_rows.items():
            module = registry.get(next(iter(problems.values())).task).picture_module() if problems else None
            sheets += [(run, name)] * hasattr(module, "png")
    return sheets[:MOST_RUNS]


def plot_sheets(sheets: Sequence[tuple[RunResults, str]]) -> Figure:
    """The sheets below each other, of the last checkpoint of each run.

    Args:
        sheets: as `runs_that_draw` returns.
    """
    rendered = [_sheet(run, name) for run, name in sheets]
    heights = [len(labels) for labels, _ in rendered]
    drawing, grid = plt.subplots(
        len(rendered), figsize=(WIDTH, 0.36 * sum(heights) + 0.4 * len(rendered)), squeeze=False, height_ratios=heights
    )
    for axes, (run, name), (labels, pixels) in zip(grid[:, 0], sheets, rendered, strict=True):
        axes.imshow(pixels, aspect="equal", interpolation="nearest")
        side = CELL + 2 * FRAME
        axes.set_yticks([side * (row + 0.5) for row in range(len(labels))], labels)
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.set_title(broken(f"{run.display_name}: {name}, {run.label(run.last)}"))
    return drawing


def _sheet(run: RunResults, name: str) -> tuple[list[str], Pixels]:
    """The words of each row, and its pixels."""
    problems = run.problem_rows[name]
    rows = run.rows(run.last, name)
    problem_ids = list(dict.fromkeys(rows["problem_id"]))[:MOST_ROWS]
    labels, lines = [], []
    for problem_id in problem_ids:
        samples = rows[rows["problem_id"] == problem_id].sort_values("repeat").head(COLUMNS).to_dict("records")
        task = problems[problem_id].task
        cells = [_cell(task, one["answer"], one["verdict"] == "correct") for one in samples]
        cells += [np.full_like(cells[0], 255)] * (COLUMNS - len(cells))
        lines.append(np.concatenate(cells, axis=1))
        meta = problems[problem_id].meta
        question = visible(str(meta.get("printed") or problems[problem_id].question))
        labels.append("\n".join(textwrap.wrap(question, LINE, max_lines=2, placeholder=" …")))
    return labels, np.concatenate(lines, axis=0)


def _cell(task: str, answer: str | None, right: bool) -> Pixels:
    """A picture of CELL pixels in its frame."""
    cell = np.full((CELL + 2 * FRAME, CELL + 2 * FRAME, 3), RIGHT if right else WRONG, np.uint8)
    cell[FRAME:-FRAME, FRAME:-FRAME] = NOTHING
    pixels = None if pd.isna(answer) else _pixels(task, answer)
    if pixels is not None:
        height, width = pixels.shape[:2]
        scale = CELL / max(height, width)
        down, across = (np.arange(max(int(size * scale), 1)) / scale for size in (height, width))
        small = pixels[down.astype(int).clip(0, height - 1)][:, across.astype(int).clip(0, width - 1)]
        top, left = FRAME + (CELL - len(small)) // 2, FRAME + (CELL - small.shape[1]) // 2
        cell[top : top + len(small), left : left + small.shape[1]] = small
    return cell


@cache
def _pixels(task: str, answer: str) -> Pixels | None:
    """The picture of an answer on white; None if it cannot be drawn."""
    module = registry.get(task).picture_module()
    png = module.png(answer) if module else None
    if png is None:
        return None
    rgba = np.asarray(matplotlib.image.imread(io.BytesIO(png), format="png"), float)
    colour, alpha = rgba[..., :3], rgba[..., 3:] if rgba.shape[-1] == 4 else np.ones((*rgba.shape[:2], 1))
    return np.asarray(np.rint(255 * (colour * alpha + 1 - alpha)), np.uint8)


def content(report: ReportData) -> Content:
    """The sheet, where a run drew, and the table."""
    sheets = runs_that_draw(report.runs)
    return Content(
        [drawings_table(report.runs)],
        {"contact_sheet": plot_sheets(sheets)} if sheets else {},
        {"source": source(DRAWINGS), "draws": bool(sheets)},
    )


SECTION = Section(
    order=320,
    content=content,
    tables={
        "svg_drawings": (
            "Drawings in SVG by 13 models as printed, judged by eye, and by this page's runs, judged by geometry: "
            "successes and draws per prompt, and the mean over the prompts drawn."
        )
    },
    figures={
        "contact_sheet": (
            "What the models drew, at the last checkpoint: a row for each prompt, a picture for each draw. Blue "
            "frames mark pictures that keep the rule of geometry, orange ones those that do not; grey is no drawing. "
            "Look at pictures that are good to the eye and refused, and the other way round."
        )
    },
    numbers={"contact_sheet": "svg_drawings"},
    text="""\
{{ figure("contact_sheet") }}
{% if draws %}<details><summary>Drawings in SVG by 13 models</summary>
{{ table("svg_drawings", "Successes and draws as printed, judged by eye, and behind them those of the runs on this page,
judged by geometry (benchmark svg_document). Models drew different prompts, so their means are not comparable.", 1) }}
<p class="soft">{{ source }}</p>
</details>{% endif %}
""",
)

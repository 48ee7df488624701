"""What models drew: a sheet of pictures, a row for each problem, framed by the verdict.

It holds pixels alone, made by the task in processes with limits, so that no code of a model reaches a page.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from functools import cache

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from analysis.pages.figure_style import WIDTH, broken
from analysis.results import RunResults
from system.text_safety import visible
from tasks import registry

NAME = "contact_sheet"
MOST_RUNS, MOST_ROWS, COLUMNS = 4, 24, 16
CELL, FRAME = 64, 3  # pixels of a picture, and of the frame around it
LINE = 30  # characters of a row's words, which have two lines
RIGHT, WRONG, NOTHING = (64, 131, 254), (255, 158, 7), (224, 224, 224)  # frames; the ground where nothing is drawn
Pixels = npt.NDArray[np.uint8]


def drawn(runs: Sequence[RunResults]) -> list[tuple[RunResults, str]]:
    """The runs and benchmarks whose answers are drawings, the first of them."""
    found = []
    for run in runs:
        for name, problems in run.problem_rows.items():
            module = registry.get(next(iter(problems.values())).task).picture_module() if problems else None
            found += [(run, name)] * hasattr(module, "png")
    return found[:MOST_RUNS]


def figure(sheets: Sequence[tuple[RunResults, str]]) -> Figure:
    """The sheets below each other, of the last checkpoint of each run.

    Args:
        sheets: what `drawn` found.
    """
    made = [_sheet(run, name) for run, name in sheets]
    heights = [len(words) for words, _ in made]
    drawing, places = plt.subplots(
        len(made), figsize=(WIDTH, 0.36 * sum(heights) + 0.4 * len(made)), squeeze=False, height_ratios=heights
    )
    for axes, (run, name), (words, pixels) in zip(places[:, 0], sheets, made, strict=True):
        axes.imshow(pixels, aspect="equal", interpolation="nearest")
        side = CELL + 2 * FRAME
        axes.set_yticks([side * (row + 0.5) for row in range(len(words))], words)
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.set_title(broken(f"{run.display_name}: {name}, {run.label(run.last)}"))
    return drawing


def _sheet(run: RunResults, name: str) -> tuple[list[str], Pixels]:
    """The words of each row, and its pixels."""
    problems = run.problem_rows[name]
    rows = run.rows(run.last, name)
    asked = list(dict.fromkeys(rows["problem_id"]))[:MOST_ROWS]
    words, lines = [], []
    for problem_id in asked:
        samples = rows[rows["problem_id"] == problem_id].sort_values("repeat").head(COLUMNS).to_dict("records")
        task = problems[problem_id].task
        cells = [_cell(task, one["answer"], one["verdict"] == "correct") for one in samples]
        cells += [np.full_like(cells[0], 255)] * (COLUMNS - len(cells))
        lines.append(np.concatenate(cells, axis=1))
        meta = problems[problem_id].meta
        asked_for = visible(str(meta.get("printed") or problems[problem_id].question))
        words.append("\n".join(textwrap.wrap(asked_for, LINE, max_lines=2, placeholder=" …")))
    return words, np.concatenate(lines, axis=0)


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
    made = module.png(answer) if module else None
    if made is None:
        return None
    rgba = np.asarray(matplotlib.image.imread(io.BytesIO(made), format="png"), float)
    colour, alpha = rgba[..., :3], rgba[..., 3:] if rgba.shape[-1] == 4 else np.ones((*rgba.shape[:2], 1))
    return np.asarray(np.rint(255 * (colour * alpha + 1 - alpha)), np.uint8)

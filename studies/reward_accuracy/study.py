"""How exact must a reward be? Gain against the reward's bias and variance: `snakemake study_reward_accuracy`.

    crosszero study reward_accuracy study --results results/demo --seeds 0 1 2 --output FOLDER [--tasks code …]

Zhang's post (results/reference/claims.yaml) finds that more exact rewards do not train better, without a known truth.
Here the settings of a sweep differ in the error of the reward alone (reward_accuracy.yaml), and the error is measured
on the policy's own completions. FOLDER gets index.html, a figure for each task, and the tables
`reward_accuracy_settings`, `…_fits`, `…_points` and `…_claims`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from analysis.claims.verdicts import CANNOT_TELL, CONTRADICTED, NOT_MEASURED, SUPPORTED
from analysis.pages import page, table_texts
from analysis.pages.table_texts import Table, interval_columns, interval_text, percent, points
from contracts.run_file import SCALES
from eval.statistics import Estimate
from studies.reward_accuracy import claim_verdicts
from studies.reward_accuracy.claim_verdicts import Claimed
from studies.reward_accuracy.dials import AGREEMENT, BIAS, MEAN_SQUARED, VARIANCE, Dial, Studied, read
from studies.reward_accuracy.figure import UNIT, draw, per_unit
from studies.reward_accuracy.gain_fit import KEPT, Fit, Knee
from studies.reward_accuracy.runs import chosen
from system import durable
from system.command_line import argument_parser
from system.errors import run_command

SHOWN = {BIAS: "bias²", VARIANCE: "variance", MEAN_SQUARED: "squared error", AGREEMENT: "agreement"}
FITS = ((MEAN_SQUARED,), (BIAS, VARIANCE), (AGREEMENT,))
PATHS = {"": "all", "bias": "those with more bias", "variance": "those with more variance"}
ACCURACY = "rewards-accuracy-alone"  # the claim that the sentence answers
ANSWERS = {
    CONTRADICTED: "A more exact reward does train better where the truth is known",
    SUPPORTED: "A more exact reward does not train better, even where the truth is known",
    CANNOT_TELL: "Whether a more exact reward trains better cannot be told by these trainings",
    NOT_MEASURED: "Whether a more exact reward trains better is not measured by these tasks",
}


def _three(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}".replace("-", "−")


def _rate(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _interval(estimate: Estimate, form: Callable[[float], str]) -> str:
    return "–" if math.isnan(estimate.value) else interval_text(estimate, form)


def settings_table(studied: Sequence[Studied]) -> Table:
    """Per task and setting: the error of the reward at the start and at the end, the gain, and the cost."""
    data, display_rows = [], []
    for one_task in studied:
        for dial in one_task.dials:
            errors = {(name, end): dial.error(name, end) for end in (False, True) for name in SHOWN}
            less = None if dial is one_task.exact else one_task.less(dial, one_task.exact)
            columns = {f"{name}_{'end' if end else 'start'}": one for (name, end), one in errors.items()}
            data.append(
                {
                    "task": one_task.task.name, "setting": dial.number, "reward": dial.label, "extreme": dial.extreme,
                    "trainings": len(dial.runs), **interval_columns({**columns, "gain": dial.gain, "less_exact": less}),
                    "completions_per_second": dial.cost.completions, "draws_per_second": dial.cost.draws,
                }
            )  # fmt: skip
            display_rows.append(
                {
                    "task": one_task.task.title,
                    "reward": dial.label,
                    "seeds": str(len(dial.runs)),
                    **{f"{label}, start": _interval(errors[name, False], _three) for name, label in SHOWN.items()},
                    **{f"{label}, end": _interval(errors[name, True], _three) for name, label in SHOWN.items()},
                    "gain (points)": interval_text(dial.gain, points),
                    "less exact (points)": interval_text(less, points) if less else "–",
                    "completions a second": _rate(dial.cost.completions),
                    "rollouts or tests a second": _rate(dial.cost.draws),
                }
            )
    return Table("reward_accuracy_settings", pd.DataFrame(data), pd.DataFrame(display_rows))


def fits_table(studied: Sequence[Studied]) -> Table:
    """Per task: the slopes of the gain over the error at the start."""
    data, display_rows = [], []
    for one_task in studied:
        for measures in FITS:
            fitted = one_task.fit(*measures)
            for name in measures:
                slope = fitted.slopes.get(name) if fitted else None
                over = " and ".join(SHOWN[one] for one in measures)
                data.append(
                    {"task": one_task.task.name, "fit": over, "error": name, **interval_columns({"slope": slope}),
                     "settings": fitted.settings if fitted else 0,
                     "explained": fitted.explained if fitted else math.nan,
                     "leverage": fitted.leverage if fitted else math.nan,
                     **interval_columns({"ratio": fitted.ratio if fitted else None})}
                )  # fmt: skip
                display_rows.append(
                    {
                        "task": one_task.task.title,
                        "fitted over": over,
                        "slope of": SHOWN[name],
                        f"points per {UNIT}": interval_text(per_unit(slope), points) if slope else "cannot be fitted",
                        "settings": str(fitted.settings) if fitted else "–",
                        "spread explained (%)": percent(fitted.explained) if fitted else "–",
                        "largest leverage": leverage_text(one_task.fitted_dials(measures), fitted),
                        "first over second slope": ratio_text(fitted),
                    }
                )
    return Table("reward_accuracy_fits", pd.DataFrame(data), pd.DataFrame(display_rows))


def leverage_text(dials: Sequence[Dial], fitted: Fit | None) -> str:
    """The largest leverage, and of which setting: with one near 1, that setting decides the slope."""
    return f"{fitted.leverage:.2f}, {dials[fitted.hangs_on].label}" if fitted else "–"


def ratio_text(fitted: Fit | None) -> str:
    """How many times the first of two slopes is the second."""
    if fitted is None or fitted.ratio is None:
        return "–"
    if not math.isfinite(fitted.ratio.high):
        return "not known: the second may be 0"
    return interval_text(fitted.ratio, "{:.1f}".format)


def point_text(dials: Sequence[Dial], knee: Knee | None) -> str:
    """The error up to which 90 % of the exact reward's gain are kept, in words."""
    if not dials:
        return "no such setting"
    if knee is None:
        return "the exact reward is not seen to train anything"
    if knee.enough is None:
        return f"none: no setting is seen to keep {100 * KEPT:.0f} % of the exact reward's gain"
    dial = dials[knee.enough]
    text = f"{dial.label} (squared error {_three(dial.error(MEAN_SQUARED).value)})"
    return f"{text}, the least exact that was tried" if knee.all_kept else text


def points_table(studied: Sequence[Studied]) -> Table:
    """Per task: the error up to which 90 % of the gain are kept, over all settings and over kinds of error."""
    rows = []
    for one_task in studied:
        for mostly, path_label in PATHS.items():
            dials, knee = one_task.knee(mostly)
            enough = dials[knee.enough] if knee and knee.enough is not None else None
            rows.append(
                {
                    "task": one_task.task.title,
                    "settings": path_label,
                    f"{100 * KEPT:.0f} % of the gain are kept up to": point_text(dials, knee),
                    "squared error": _three(enough.error(MEAN_SQUARED).value) if enough else "–",
                }
            )
    frame = pd.DataFrame(rows)
    return Table("reward_accuracy_points", frame, frame)


def sentences(studied: Sequence[Studied], claimed: Sequence[Claimed]) -> list[str]:
    """The sentence that answers the document, then one for each task."""
    verdict = next(one.verdict for one in claimed if one.name == ACCURACY)
    parts = []
    for one_task in studied:
        less = one_task.less(one_task.exact, one_task.least_exact)
        parts.append(f"{one_task.task.title} {interval_text(less, points)}")
    answer = (
        f"{ANSWERS[verdict]}: the exact reward gains, in points beside the least exact one that was tried, "
        f"{'; '.join(parts)}."
    )
    return [answer, *map(_of_task, studied)]


def _of_task(one_task: Studied) -> str:
    least, fitted = one_task.least_exact, one_task.fit(BIAS, VARIANCE)
    slopes = [
        f"{interval_text(per_unit(slope), points)} for {UNIT} of {SHOWN[name]}"
        for name, slope in (fitted.slopes.items() if fitted else ())
    ]
    return (
        f"{one_task.task.title}: {interval_text(one_task.exact.gain, points)} points with the exact reward, "
        f"{interval_text(least.gain, points)} with the least exact one ({least.label}, squared error "
        f"{_three(least.error(MEAN_SQUARED).value)}). {'Points: ' + ', '.join(slopes) + '. ' if slopes else ''}"
        f"{100 * KEPT:.0f} % of the exact reward's gain are kept up to: {point_text(*one_task.knee())}."
    )


def write(studied: Sequence[Studied], seeds: Sequence[int], scale: str, folder: Path) -> str:
    """Write the tables, the figures and the page; return the sentences as text.

    Args:
        studied: the tasks.
        seeds: the configured training seeds.
        scale: of the trainings.
        folder: for all of them.
    """
    claimed = claim_verdicts.decided({one_task.task.name: one_task for one_task in studied})
    result_tables = [settings_table(studied), fits_table(studied), points_table(studied)]
    result_tables.append(claim_verdicts.claims_table(claimed))
    for table in result_tables:
        table_texts.write(table, folder)
    figures = {}
    for one_task in studied:
        name = f"reward_accuracy_{one_task.task.name}"
        figures[name] = {
            "title": one_task.task.title,
            "drawing": page.inline_svg(draw(one_task, folder), name, one_task.task.title),
        }
    said = sentences(studied, claimed)
    settings, fits, knees, claims = (page.plain(table.display) for table in result_tables)
    text = page.environment(Path(__file__).parent).get_template("study_reward_accuracy.html.j2").render(
        css=page.css(), sentences=said, figures=figures, settings=settings, fits=fits, points=knees, claims=claims,
        seeds=seeds, scale=scale, kept=f"{100 * KEPT:.0f}",
    )  # fmt: skip
    durable.write_text(folder / "index.html", text)
    return "\n".join([*said, *(f"{one.verdict}: {one.claim}" for one in claimed), str(folder / "index.html")])


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the results of one scale, such as results/demo")
    parser.add_argument("--scale", choices=SCALES, default="demo", help="of the results")
    parser.add_argument("--seeds", type=int, nargs="+", required=True, metavar="SEED")
    parser.add_argument("--tasks", nargs="+", default=(), help="default: all of the study")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    arguments = parser.parse_args()
    studied = [
        read(task, arguments.scale, task.seeds(arguments.seeds), arguments.results) for task in chosen(arguments.tasks)
    ]
    print(write(studied, arguments.seeds, arguments.scale, arguments.output))


if __name__ == "__main__":
    run_command(main)

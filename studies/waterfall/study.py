"""Where the difference of two frameworks comes from, one cause at a time: `snakemake study_waterfall`.

    crosszero study waterfall study train --stage sampler --seed 0 --problems FILE --model FOLDER \\
        --benchmarks FOLDER --work FOLDER --output FOLDER
    crosszero study waterfall study page --results FOLDER --seeds 0 1 2 3 4 --output FOLDER

The first stage is the recipe's run through one framework. Each later one trains through the other and takes one thing
less from it (studies/lockstep/fixed_rollout_training.py), until nothing is left but the other's own training;
waterfall.yaml lists them. `train` trains one stage with one seed and has its last checkpoint answer the run's
benchmarks; `page` needs these stored answers alone.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.compare_recipes import training_runs
from analysis.pages import figure_style
from analysis.pages.table_texts import interval_columns, interval_text, markdown, percent, points
from analysis.statistics.recipe_difference import mean_over_seeds
from contracts.run_file import ROOT
from envs.build import python
from eval import commands
from eval.run_settings import protocol_of
from eval.statistics import Estimate
from recipes.runs import load_run
from studies.waterfall.stages import FEWEST, FROM, RECORDED, REPLAYED, STAGES, TO, Stage
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command

Floats = npt.NDArray[np.float64]
Answers = Mapping[str, Floats]  # by benchmark, accuracies of shape (seeds, problems)
RECORDING = "rollouts.jsonl"
WITHOUT_THE_FIRST = "all of them"


class Part(NamedTuple):
    """What one stage adds to the difference.

    Attributes:
        name: for readers.
        change: over the seeds, as a fraction.
        by_seed: the same of each seed.
    """

    name: str
    change: Estimate
    by_seed: Floats


class Waterfall(NamedTuple):
    """The parts of the last stage's difference from the first one's.

    Attributes:
        first: accuracy of the first stage.
        parts: one for each later stage; their values add up to the whole's.
        whole: the last stage's accuracy less the first one's.
        seed: of the published comparison.
        of_seed: its own difference, between the same two runs.
    """

    first: Estimate
    parts: list[Part]
    whole: Part
    seed: int
    of_seed: float

    @property
    def residual(self) -> float:
        """What the published comparison has beside the mean over seeds: the chance of its seed."""
        return self.of_seed - self.whole.change.value


def difference(name: str, before: Answers, after: Answers) -> Part:
    """What changes from one stage to another, paired by seed and problem.

    The interval is for new seeds and new problems (analysis.statistics.recipe_difference.mean_over_seeds).

    Args:
        name: of the part.
        before: accuracies of shape (seeds, problems), by benchmark.
        after: the same seeds and problems.
    """
    gaps = [after[benchmark] - before[benchmark] for benchmark in before]
    return Part(name, mean_over_seeds(gaps), np.mean([gap.mean(axis=1) for gap in gaps], axis=0))


def attribute(stages: Sequence[Answers], names: Sequence[str], seeds: Sequence[int]) -> Waterfall:
    """The parts of the difference between the first and the last stage.

    Args:
        stages: accuracies of each, of shape (seeds, problems) by benchmark; the same seeds and problems in all.
        names: of the parts, one for each stage but the first.
        seeds: their numbers; the first is the published one.

    Raises:
        UserError: there are fewer than FEWEST seeds.
    """
    if len(seeds) < FEWEST:
        raise UserError(
            f"the waterfall needs at least {FEWEST} seeds, since a training is one draw, but has {len(seeds)}; "
            f"train more: --config seeds='{list(range(FEWEST))}'",
            code="too-few-seeds",
        )
    first, last = stages[0], stages[-1]
    whole = difference(WITHOUT_THE_FIRST, first, last)
    pairs = zip(names, stages, stages[1:], strict=False)
    return Waterfall(
        mean_over_seeds([first[benchmark] for benchmark in first]),
        [difference(name, before, after) for name, before, after in pairs],
        whole,
        seeds[0],
        float(whole.by_seed[0]),
    )


def stored(results: Path, seeds: Sequence[int]) -> list[Answers]:
    """The accuracies of every stage, of shape (seeds, problems) by benchmark.

    Args:
        results: with <stage>/seed-<n>/graded.
        seeds: whose trainings to read.

    Raises:
        UserError: a training is missing, or was measured otherwise than the first.
    """
    sides = [[results / stage.name / f"seed-{seed}" / "graded" for seed in seeds] for stage in STAGES]
    if missing := [folder for side in sides for folder in side if not folder.is_dir()]:
        raise UserError(
            f"{len(missing)} of {sum(map(len, sides))} trainings of the waterfall are missing, such as {missing[0]}; "
            "`snakemake study_waterfall` trains them",
            code="missing-trainings",
        )
    recipe_runs = training_runs.read_correct_answers(sides)
    return [{name: np.stack([run.mean(axis=1) for run in runs]) for name, runs in side.items()} for side in recipe_runs]


def frame(waterfall: Waterfall) -> pd.DataFrame:
    """A row for each part, the whole and the residual, as numbers."""
    rows: list[dict[str, object]] = [
        {
            "part": part.name,
            **interval_columns({"change": part.change}),
            "by_seed": " ".join(map(str, part.by_seed.tolist())),
        }
        for part in (*waterfall.parts, waterfall.whole)
    ]
    rows.append({"part": f"seed {waterfall.seed} beside the mean", "change": waterfall.residual})
    rows.append({"part": f"seed {waterfall.seed}", "change": waterfall.of_seed})
    return pd.DataFrame(rows)


def page(waterfall: Waterfall, seeds: Sequence[int]) -> str:
    """The table and what it says, as Markdown."""
    rows = [
        [part.name, interval_text(part.change, points), " ".join(map(points, part.by_seed))]
        for part in (*waterfall.parts, waterfall.whole)
    ]
    rows.append([f"seed {waterfall.seed} beside the mean", points(waterfall.residual), ""])
    rows.append([f"seed {waterfall.seed}", points(waterfall.of_seed), ""])
    beyond = [part.name for part in waterfall.parts if part.change.low > 0 or part.change.high < 0]
    told = f"Beyond chance: {'; '.join(beyond)}." if beyond else "None of the parts is beyond chance."
    head = (
        f"{TO} less {FROM}, in percentage points, over {len(seeds)} seeds: each row takes one thing less from the "
        f"training through {FROM}, whose accuracy is {interval_text(waterfall.first, percent)} %. The rows add up. "
        "95 % intervals for new seeds and new problems; each holds by itself."
    )
    return f"{head}\n\n{markdown(pd.DataFrame(rows, columns=['part', 'change', 'by seed']))}\n{told}\n"


def draw(waterfall: Waterfall, folder: Path) -> None:
    """The parts as bars from the first framework's accuracy to the last's, with intervals, and the residual."""
    figure_style.set_style()
    names = [*(part.name for part in waterfall.parts), f"seed {waterfall.seed} beside the mean"]
    changes = [100 * part.change.value for part in waterfall.parts] + [100 * waterfall.residual]
    starts = np.concatenate([[0.0], np.cumsum(changes)[:-1]])
    figure, axes = plt.subplots(figsize=(figure_style.WIDTH, 0.55 * len(names) + 1.2))
    colours = [*figure_style.COLOURS[: len(waterfall.parts)], figure_style.FAINT]
    axes.barh(names, changes, left=starts, color=colours, height=0.6)
    for bar, (part, start) in enumerate(zip(waterfall.parts, starts, strict=False)):
        low, high = 100 * part.change.low, 100 * part.change.high
        axes.plot([start + low, start + high], [bar, bar], color=figure_style.INK, linewidth=1)
    axes.axvline(0, color=figure_style.FAINT, linewidth=0.8)
    axes.axvline(100 * waterfall.of_seed, color=figure_style.FAINT, linewidth=0.8, linestyle="--")
    axes.invert_yaxis()
    axes.set(xlabel=f"percentage points, {TO} less {FROM}; dashed: seed {waterfall.seed} alone")
    figure_style.save(figure, folder, "waterfall")


def command(stage: Stage, arguments: argparse.Namespace) -> list[str | Path]:
    """The command that trains a stage; its last step's weights are left in WORK."""
    run = load_run(stage.run, "demo")
    (native,) = run.stages
    steps = arguments.steps or native.steps
    command_line: list[str | Path] = [
        python(run.framework),
        "-m",
        "studies.lockstep.fixed_rollout_training",
        "--run",
        stage.run,
    ]
    command_line += ["--problems", arguments.problems, "--model", arguments.model, "--work", arguments.work]
    command_line += ["--seed", str(arguments.seed), "--steps", str(steps), "--keep", str(steps)]
    if stage == RECORDED:
        return [*command_line, "--record", arguments.output / RECORDING]
    command_line += ["--replay", arguments.output.parent.parent / RECORDED.name / arguments.output.name / RECORDING]
    for name in stage.released:
        command_line += ["--release", name]
    return command_line


def evaluation(stage: Stage, arguments: argparse.Namespace, weights: Path, step: int) -> list[commands.Command]:
    """The commands that have a checkpoint answer the run's benchmarks, and grade the answers."""
    run, interpreter = load_run(stage.run, "demo"), python("eval")
    samples, data = arguments.output / "samples", arguments.benchmarks
    generate = commands.generate(
        interpreter,
        run=f"waterfall/{stage.name}/seed-{arguments.seed}",
        checkpoints={step: weights},
        benchmarks=run.evaluation["benchmarks"],
        data=data,
        work=arguments.work / "evaluation",
        output=samples,
        sampling=commands.run_sampling_options(run),
    )
    extraction, graded = protocol_of(run).extraction, arguments.output / "graded"
    return [generate, commands.grade(interpreter, samples=samples, data=data, output=graded, extraction=extraction)]


def train(arguments: argparse.Namespace) -> None:
    """Train and evaluate one stage with one seed.

    Raises:
        UserError: a command failed; its messages are above.
    """
    stage = next(stage for stage in STAGES if stage.name == arguments.stage)
    steps = arguments.steps or load_run(stage.run, "demo").stages[0].steps
    weights = arguments.work / "weights" / f"step-{steps}"
    commands_in_order: list[Sequence[str | Path]] = [] if weights.is_dir() else [command(stage, arguments)]
    commands_in_order += evaluation(stage, arguments, weights, steps)
    for command_line in commands_in_order:
        if subprocess.run(command_line, cwd=ROOT, check=False).returncode:
            raise UserError(
                f"{command_line[2]} of the stage {stage.name} failed; its messages are above", code="step-failed"
            )


def write(arguments: argparse.Namespace) -> None:
    """The page, its figure and its numbers."""
    waterfall = attribute(
        stored(arguments.results, arguments.seeds), [stage.part for stage in REPLAYED], arguments.seeds
    )
    text = page(waterfall, arguments.seeds)
    durable.write_text(arguments.output / "waterfall.csv", frame(waterfall).to_csv(index=False))
    durable.write_text(arguments.output / "waterfall.md", text)
    draw(waterfall, arguments.output)
    print(text)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    verbs = parser.add_subparsers(required=True)
    training = verbs.add_parser("train", help="train and evaluate one stage with one seed")
    training.add_argument("--stage", choices=[stage.name for stage in STAGES], required=True)
    training.add_argument("--seed", type=int, required=True)
    training.add_argument("--steps", type=int, help="default: the run's")
    for name, text in (
        ("problems", "problem table of the training set"), ("model", "that training starts from"),
        ("benchmarks", "folder of the benchmarks' problem tables"), ("work", "folder that survives a failed job"),
        ("output", "…/<stage>/seed-<n>; a later stage reads the recording in …/recorded/seed-<n>"),
    ):  # fmt: skip
        training.add_argument(f"--{name}", type=Path, required=True, help=text)
    training.set_defaults(call=train)
    writing = verbs.add_parser("page", help="the waterfall of stored results")
    writing.add_argument("--results", type=Path, required=True, help="folder of <stage>/seed-<n>/graded")
    writing.add_argument("--seeds", type=int, nargs="+", required=True)
    writing.add_argument("--output", type=Path, required=True)
    writing.set_defaults(call=write)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    run_command(main)

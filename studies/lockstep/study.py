"""The same completions through each framework's trainer, weights compared after each step: `snakemake study_lockstep`.

    crosszero study lockstep study --problems FILE --model FOLDER --work FOLDER --output FOLDER [--steps 40]
        [--scale small]

A training of the recipe's first run is recorded; then each run of the recipe, that one included, trains on what was
recorded (studies/lockstep/fixed_rollout_training.py). FOLDER gets lockstep.md (what is printed), .csv and .png. How
long the updates take compares the trainers alone: all compute the same completions.
On the CPU, seven trainings: at demo scale about a quarter of an hour on two free cores, at small scale some minutes a
step. Killed, it resumes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from analysis.pages import figure_style
from contracts.run_file import ROOT
from envs.build import python
from frameworks import adapter
from recipes.runs import load_run, run_names
from studies.lockstep import weights
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.markdown import table
from system.yaml_files import read_yaml

RECIPE = "crosscheck"
RECORDING = "recorded"
# What the frameworks are given in place of the run files' values: as they are, and without what differs by a constant.
VARIANTS = {"": [], "no std": ["objective.scale_rewards=none"]}
LOWEST = 1e-10  # drawn in place of 0
AIM = 1e-5  # largest difference of a weight in float32
SHOWN = (1, 2, 5, 10, 20, 40)  # steps, in the table


def runs() -> list[str]:
    """The recipe's runs; the one that the others extend is first."""
    names = [name for name in run_names() if name.startswith(f"{RECIPE}/")]
    return sorted(names, key=lambda name: "extends" in read_yaml(load_run(name, "demo").file))


@dataclass(frozen=True)
class Study:
    """What all trainings share."""

    problems: Path
    model: Path
    work: Path
    steps: int
    seed: int
    scale: str

    def train(self, run: str, work: Path, variant: str = "", *, record: bool = False) -> None:
        """Train a run in its framework's environment, unless its weights of every step are there.

        Args:
            run: of the recipe.
            work: of this training.
            variant: of VARIANTS.
            record: write the recording instead of replaying it.

        Raises:
            UserError: it failed; its output is above.
        """
        if all((work / "weights" / f"step-{step}").is_dir() for step in range(1, self.steps + 1)):
            return
        interpreter = python(load_run(run, self.scale).framework)
        command: list[str | Path] = [
            interpreter,
            "-m",
            "studies.lockstep.fixed_rollout_training",
            "--run",
            run,
            "--scale",
            self.scale,
            "--work",
            work,
        ]
        command += ["--problems", self.problems, "--model", self.model, "--seed", str(self.seed)]
        command += ["--record" if record else "--replay", self.work / "rollouts.jsonl", "--steps", str(self.steps)]
        for setting in VARIANTS[variant]:
            command += ["--set", setting]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            raise UserError(
                f"{run} did not train on recorded completions; its messages are above", code="training-failed"
            )


def compared(trainings: Mapping[str, Path], model: Path, steps: int) -> Iterator[dict[str, object]]:
    """A row for each pair of trainings and step: how far apart their weights are, and how far these have moved.

    Args:
        trainings: folders with weights/step-<n>, by name.
        model: that all began with.
        steps: of each.
    """
    begun = weights.read(model)
    for step in range(1, steps + 1):
        tensors = {name: weights.read(work / "weights" / f"step-{step}") for name, work in trainings.items()}
        for one, other in combinations(tensors, 2):
            apart, moved = weights.distance(tensors[one], tensors[other]), weights.distance(tensors[one], begun)
            yield {
                "pair": f"{one} – {other}", "step": step, "difference": apart.largest, "tensor": apart.tensor,
                "moved": moved.largest, "relative": apart.length / moved.length,
            }  # fmt: skip


def summary_table(rows: pd.DataFrame) -> str:
    """A Markdown table: the largest difference of each pair at some steps, and of its length to that of the way."""
    steps = [step for step in SHOWN if step in set(rows["step"])]
    head = ["pair", *(f"step {step}" for step in steps), "relative, last step", "largest in"]
    body = []
    for name, pair in rows.groupby("pair", sort=False):
        by_step = dict(zip(pair["step"], pair["difference"], strict=True))
        last = pair.iloc[-1]
        cells = [f"{by_step[step]:.1e}" for step in steps]
        body.append([name, *cells, f"{last['relative']:.1e}", last["tensor"]])
    return table(head, body)


def update_seconds(run: str, work: Path, scale: str) -> list[float]:
    """How long the update of each step of a training took, by its framework's own timers.

    Args:
        run: of the recipe.
        work: of the training.
        scale: of the run.
    """
    loaded = load_run(run, scale)
    framework = adapter.load(loaded.framework)
    logged = framework.metrics_of_training(loaded, loaded.stages[0], adapter.Paths(work, work, work))
    timers = [name for name, phase in framework.timers.items() if phase.startswith("update")]
    return [sum(values.get(name, 0.0) for name in timers) for values in logged.values()]


def times_table(updates: Mapping[str, Sequence[float]]) -> str:
    """A Markdown table of seconds by training: the median over its steps, and the quartiles."""
    rows = {name: pd.Series(seconds).quantile([0.5, 0.25, 0.75]) for name, seconds in updates.items()}
    head = ["training", "an update, median (s)", "quartiles (s)"]
    return table(head, [[name, f"{mid:.2f}", f"{low:.2f} to {high:.2f}"] for name, (mid, low, high) in rows.items()])


def draw(rows: pd.DataFrame, output: Path) -> None:
    """The differences by step, on a logarithmic axis, with the aim."""
    figure_style.set_style()
    pairs = {str(name): pair for name, pair in rows.groupby("pair", sort=False)}
    styles = figure_style.run_styles(list(pairs))
    figure, axes = plt.subplots(figsize=(figure_style.WIDTH, 4.2))
    for name, pair in pairs.items():
        style = styles[name]
        line = {"color": style.colour, "linestyle": style.dash, "marker": style.marker}
        axes.plot(pair["step"], pair["difference"].clip(lower=LOWEST), label=name, markevery=5, **line)
    moved = rows.groupby("step")["moved"].max()
    axes.plot(moved.index, moved, color=figure_style.FAINT, label="moved since the base model")
    axes.axhline(AIM, color=figure_style.FAINT, linewidth=0.8)
    axes.set(yscale="log", xlabel="step", ylabel="largest difference of a weight")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}")  # the style does not parse mathematics
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    figure.savefig(output, dpi=150)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    for name in ("problems", "model", "work", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", choices=("demo", "small"), default="demo")
    arguments = parser.parse_args()
    study = Study(arguments.problems, arguments.model, arguments.work, arguments.steps, arguments.seed, arguments.scale)
    first, *_ = names = runs()
    study.train(first, study.work / RECORDING, record=True)
    distances, updates = list[dict[str, object]](), dict[str, list[float]]()
    for variant in VARIANTS:
        label = f", {variant}" if variant else ""
        trainings = {
            f"{name.partition('/')[2]}{label}": study.work / f"{name}{variant.replace(' ', '-')}" for name in names
        }
        for name, work in zip(names, trainings.values(), strict=True):
            study.train(name, work, variant)
        updates |= {
            label: update_seconds(name, work, study.scale)
            for name, (label, work) in zip(names, trainings.items(), strict=True)
        }
        if not variant:  # samples as it did when it was recorded, in another order within the step
            trainings = {RECORDING: study.work / RECORDING, **trainings}
        distances += compared(trainings, study.model, study.steps)
    rows = pd.DataFrame(distances)
    text = f"Largest difference of a weight; the aim is {AIM}.\n\n{summary_table(rows)}\n{times_table(updates)}"
    durable.write_text(arguments.output / "lockstep.csv", rows.to_csv(index=False))
    durable.write_text(arguments.output / "lockstep.md", text)
    draw(rows, arguments.output / "lockstep.png")
    print(text)


if __name__ == "__main__":
    run_command(main)

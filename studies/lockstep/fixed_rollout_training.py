"""Trains a run on recorded completions, so that several frameworks take the same steps: `snakemake study_lockstep`.

    crosszero study lockstep fixed_rollout_training --run RUN --problems FILE --model FOLDER --work FOLDER
        --record FILE | --replay FILE

The framework's own command trains, in its own environment. `--record` writes what it samples to a file. With `--replay`
the sampler hands out these completions instead, and the prompts come in their order; all else (rewards, advantages,
log-probabilities, loss, gradient, optimiser) is the release's own. What that needs is in the module `fixed_rollouts` of
a framework's folder, loaded for this alone. The weights after each step are left in WORK/weights/step-<n>/.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import yaml

from contracts import model_folder, tables
from contracts.run_file import Run, Stage
from frameworks import adapter, recorded_rollouts, rollout_log, trainer_process
from frameworks.adapter import Adapter, Command, Paths
from frameworks.recorded_rollouts import RECORD, RELEASED, VARIABLE, Group, read
from recipes.runs import load_run
from system import durable, json_lines, work_lock
from system.command_line import argument_parser
from system.errors import UserError, run_command


class PlugIn(Protocol):
    """What a framework's module `fixed_rollouts` offers.

    Attributes:
        RELEASES: what a training may do as in production instead of taking it from the recording. `sampler` and
            `order` are the completions and the prompts; others are the framework's.
    """

    RELEASES: Sequence[str]

    def edit(self, command: Command, paths: Paths) -> None:
        """Have the command take prompts in the order of the problems, and load what records or plays the recording."""


def recorded_groups(sampled: Path, work: Path, batch: rollout_log.Batch) -> Iterator[Group]:
    """The groups of a finished training.

    Args:
        sampled: written by `write_sampled`, a line for each step.
        work: of the training, with the rewards in its recorded rollouts.
        batch: what each step samples.

    Raises:
        UserError: the rollouts are not those that were sampled.
    """
    judged = rollout_log.read(work, batch)
    for step, row in enumerate(json_lines.read(sampled), start=1):
        for first in range(0, batch.prompts * batch.samples, batch.samples):
            members = slice(first, first + batch.samples)
            rewards = judged.get(step, [])[members]
            prompts, ids = row["prompts"][members], {one["problem_id"] for one in rewards}
            if len(rewards) != batch.samples or len(ids) != 1 or any(prompt != prompts[0] for prompt in prompts):
                sentence = f"the rewards of step {step} should be those of its completions, but are not; record again"
                raise UserError(sentence, code="rewards-of-other-completions", step=step)
            yield Group(step, ids.pop(), prompts[0], row["completions"][members], [one["reward"] for one in rewards])


def check_rewards(recording: Path, work: Path, batch: rollout_log.Batch) -> None:
    """Raise UserError unless a replayed training gave every completion the recorded reward, in the recorded step."""
    judged = rollout_log.read(work, batch)

    def judged_rewards(step: int) -> list[tuple[str, float]]:
        return sorted((row["problem_id"], row["reward"]) for row in judged.get(step, []))

    recorded: dict[int, list[tuple[str, float]]] = {}
    for group in read(recording):
        recorded.setdefault(group.step, []).extend((group.problem_id, reward) for reward in group.rewards)
    for step, rewards in recorded.items():
        if sorted(rewards) != judged_rewards(step):
            sentence = f"step {step} should have the recorded prompts and rewards, but has others"
            raise UserError(sentence, code="not-the-recorded-rewards", step=step)


def check_prompts(recording: Path, work: Path, batch: rollout_log.Batch) -> None:
    """Raise UserError unless a training that samples by itself drew the recorded prompts in each step."""
    judged = rollout_log.read(work, batch)
    recorded: dict[int, set[str]] = {}
    for group in read(recording):
        recorded.setdefault(group.step, set()).add(group.problem_id)
    for step, problems in recorded.items():
        if problems != {row["problem_id"] for row in judged.get(step, [])}:
            sentence = f"step {step} should have the recorded prompts, but has others"
            raise UserError(sentence, code="not-the-recorded-prompts", step=step)


def load_plug_in(framework: str, released: Sequence[str]) -> PlugIn:
    """A framework's plug-in.

    Raises:
        UserError: it cannot release one of these, or the order without the sampler.
    """
    plug_in: PlugIn = adapter.load_module(framework, "fixed_rollouts", "cannot train on recorded completions")
    if unable := sorted(set(released) - set(plug_in.RELEASES)):
        able = f"{', '.join(plug_in.RELEASES)} alone" if plug_in.RELEASES else "nothing"
        sentence = f"--release: {framework} can release {able}, not {', '.join(unable)}"
        raise UserError(sentence, code="cannot-be-released", names=unable)
    if "order" in released and "sampler" not in released:
        sentence = "--release order needs --release sampler, too: other prompts have no recorded completions"
        raise UserError(sentence, code="order-without-sampler")
    return plug_in


def launch_stage(
    framework: Adapter, run: Run, stage: Stage, paths: Paths, seed: int, environment: Mapping[str, str]
) -> None:
    """Train as the workflow does, with the command edited by the framework's plug-in.

    Args:
        framework: the run's.
        run: the run.
        stage: with a checkpoint at each step.
        paths: where it reads and writes.
        seed: of the training.
        environment: variables for the plug-in.
    """
    resumed_from = framework.newest_checkpoint(run, stage, paths)
    if resumed_from == stage.steps:
        return
    command = framework.prepare(run, stage, seed, paths)
    command.environment.update(environment)
    plug_in = load_plug_in(run.framework, sorted(recorded_rollouts.released_parts(environment)))
    plug_in.edit(command, paths)
    attempt = rollout_log.start_attempt(paths.work, resumed_from)
    command.environment[rollout_log.VARIABLE] = str(attempt.folder)
    monitor = trainer_process.Monitor(
        run.name, stage.steps, partial(framework.columns_in_line, stage), resumed_from=resumed_from
    )
    trainer_process.run(command, paths.work / "train.log", monitor)


def write_recorded_problems(recording: Path, problems: Path, output: Path) -> None:
    """Write the recording's problems, in its order, as a problem table."""
    table = tables.read(problems, tables.PROBLEM).to_pylist()
    by_id = {row["problem_id"]: row for row in table}
    rows = [by_id[group.problem_id] for group in read(recording)]
    tables.write(pa.Table.from_pylist(rows, schema=tables.PROBLEM), tables.PROBLEM, output)


def with_settings(stage: Stage, settings: Sequence[str]) -> Stage:
    """The stage with settings in place of the run file's.

    Args:
        stage: of a run.
        settings: each `part.name=value`, the value in YAML, such as `objective.scale_rewards=none`.

    Raises:
        UserError: one is not of that form.
    """
    for setting in settings:
        match = re.fullmatch(r"(batch|rollout|optimizer|objective)\.(\w+)=(.+)", setting)
        if not match:
            sentence = f"--set should be such as objective.scale_rewards=none, not {setting!r}"
            raise UserError(sentence, code="unreadable-setting", setting=setting)
        part, name, value = match.groups()
        stage = replace(stage, **{part: getattr(stage, part) | {name: yaml.safe_load(value)}})
    return stage


def train(arguments: argparse.Namespace) -> None:
    """Record or replay a training, and leave the weights after each of its steps."""
    run = load_run(arguments.run, arguments.scale)
    framework = adapter.load(run.framework)
    load_plug_in(run.framework, arguments.release)
    model_folder.check(arguments.model)
    framework.fork_processes(run)
    work = arguments.work.absolute()
    sampled = work / "sampled.jsonl"
    with work_lock.sole_user(work, "training"):
        (stage,) = run.stages
        steps = arguments.steps if arguments.record else max(group.step for group in read(arguments.replay))
        kept = tuple(arguments.keep or range(1, steps + 1))
        stage = with_settings(replace(stage, steps=steps, checkpoints=kept), arguments.set)
        batch = rollout_log.Batch.of_stage(stage)
        if arguments.record:
            shutil.rmtree(work / "native", ignore_errors=True)  # a recording starts anew: its recording has to be whole
            shutil.rmtree(work / rollout_log.FOLDER, ignore_errors=True)
            sampled.unlink(missing_ok=True)
            problems, environment = arguments.problems, {VARIABLE: str(sampled), RECORD: "1"}
        else:
            environment = {VARIABLE: str(arguments.replay.absolute()), RELEASED: " ".join(arguments.release)}
            problems = arguments.problems if "order" in arguments.release else work / "problems.parquet"
            if problems != arguments.problems:
                write_recorded_problems(arguments.replay, arguments.problems, problems)
        paths = Paths(problems=problems, model=arguments.model, work=work)
        launch_stage(framework, run, stage, paths, arguments.seed, environment)
        if arguments.record:
            lines = [json_lines.dump(vars(group)) for group in recorded_groups(sampled, work, batch)]
            durable.write_text(arguments.record, "".join(lines))
        elif "sampler" not in arguments.release:
            check_rewards(arguments.replay, work, batch)
        elif "order" not in arguments.release:
            check_prompts(arguments.replay, work, batch)
        for step in stage.checkpoints:
            with durable.new(work / "weights" / f"step-{step}") as folder:
                folder.mkdir()
                framework.export(run, stage, step, paths, folder)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--run", required=True, help="<recipe>/<run>, of one stage")
    parser.add_argument("--scale", choices=("demo", "small"), default="demo", help="of the run; default: %(default)s")
    parser.add_argument("--problems", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model that training starts from")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40, help="to record; default: %(default)s")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING", help="instead of the run file's")
    parser.add_argument("--keep", type=int, action="append", metavar="STEP", help="whose weights; default: each step's")
    parser.add_argument(
        "--release", action="append", default=[], metavar="NAME",
        help="what is not taken from the recording but as in production: sampler, order, precision",
    )  # fmt: skip
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--record", type=Path, metavar="FILE")
    source.add_argument("--replay", type=Path, metavar="FILE")
    train(parser.parse_args())


if __name__ == "__main__":
    run_command(main)

"""Check, train and export runs of any framework; the workflow calls it with the framework's own Python.

python -m frameworks check --framework trl
python -m frameworks train --run openr1/qwen2.5-math-7b --scale demo --seed 0 --stage 1 …
python -m frameworks export --run openr1/qwen2.5-math-7b --scale demo --step 20 …
"""

from __future__ import annotations

import argparse
import json
import shutil
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import model_folder, provenance, tables
from contracts.run_file import SCALES, Run, Stage, inherit
from contracts.seeds import run_id
from frameworks import (
    adapter,
    checkpoints,
    one_gpu_variant,
    rollout_log,
    slurm_nodes,
    stage_training_log,
    trainer_process,
)
from frameworks.adapter import Adapter, Command, Paths
from frameworks.experiment_trackers import FOLDER, Trackers, events_folder
from recipes import sweeps
from recipes.runs import file_content, load_run, run_names
from system import durable, job_lifetime, work_lock
from system.errors import StoppedInTime, UserError, run_command


def check(arguments: argparse.Namespace) -> None:
    """Have the framework's real parser read every run of it, at every scale."""
    framework = adapter.load(arguments.framework)
    problems, checked = [], 0
    names = [(name, scale) for name in run_names() for scale in SCALES]
    names += [(name, scale) for sweep in sweeps.names() for scale in SCALES for name in sweeps.runs(sweep, scale)]
    for name, scale in names:
        try:
            run = load_run(name, scale)
            if run.framework != arguments.framework:
                continue
            framework.check(run)
            checked += 1
            print(f"{name} ({scale}): accepted by {run.framework}")
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("; ".join(dict.fromkeys(problems)))
    if not checked:
        raise UserError(f"no run file names the framework '{arguments.framework}'")
    if arguments.output:
        durable.write_text(arguments.output, f"{checked} accepted\n")


def train(arguments: argparse.Namespace) -> None:
    """Train one stage to its end and write its training log and its rollouts."""
    run = load_run(arguments.run, arguments.scale)
    if arguments.one_gpu:
        run = one_gpu_variant.on_one_gpu(run, arguments.one_gpu)
    stage, name = run.stages[arguments.stage - 1], run_id(run.name, arguments.seed)
    framework = adapter.load(run.framework)
    model_sha256 = model_folder.check(arguments.model)
    tables.read(arguments.problems, tables.PROBLEM)
    inputs = {"problems_sha256": provenance.sha256(arguments.problems), "model_sha256": model_sha256}
    framework.fork_processes(run)
    framework.check(run)  # takes seconds, before data are written, memory is taken, or a GPU is used
    paths = Paths(problems=arguments.problems, model=arguments.model, work=arguments.work)
    job_lifetime.end_with_workflow()
    with work_lock.sole_user(paths.work, "training"):
        discard_if_changed(paths.work, inputs)
        stop = arguments.stop_on_collapse or arguments.end_at_collapse
        ended: dict[str, str] = {}
        try:
            command = launch_stage(framework, run, stage, paths, arguments.seed, stop, events_folder(arguments.output))
            if (reached := framework.newest_checkpoint(run, stage, paths)) < stage.steps:
                raise stopped(run, stage, reached)
        except trainer_process.Collapsed as collapse:
            if not arguments.end_at_collapse:
                raise
            command, ended = collapse.command, {"ended": str(collapse).partition("; its output")[0]}
            reached = collapse.step
        log, rollouts = stage_training_log.read(framework, run, stage, paths, name, reached)
        durable.sync_tree(paths.work)  # the training log says that the checkpoints can be exported
    check_log(log, run)
    rollouts = with_lengths(rollouts, arguments.model)
    tables.write(pa.Table.from_pylist(rollouts, schema=tables.ROLLOUT), tables.ROLLOUT, arguments.rollouts)
    tables.write(pa.Table.from_pylist(log, schema=tables.TRAINING_LOG), tables.TRAINING_LOG, arguments.output)
    provenance.write(
        arguments.output,
        run=name,
        run_file=inherit(file_content(run.name, run.file, run.scale), run.file),
        scale=run.scale,
        stage=stage.number,
        seed=arguments.seed,
        command=command.arguments,
        **ended,
        **inputs,
    )


def launch_stage(
    framework: Adapter,
    run: Run,
    stage: Stage,
    paths: Paths,
    seed: int,
    stop_on_collapse: bool,
    events: Path | None = None,
) -> Command:
    """Train a stage from its newest checkpoint, if it has not reached its end; returns the command.

    Args:
        framework: the run's.
        run: the run.
        stage: the one to train.
        paths: where training reads and writes.
        seed: of the training.
        stop_on_collapse: end the training at a grave sign of collapse.
        events: folder for TensorBoard events; by default one in the work folder.

    Raises:
        UserError: the training failed; see trainer_process.run.
    """
    resumed_from = framework.newest_checkpoint(run, stage, paths)
    command = framework.prepare(run, stage, seed, paths)
    if resumed_from:
        print(f"{run.name}: resuming from step {resumed_from}", flush=True)
    if resumed_from < stage.steps:
        attempt = rollout_log.start_attempt(paths.work, resumed_from)
        command.environment[rollout_log.VARIABLE] = str(attempt.folder)
        with closing(
            Trackers(events or paths.work / FOLDER, run_id(run.name, seed), stage.steps_before, resumed_from)
        ) as followers:
            trainer_process.run(
                command,
                log=paths.work / "train.log",
                steps=stage.steps,
                name=run.name,
                metrics=partial(framework.progress, stage),
                recorded=rollout_log.Live(attempt, rollout_log.Batch.of(stage)).columns,
                follow=followers.add,
                resumed_from=resumed_from,
                cap=stage.rollout.get("max_response_tokens"),
                stop_on_collapse=stop_on_collapse,
            )
    return command


def stopped(run: Run, stage: Stage, reached: int) -> UserError:
    """The error of a training that ended well before its last step: in time before its job's end, or without cause."""
    text = f"training {run.name} stopped after step {reached} of {stage.steps}"
    if slurm_nodes.time_limit():
        return StoppedInTime(f"{text}, in time before its job's end; the same command resumes it")
    return UserError(f"{text} without an error; its output is in train.log, and the same command resumes it")


def with_lengths(rollouts: list[dict[str, Any]], model: Path) -> list[dict[str, Any]]:
    """The rollouts with the number of tokens of each completion's text, by the model's own tokenizer.

    The sampled tokens may split the text differently, and end with one that the text does not show. So these lengths
    are for distributions; the means in the log are the trainer's own.
    """
    from transformers import AutoTokenizer

    if not rollouts:
        return rollouts
    tokenizer = AutoTokenizer.from_pretrained(model)
    encoded = tokenizer([row["completion"] for row in rollouts], add_special_tokens=False)["input_ids"]
    return [row | {"completion_tokens": len(tokens)} for row, tokens in zip(rollouts, encoded, strict=True)]


def discard_if_changed(work: Path, inputs: dict[str, str]) -> None:
    """Delete native files that were made from other inputs: resuming would pass them off as made from these.

    The log stays. The record is written after the deletion, so that a kill between the two only repeats the deletion.
    """
    record, content = work / "inputs.json", json.dumps(inputs, indent=2)
    if record.is_file() and record.read_text() == content:
        return
    for folder in (path for path in work.iterdir() if path.is_dir()):
        print(f"{folder} was made from other data or another model: deleted, training starts again", flush=True)
        shutil.rmtree(folder)
    durable.write_text(record, content)


def check_log(rows: list[dict[str, Any]], run: Run) -> None:
    """Warn of a training without much signal; raise UserError for one without any, unless it is of a sweep."""
    steps = len(rows)
    silent = [row["step"] for row in rows if row["zero_signal_rate"] == 1.0]
    if len(silent) == steps and "@" not in run.name:  # in a sweep that is a result, such as of a constant reward
        raise UserError(
            f"{run.name}: within every group all rewards were equal at every step, so nothing was learned; "
            "a base model that is sometimes right and sometimes wrong is needed"
        )
    if len(silent) > steps / 2:
        print(f"WARNING: {run.name}: no group had a signal in {len(silent)} of {steps} steps, from step {silent[0]} on")
    truncated = [row["truncated_rate"] for row in rows if row["truncated_rate"] is not None]
    if truncated and sum(truncated) / len(truncated) > 0.5:
        print(f"WARNING: {run.name}: {sum(truncated) / len(truncated):.0%} of the completions were cut at the limit")


def export(arguments: argparse.Namespace) -> None:
    """Write one checkpoint in Hugging Face format; step 0 is the base model."""
    run = load_run(arguments.run, arguments.scale)
    base_sha256 = model_folder.check(arguments.model)
    with durable.new(arguments.output) as checkpoint:
        checkpoint.mkdir()
        if arguments.step == 0:
            checkpoints.copy(checkpoints.files_of(arguments.model), checkpoint)
        else:
            stage = run.stage_of(arguments.step)
            paths = Paths(problems=Path(), model=arguments.model, work=arguments.work)
            adapter.load(run.framework).export(run, stage, arguments.step - stage.steps_before, paths, checkpoint)
        provenance.write(
            checkpoint,
            run=run_id(run.name, arguments.seed),
            step=arguments.step,
            model=run.model,
            base_sha256=base_sha256,
            sha256=model_folder.check(checkpoint),
        )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m frameworks", description=(__doc__ or "").split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    checking = verbs.add_parser("check", help="render every run and let the framework's parser read it")
    checking.add_argument("--framework", required=True)
    checking.add_argument("--output", type=Path, help="written when all runs are accepted")
    checking.set_defaults(call=check)
    for name, call, text in (("train", train, "train one stage"), ("export", export, "write one checkpoint")):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("--run", required=True, help="<recipe>/<run>, or the path of a run file")
        verb.add_argument("--scale", required=True, choices=SCALES)
        verb.add_argument("--seed", type=int, required=True)
        verb.add_argument("--model", type=Path, required=True, help="folder of the model that training starts from")
        verb.add_argument(
            "--work", type=Path, required=True, help="folder of the stage's native files; survives a failed job"
        )
        verb.add_argument("--output", type=Path, required=True)
        verb.set_defaults(call=call)
        if name == "train":
            verb.add_argument("--stage", type=int, default=1)
            verb.add_argument("--problems", type=Path, required=True, help="problem table of the training set")
            verb.add_argument(
                "--stop-on-collapse", action="store_true",
                help="end the training at a grave sign of collapse, instead of only warning",
            )  # fmt: skip
            verb.add_argument(
                "--end-at-collapse", action="store_true",
                help="the same without an error: the log until then is written, and no checkpoint can be exported",
            )  # fmt: skip
            verb.add_argument(
                "--one-gpu", type=int, metavar="COMPLETIONS", help="train on one GPU, with forward passes of so many"
            )
            verb.add_argument("--rollouts", type=Path, required=True, help="table of completions that were trained on")
        else:
            verb.add_argument("--step", type=int, required=True)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    run_command(main)

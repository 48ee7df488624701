"""Trains one stage of a run to its end, and writes its training log and its rollouts.

`python -m frameworks train` calls `train`. The framework's adapter renders the command, trainer_process.py runs it,
stage_training_log.py reads what it logged.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import chat_template, ended_training, model_folder, provenance, tables
from contracts.run_file import Run, Stage
from contracts.seeds import run_id
from frameworks import (
    adapter,
    checkpoints,
    one_gpu_variant,
    phases,
    rollout_log,
    slurm_nodes,
    stage_training_log,
    trainer_process,
    update_tokens,
)  # fmt: skip
from frameworks.adapter import Adapter, Command, Paths
from frameworks.experiment_trackers import FOLDER, Trackers, events_folder
from recipes.runs import file_content, load_run
from system import durable, warm_processes, work_lock
from system.errors import StoppedInTime, UserError


def train(arguments: argparse.Namespace) -> None:
    """Train one stage to its end and write its training log and its rollouts."""
    job_started()  # before this program goes on as a fork
    run = run_of(arguments)
    stage, name = run.stages[arguments.stage - 1], run_id(run.name, arguments.seed)
    if why := ended_training.reason(arguments.model):  # the stage before was ended
        write_tables(arguments, [], [], ended=why)
        return
    framework = adapter.load(run.framework)
    model_sha256 = model_folder.check(arguments.model)
    model_folder.check_code(arguments.model)
    tables.read(arguments.problems, tables.PROBLEM)
    inputs = {"problems_sha256": provenance.sha256(arguments.problems), "model_sha256": model_sha256}
    framework.fork_processes(run)
    framework.check(run)  # takes seconds, before data are written, memory is taken, or a GPU is used
    paths = Paths(problems=arguments.problems, model=arguments.model, work=arguments.work)
    stop = arguments.stop_on_collapse or arguments.end_at_collapse
    ended: dict[str, str] = {}
    with work_lock.sole_user(paths.work, "training"):
        discard_if_changed(paths.work, inputs)
        try:
            command = launch_stage(framework, run, stage, paths, arguments.seed, stop, events_folder(arguments.output))
            reached = min(framework.newest_checkpoint(run, stage, paths), stage.steps)
        except trainer_process.Collapsed as collapse:
            if not arguments.end_at_collapse:
                raise
            command, reached, ended = collapse.command, collapse.step, {"ended": collapse.reason}
        if reached < stage.steps and not ended:
            raise stopped_early(run, stage, reached)
        log, rollouts = stage_training_log.read(framework, run, stage, paths, name, reached)
        durable.sync_tree(paths.work)  # the training log says that the checkpoints can be exported
    check_log(log, run)
    rollouts = with_token_counts(rollouts, arguments.model)
    run_file = file_content(run.name, run.file, run.scale)
    made_from = {"scale": run.scale, "stage": stage.number, "seed": arguments.seed, "command": command.arguments}
    made_from |= {"machine": provenance.machine(), "gpus": run.hardware["gpus"]}
    if date := run.chat_template_kwargs.get("date_string") or chat_template.recorded_date(
        model_folder.chat_template(arguments.model)
    ):
        made_from["chat_template_date"] = date
    write_tables(arguments, log, rollouts, run=name, run_file=run_file, **made_from, **ended, **inputs)


def run_of(arguments: argparse.Namespace) -> Run:
    """The run to train, as it is trained on this machine."""
    run = load_run(arguments.run, arguments.scale)
    return one_gpu_variant.on_one_gpu(run, arguments.one_gpu) if arguments.one_gpu else run


def job_started() -> float:
    """When this job's first process started, in seconds since the machine did; forks know it from the environment."""
    ticks = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
    return float(os.environ.setdefault(warm_processes.JOB_STARTED, str(ticks / os.sysconf("SC_CLK_TCK"))))


def write_tables(
    arguments: argparse.Namespace, log: list[dict[str, Any]], rollouts: list[dict[str, Any]], **facts: Any
) -> None:
    """Write a stage's rollouts and its log, with the facts in the log's record."""
    tables.write(pa.Table.from_pylist(rollouts, schema=tables.ROLLOUT), tables.ROLLOUT, arguments.rollouts)
    tables.write(pa.Table.from_pylist(log, schema=tables.TRAINING_LOG), tables.TRAINING_LOG, arguments.output)
    provenance.write(arguments.output, job_seconds=time.clock_gettime(time.CLOCK_BOOTTIME) - job_started(), **facts)


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
        folders = dict.fromkeys((rollout_log.VARIABLE, update_tokens.VARIABLE), str(attempt.folder))
        command.environment.update(folders)
        on_one_node = run.hardware.get("nodes", 1) == 1
        seen = [one.environment for one in (command, *command.servers)] if on_one_node else []
        with (
            closing(phases.Clock(paths.work, attempt.number, resumed_from, seen)) as clock,
            closing(
                Trackers(events or paths.work / FOLDER, run_id(run.name, seed), stage.steps_before, resumed_from)
            ) as trackers,
        ):
            monitor = trainer_process.Monitor(
                run.name,
                stage.steps,
                partial(framework.columns_in_line, stage),
                rollout_log.LiveColumns(attempt, rollout_log.Batch.of_stage(stage)).columns,
                partial(_after_step, framework, run, stage, paths, trackers, clock),
                framework.is_further_update,
                clock.note_step,
                resumed_from=resumed_from,
                max_response_tokens=stage.rollout.get("max_response_tokens"),
                stop_on_collapse=stop_on_collapse,
            )
            trainer_process.run(command, paths.work / "train.log", monitor)
            clock.note_end()
    return command


def _after_step(
    framework: Adapter,
    run: Run,
    stage: Stage,
    paths: Paths,
    trackers: Trackers,
    clock: phases.Clock,
    step: int,
    row: dict[str, Any],
) -> None:
    """Log a step of the stage and its time, and delete native checkpoints that are not needed any more."""
    clock.note_step(step)
    trackers.add(step, row)
    checkpoints.discard_extra(framework.removable_checkpoints(run, stage, paths), math.gcd(*stage.checkpoints))


def stopped_early(run: Run, stage: Stage, reached: int) -> UserError:
    """The error of a training that ended well before its last step: in time before its job's end, or without cause."""
    sentence = f"training {run.name} stopped after step {reached} of {stage.steps}"
    if slurm_nodes.job_end_time():
        sentence += ", in time before its job's end; the same command resumes it"
        return StoppedInTime(sentence, code="stopped-in-time", step=reached, steps=stage.steps)
    if stage.objective.get("dynamic_sampling"):
        sentence += (
            ": too few of its prompts had both right and wrong answers; train on others, or without dynamic_sampling"
        )
        return UserError(sentence, code="too-few-kept-groups", step=reached, steps=stage.steps)
    sentence += " without an error; its output is in train.log, and the same command resumes it"
    return UserError(sentence, code="training-stopped-early", step=reached, steps=stage.steps)


def with_token_counts(rollouts: list[dict[str, Any]], model: Path) -> list[dict[str, Any]]:
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
            "a base model that is sometimes right and sometimes wrong is needed",
            code="no-learning-signal",
            steps=steps,
        )
    if len(silent) > steps / 2:
        print(f"WARNING: {run.name}: no group had a signal in {len(silent)} of {steps} steps, from step {silent[0]} on")
    truncated = [row["truncated_rate"] for row in rows if row["truncated_rate"] is not None]
    if truncated and sum(truncated) / len(truncated) > 0.5:
        print(f"WARNING: {run.name}: {sum(truncated) / len(truncated):.0%} of the completions were cut at the limit")

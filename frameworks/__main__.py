"""Check, train and export runs, whatever their framework; called by the workflow with the framework's own Python.

python -m frameworks check --framework trl
python -m frameworks train --run openr1/qwen2.5-math-7b --scale demo --seed 0 --stage 1 …
python -m frameworks export --run openr1/qwen2.5-math-7b --scale demo --step 20 …
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import job_lifetime, provenance, seeds, tables, work_lock
from contracts.errors import UserError, run_command
from contracts.run_file import SCALES, Run, inherit, read_yaml
from frameworks import adapter, launch, nodes
from frameworks.adapter import Paths
from recipes.runs import load_run, run_names


def run_id(run: Run, seed: int) -> str:
    """What tables call the run: its folder under results/<scale>/runs/."""
    return seeds.run_id(run.name, seed)


def check(arguments: argparse.Namespace) -> None:
    """Have the framework's real parser read every run of it, at every scale."""
    problems, checked = [], 0
    for name in run_names():
        try:
            for scale in SCALES:
                run = load_run(name, scale)
                if run.framework != arguments.framework:
                    continue
                adapter.load(run.framework).check(run)
                checked += 1
                print(f"{name} ({scale}): accepted by {run.framework}")
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("; ".join(problems))
    if not checked:
        raise UserError(f"no run file names the framework '{arguments.framework}'")
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(f"{checked} accepted\n")


def train(arguments: argparse.Namespace) -> None:
    """Train one stage to its end and write its training log and its rollouts."""
    run = load_run(arguments.run, arguments.scale)
    stage = run.stages[arguments.stage - 1]
    check_model(arguments.model)
    native = adapter.load(run.framework)
    native.check(run)  # seconds; before data are written, memory is taken, or a GPU is touched
    paths = Paths(problems=arguments.problems, model=arguments.model, work=arguments.work)
    job_lifetime.end_with_workflow()
    inputs = {
        "problems_sha256": provenance.sha256(arguments.problems),
        "model_sha256": provenance.sha256(arguments.model),
    }
    with work_lock.sole_user(paths.work, "training"):
        start_anew_if_changed(paths.work, inputs)
        command = native.prepare(run, stage, arguments.seed, paths)
        if command.resumed_from:
            print(f"{run.name}: going on from step {command.resumed_from}", flush=True)
        if command.resumed_from < stage.steps:
            launch.run(
                command,
                log=paths.work / "train.log",
                steps=stage.steps,
                name=run.name,
                cap=stage.rollout.get("max_response_tokens"),
                stop_on_collapse=arguments.stop_on_collapse == "True",
            )
    rows = native.read_log(run, stage, paths, run_id(run, arguments.seed))
    if command.resumed_from < stage.steps and len(rows) < stage.steps and nodes.time_limit():
        raise UserError(
            f"training {run.name} stopped after step {len(rows)} of {stage.steps}, in time before its job's end; the "
            "same command goes on from there"
        )
    check_log(rows, run, stage.steps)
    rollouts = with_lengths(native.read_rollouts(run, stage, paths, run_id(run, arguments.seed)), arguments.model)
    tables.write(pa.Table.from_pylist(rollouts, schema=tables.ROLLOUT), tables.ROLLOUT, arguments.rollouts)
    tables.write(pa.Table.from_pylist(rows, schema=tables.TRAINING_LOG), tables.TRAINING_LOG, arguments.output)
    provenance.write(
        arguments.output,
        run=run_id(run, arguments.seed),
        run_file=inherit(read_yaml(run.file), run.file),
        scale=run.scale,
        stage=stage.number,
        seed=arguments.seed,
        command=command.arguments,
        **inputs,
    )


def with_lengths(rollouts: list[dict[str, Any]], model: Path) -> list[dict[str, Any]]:
    """The rows with the tokens of each completion's text, by the model's own tokenizer.

    The trainers log texts without their tokens. What was sampled may have been split otherwise, and ends with a token
    that the text does not show, so these lengths are for distributions; means are the trainer's own, in the log.
    """
    from transformers import AutoTokenizer

    if not rollouts:
        return rollouts
    tokenizer = AutoTokenizer.from_pretrained(model)
    encoded = tokenizer([row["completion"] for row in rollouts], add_special_tokens=False)["input_ids"]
    return [row | {"completion_tokens": len(tokens)} for row, tokens in zip(rollouts, encoded, strict=True)]


def start_anew_if_changed(work: Path, inputs: dict[str, str]) -> None:
    """Remove native files that were made from other inputs: going on from them would pass them off as made from these.

    The log stays. The record is written after the removal, so that a kill between the two only repeats the removal.
    """
    record, content = work / "inputs.json", json.dumps(inputs, indent=2)
    if record.is_file() and record.read_text() == content:
        return
    for folder in (path for path in work.iterdir() if path.is_dir()):
        print(f"{folder} was made from other data or another model: starting anew", flush=True)
        shutil.rmtree(folder)
    record.write_text(content)


def check_model(folder: Path) -> None:
    """Raise UserError unless the folder holds a model and a tokenizer."""
    missing = [
        what
        for what, pattern in {
            "weights": "*.safetensors",
            "config.json": "config.json",
            "a tokenizer": "tokenizer*",
        }.items()
        if not any(folder.glob(pattern))
    ]
    if missing:
        raise UserError(f"{folder} should be a model in Hugging Face format, but has no {' and no '.join(missing)}")


def check_log(rows: list[dict[str, Any]], run: Run, steps: int) -> None:
    """Raise UserError where a training that ended well did not go well."""
    if len(rows) != steps:
        raise UserError(
            f"{run.name} should have logged {steps} steps, found {len(rows)}; delete its work folder to start again"
        )
    for column in ("reward_mean", "reward_std", "response_length_mean", "kl", "entropy", "grad_norm"):
        bad = [row["step"] for row in rows if row.get(column) is not None and math.isnan(row[column])]
        if bad:
            reason = "; every reward function gave none there" if column == "reward_mean" else ""
            raise UserError(f"{run.name}: {column} is not a number at step {bad[0]}{reason}")
    silent = [row["step"] for row in rows if row["zero_signal_rate"] == 1.0]
    if len(silent) == steps:
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
    partial = arguments.output.with_name(f".{arguments.output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    if arguments.step == 0:
        check_model(arguments.model)
        shutil.copytree(arguments.model, partial, dirs_exist_ok=True, ignore=shutil.ignore_patterns("provenance.json"))
    else:
        stage = run.stage_of(arguments.step)
        paths = Paths(problems=Path(), model=arguments.model, work=arguments.work)
        adapter.load(run.framework).export(run, stage, arguments.step - stage.first_step, paths, partial)
    check_model(partial)
    provenance.write(
        partial,
        run=run_id(run, arguments.seed),
        step=arguments.step,
        model=run.model,
        base_sha256=provenance.sha256(arguments.model),
        sha256=provenance.sha256(partial),
    )
    shutil.rmtree(arguments.output, ignore_errors=True)
    partial.rename(arguments.output)


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
        verb.add_argument("--run", required=True, help="<recipe>/<run>")
        verb.add_argument("--scale", required=True, choices=SCALES)
        verb.add_argument("--seed", type=int, required=True)
        verb.add_argument("--model", type=Path, required=True, help="folder of the model that training starts from")
        verb.add_argument("--work", type=Path, required=True, help="of the stage; survives a failed job")
        verb.add_argument("--output", type=Path, required=True)
        verb.set_defaults(call=call)
        if name == "train":
            verb.add_argument("--stage", type=int, default=1)
            verb.add_argument("--problems", type=Path, required=True, help="problem table of the training set")
            verb.add_argument(
                "--stop-on-collapse", choices=["True", "False"], default="False", help="or only warn of it"
            )
            verb.add_argument("--rollouts", type=Path, required=True, help="table of completions that were trained on")
        else:
            verb.add_argument("--step", type=int, required=True)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    run_command(main)

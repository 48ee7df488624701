"""The adapter of verl: it runs verl's own `main_ppo`, reads its log and takes its checkpoints."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from contracts import tables
from contracts.errors import UserError
from contracts.run_file import ROOT, Run, Stage
from frameworks import adapter, training_prompts
from frameworks.adapter import Command, Paths
from frameworks.verl.command import overrides, render
from frameworks.verl.cpu import processes as verl_processes
from frameworks.verl.parser_check import check
from frameworks.verl.reward_hook import FAILED
from recipes import rewards
from tasks import prompts

__all__ = ["check", "export", "prepare", "read_log", "read_rollouts"]

PROBLEM_COLUMNS = ("problem_id", *rewards.COLUMNS)
WATCHED = 256  # completions of a step that are judged again while training goes on


def write_data(run: Run, stage: Stage, paths: Paths, folder: Path) -> None:
    """The training set as verl reads it: each prompt as one message of rendered text, the problem as ground truth."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from transformers import AutoTokenizer

    prompt = prompts.load(run.prompt)
    tokenizer = AutoTokenizer.from_pretrained(paths.model)
    beginning = tokenizer("")["input_ids"]  # such as a beginning-of-text token, which verl's own encoding leaves out
    rows: list[dict[str, Any]] = []
    for problem, text in training_prompts.rendered(run, stage, paths, tokenizer):
        truth = {column: problem[column] for column in PROBLEM_COLUMNS} | {"prefill": prompt.assistant}
        rows.append(
            {
                "data_source": problem["task"],
                "prompt": [{"role": "user", "content": tokenizer.decode(beginning) + text}],
                "reward_model": {"style": "rule", "ground_truth": json.dumps(truth)},
                "extra_info": {"index": len(rows)},
            }
        )
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")


def prepare(run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
    """Write the data and return the native command; verl itself goes on from its last whole checkpoint."""
    native, scratch = paths.work / "native", adapter.scratch(paths.work)
    write_data(run, stage, paths, paths.work / "data")
    resumed_from = _last_whole_checkpoint(native / "checkpoints")
    (native / "log").mkdir(parents=True, exist_ok=True)
    shutil.rmtree(scratch, ignore_errors=True)
    environment = {
        **rewards.environment(run.rewards),
        "PYTHONPATH": str(ROOT),
        "VERL_FILE_LOGGER_PATH": str((native / "log" / f"from-{resumed_from:06d}.jsonl").absolute()),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_COLOR_PREFIX": "0",
        "RAY_DEDUP_LOGS": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    servers = []
    if run.device == "cpu":
        environment |= verl_processes.ENVIRONMENT
        servers.append(verl_processes.server(scratch, environment))
    else:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(adapter.gpus(run))
    words = render(overrides(run, stage, seed, paths, scratch))
    return Command(
        arguments=adapter.with_ray(run, scratch, [sys.executable, "-m", "verl.trainer.main_ppo", *words]),
        environment=environment,
        servers=servers,
        progress=partial(_watched_metrics, run, stage, native),
        resumed_from=resumed_from,
        scratch=scratch,
    )


def _last_whole_checkpoint(folder: Path) -> int:
    """The step that verl goes on from, 0 for none; it names a checkpoint in this file when it is written to its end."""
    named = folder / "latest_checkpointed_iteration.txt"
    last = int(named.read_text()) if named.is_file() and named.read_text().strip() else 0
    for found in folder.glob("global_step_*"):
        if int(found.name.rpartition("_")[2]) > last:
            shutil.rmtree(found)
    return last


def _step_metrics(line: str) -> dict[str, float] | None:
    """The metrics of a step from the line that verl prints for it; raises UserError where it drops a completion."""
    if FAILED in line or "Error in _run_prompt" in line:
        message = line[line.index(FAILED) :].strip() if FAILED in line else "failed to sample or to reward a prompt"
        raise UserError(f"was ended: {message}")
    printed = _printed(line)
    if not printed:
        return None
    names = {
        "critic/score/mean": "reward", "actor/loss": "loss", "critic/vf_loss": "critic_loss",
        "response_length/mean": "length", "actor/grad_norm": "grad_norm", "critic/grad_norm": "critic_grad_norm",
        "actor/kl_loss": "kl", "actor/reward_kl_penalty": "kl", "actor/entropy": "entropy",
    }  # fmt: skip
    return {name: float(printed[key]) for key, name in names.items() if key in printed}


def _printed(line: str) -> dict[str, str]:
    """All that a step's line has, under verl's names; nothing where it is another line."""
    found = re.search(r"\bstep:(\d+ - .+)", line)
    parts = re.sub(r"np\.\w+\((.*?)\)", r"\1", found[1]).split(" - ") if found else []
    return {key or "step": value for key, _, value in (part.rpartition(":") for part in parts)}


def _watched_metrics(run: Run, stage: Stage, native: Path, line: str) -> dict[str, float] | None:
    """The metrics of a step from its line, and from its dump what verl does not print: accuracy, format, signal."""
    metrics = _step_metrics(line)
    if metrics is None:
        return None
    printed = _printed(line)
    try:
        dumped = _dumped(native, int(printed["step"]))
    except (OSError, json.JSONDecodeError):  # verl writes it from another thread, and may not have done so yet
        return metrics
    metrics["truncated"] = _truncated_rate(
        stage, float(printed["response_length/max"]), float(printed["response_length/clip_ratio"])
    )
    if (silent := rewards.zero_signal_rate(_groups(dumped))) is not None:
        metrics["zero_signal"] = silent
    rates = rewards.rates(_judged(run, dumped[:: -(-len(dumped) // WATCHED)]))
    return metrics | {"accuracy": rates["accuracy"], "format_error": rates["format_error_rate"]}


def _logged(native: Path) -> dict[int, dict[str, float]]:
    """What verl's file logger wrote of each step; where a resume repeats a step, the later counts."""
    steps = {}
    for file in sorted((native / "log").glob("from-*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:  # cut off when the trainer was killed, and repeated after it
                continue
            found = {key: math.nan if value is None else value for key, value in entry["data"].items()}
            steps[int(entry["step"])] = found  # JSON has no NaN: verl writes null
    return steps


def _dumped(native: Path, step: int) -> list[dict[str, Any]]:
    """Completions of a step as verl dumped them, with the verdicts of the run's rewards (which verl does not keep)."""
    file = native / "rollouts" / f"{step}.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [row | {"problem": json.loads(row["gts"]), "group": row["uid"].split("_")[0]} for row in rows]


def _judged(run: Run, rows: list[dict[str, Any]]) -> list[rewards.Reward]:
    turns = [row["problem"]["prefill"] + row["output"] for row in rows]
    asked = [rewards.problem(*(row["problem"][column] for column in rewards.COLUMNS)) for row in rows]
    return rewards.total(rewards.load(run.rewards), turns, asked)


def _truncated_rate(stage: Stage, longest: float, clip_ratio: float) -> float:
    """verl's clip ratio counts completions as long as the longest one, also where that was not cut."""
    return clip_ratio if longest >= stage.rollout["max_response_tokens"] else 0.0


def _groups(rows: list[dict[str, Any]]) -> Iterator[list[float]]:
    for _, members in groupby(sorted(rows, key=lambda row: row["group"]), key=lambda row: row["group"]):
        yield [row["score"] for row in members]


def read_log(run: Run, stage: Stage, paths: Paths, run_name: str) -> list[dict[str, Any]]:
    """The rows of the training log from verl's file logger, and from its dumps of completions what that leaves out."""
    native, rows, elapsed = paths.work / "native", [], 0.0
    for step, logged in sorted(_logged(native).items()):
        duration = logged["timing_s/step"]
        elapsed += duration
        dumped = _dumped(native, step)
        rows.append(
            {
                "run": run_name,
                "stage": stage.number,
                "step": stage.first_step + step,
                "wall_time": elapsed,
                "reward_mean": logged["critic/score/mean"],
                "reward_std": statistics.stdev(row["score"] for row in dumped),
                **rewards.rates(_judged(run, dumped)),
                "response_length_mean": logged["response_length/mean"],
                "response_length_max": logged["response_length/max"],
                "truncated_rate": _truncated_rate(
                    stage, logged["response_length/max"], logged["response_length/clip_ratio"]
                ),
                "kl": logged.get("actor/kl_loss", logged.get("actor/reward_kl_penalty")),
                "entropy": logged.get("actor/entropy"),
                "grad_norm": logged.get("actor/grad_norm"),
                "learning_rate": logged.get("actor/lr"),
                "zero_signal_rate": rewards.zero_signal_rate(_groups(dumped)),
                "tokens_per_second": logged["perf/total_num_tokens"] / duration,
            }
        )
    return rows


def read_rollouts(run: Run, stage: Stage, paths: Paths, run_name: str) -> list[dict[str, Any]]:
    """Completions of each step from verl's dumps (`trainer.rollout_data_dir`)."""
    import pyarrow.parquet as pq

    asked = {}
    for row in pq.read_table(paths.work / "data" / "train.parquet").to_pylist():
        asked[json.loads(row["reward_model"]["ground_truth"])["problem_id"]] = row["prompt"][0]["content"]
    rows = []
    for step in range(1, stage.steps + 1):
        dumped = _dumped(paths.work / "native", step)
        kept = sorted(dumped, key=lambda row: (row["problem"]["problem_id"], row["uid"]))[: tables.ROLLOUTS_PER_STEP]
        for row, given in zip(kept, _judged(run, kept), strict=True):
            rows.append(
                {
                    "run": run_name,
                    "stage": stage.number,
                    "step": stage.first_step + step,
                    "problem_id": row["problem"]["problem_id"],
                    "prompt": asked[row["problem"]["problem_id"]],
                    "completion": row["output"],
                    "reward": row["score"],
                    "verdict": given.verdict,
                }
            )
    return rows


def export(run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
    """The weights of a checkpoint, beside the base model's configuration, tokenizer and chat template.

    Shards are merged by `verl.model_merger`, which writes bfloat16; where verl wrote whole weights too, as it is told
    to on the CPU, these are taken in the precision that they were trained in.
    """
    actor = paths.work / "native" / "checkpoints" / f"global_step_{step}" / "actor"
    if not any(actor.glob("model_world_size_*.pt")):
        raise UserError(f"{actor} has no weights to export; delete the stage's training log to have it trained again")
    with tempfile.TemporaryDirectory(dir=output.parent) as merged:
        whole = actor / "huggingface"
        if not any(whole.glob("*.safetensors")):
            words = ["merge", "--backend", "fsdp", "--local_dir", str(actor), "--target_dir", merged]
            subprocess.run([sys.executable, "-m", "verl.model_merger", *words], check=True)
            whole = Path(merged)
        for file in whole.glob("*.safetensors*"):
            shutil.copy2(file, output / file.name)
    for file in paths.model.iterdir():
        if file.is_file() and "safetensors" not in file.name and file.name != "provenance.json":
            shutil.copy2(file, output / file.name)

"""The adapter of TRL: it runs TRL's own `grpo` script, reads its log and takes its checkpoints."""

from __future__ import annotations

import ast
import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

from contracts import tables
from contracts.errors import UserError
from contracts.run_file import Run, Stage
from frameworks import adapter, nodes, training_prompts
from frameworks.adapter import Command, Paths
from frameworks.trl.command import (
    NATIVE_STEPS,
    TIME_LIMIT,
    arguments,
    check,
    devices,
    launcher,
    native_steps,
    render,
    server,
)
from recipes import rewards
from tasks import prompts

__all__ = ["check", "export", "prepare", "read_log", "read_rollouts"]

# What TRL logs of a step, and what it is called while training; each has to be a number.
METRICS = {
    "reward": "reward", "loss": "loss", "completions/mean_length": "length", "grad_norm": "grad_norm",
    "frac_reward_zero_std": "zero_signal", "completions/clipped_ratio": "truncated", "kl": "kl",
    "entropy": "entropy", "accuracy": "accuracy", "format_error_rate": "format_error",
}  # fmt: skip


def write_data(run: Run, stage: Stage, paths: Paths, folder: Path) -> None:
    """The training set as TRL reads it: prompts as text, and the columns that the rewards want."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from transformers import AutoTokenizer

    prompt = prompts.load(run.prompt)
    tokenizer = AutoTokenizer.from_pretrained(paths.model)
    rows = [
        {"prompt": text, "prefill": prompt.assistant}
        | {column: problem[column] for column in ("problem_id", *rewards.COLUMNS)}
        for problem, text in training_prompts.rendered(run, stage, paths, tokenizer)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")


def prepare(run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
    """Write the data and return the native command, going on from the last whole checkpoint."""
    data, native = paths.work / "data", paths.work / "native"
    write_data(run, stage, paths, data)
    words = render(arguments(run, stage, seed, data, paths.model, native))
    resume = _last_whole_checkpoint(native, native_steps(run, stage), math.gcd(*stage.checkpoints))
    if resume is not None:
        words += ["--resume_from_checkpoint", str(resume)]
    launch = [sys.executable]
    environment = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", **rewards.environment(run.rewards)}
    environment[NATIVE_STEPS] = str(native_steps(run, stage))
    if limit := nodes.time_limit():
        environment[TIME_LIMIT] = str(limit)
    servers: list[Command] = []
    if run.device == "cpu":
        environment |= {"OMP_NUM_THREADS": str(run.hardware["cpus"]), "CUDA_VISIBLE_DEVICES": ""}
    else:
        gpus = adapter.gpus(run)
        training = devices(run, stage)
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[:training])
        if stage.rollout.get("engine") == "vllm-server":
            serve = [sys.executable, "-m", "trl.scripts.vllm_serve", *server(run, stage, paths.model)]
            servers.append(Command(serve, {"CUDA_VISIBLE_DEVICES": ",".join(gpus[training:])}))
    count = run.hardware.get("nodes", 1)
    if run.device == "cuda" or count > 1:
        launch += ["-m", "accelerate.commands.launch", *launcher(run, stage)]
    if count > 1:
        place = ["--machine_rank", "{rank}", "--main_process_ip", "{head}", "--main_process_port", "{port}"]
        launch = [sys.executable, "-m", "frameworks.nodes", "each", str(count), *launch, *place]
    return Command(
        arguments=[*launch, "-m", "trl.scripts.grpo", *words],
        environment=environment,
        servers=servers,
        progress=_step_metrics,
        resumed_from=_step(resume) // native_steps(run, stage) if resume else 0,
    )


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _last_whole_checkpoint(native: Path, native_steps: int, interval: int) -> Path | None:
    """The newest checkpoint that can be gone on from; remains, and what was saved in between before it, are removed.

    The trainer writes trainer_state.json last. It also saves at a step that gave numbers that are none.
    """
    whole = [folder for folder in native.glob("checkpoint-*") if _is_whole(folder, native_steps)]
    last = max(whole, key=_step, default=None)
    for folder in native.glob("checkpoint-*"):
        in_between = _step(folder) % (interval * native_steps) and folder != last
        if folder not in whole or in_between:
            shutil.rmtree(folder)
    return last


def _is_whole(folder: Path, native_steps: int) -> bool:
    state = folder / "trainer_state.json"
    if _step(folder) % native_steps or not state.is_file() or not any(folder.glob("model*.safetensors")):
        return False
    try:
        logged = json.loads(state.read_text(encoding="utf-8"))["log_history"]
    except (ValueError, KeyError):
        return False
    return all(math.isfinite(entry.get(key, 0.0)) for entry in logged for key in METRICS)


def _step_metrics(line: str) -> dict[str, float] | None:
    """The metrics of one step from the line that transformers prints for it."""
    if not (line.startswith("{") and "'reward'" in line):
        return None
    try:
        printed = ast.literal_eval(line)
    except (ValueError, SyntaxError):
        return None
    return {name: float(printed[key]) for key, name in METRICS.items() if key in printed}


def read_log(run: Run, stage: Stage, paths: Paths, run_name: str) -> list[dict[str, Any]]:
    """The rows of the training log from TRL's TensorBoard events; where a resume repeats a step, the later counts.

    Where a step makes several updates, TRL reports on its completions with the first of them.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    steps: dict[int, dict[str, tuple[float, float]]] = {}
    for file in sorted((paths.work / "native").rglob("events.out.tfevents.*")):
        events = EventAccumulator(str(file), size_guidance={"scalars": 0}).Reload()
        for tag in events.Tags()["scalars"]:
            for event in events.Scalars(tag):
                before = steps.setdefault(event.step, {}).get(tag)
                if before is None or event.wall_time > before[0]:
                    steps[event.step][tag] = (event.wall_time, event.value)
    rows, elapsed, tokens_before = [], 0.0, 0.0
    for step in sorted(steps):
        logged = {tag.removeprefix("train/"): value for tag, (_, value) in steps[step].items()}
        duration = logged.get("step_time", math.nan)
        elapsed += logged.get("step_time", 0.0)
        if "reward" not in logged:
            continue
        tokens = logged.get("num_tokens", math.nan)
        rows.append(
            {
                "run": run_name,
                "stage": stage.number,
                "step": stage.first_step + 1 + (step - 1) // native_steps(run, stage),
                "wall_time": elapsed,
                "reward_mean": logged["reward"],
                "reward_std": logged.get("reward_std"),
                "accuracy": logged.get("accuracy"),
                "format_error_rate": logged.get("format_error_rate"),
                "wrong_answer_rate": logged.get("wrong_answer_rate"),
                "response_length_mean": logged.get("completions/mean_length"),
                "response_length_max": logged.get("completions/max_length"),
                "truncated_rate": logged.get("completions/clipped_ratio"),
                "kl": logged.get("kl"),
                "entropy": logged.get("entropy"),
                "grad_norm": logged.get("grad_norm"),
                "learning_rate": logged.get("learning_rate"),
                "zero_signal_rate": logged.get("frac_reward_zero_std"),
                "tokens_per_second": (tokens - tokens_before) / duration if duration else None,
            }
        )
        tokens_before = tokens
    return rows


def read_rollouts(run: Run, stage: Stage, paths: Paths, run_name: str) -> list[dict[str, Any]]:
    """Completions of each step from the tables that TRL writes beside its checkpoints (`--log_completions`)."""
    import pyarrow.parquet as pq

    rows = []
    for step in range(1, stage.steps + 1):
        native_step = 1 + (step - 1) * native_steps(run, stage)
        written = pq.read_table(paths.work / "native" / "completions" / f"completions_{native_step:05d}.parquet")
        of_step = [
            {
                "run": run_name,
                "stage": stage.number,
                "step": stage.first_step + step,
                "problem_id": row["problem_id"],
                "prompt": row["prompt"],
                "completion": row["completion"],
                "reward": row["reward"],
                "verdict": row["verdict"],
            }
            for row in written.to_pylist()
        ]
        rows += sorted(of_step, key=lambda row: row["problem_id"])[: tables.ROLLOUTS_PER_STEP]
    return rows


def export(run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
    """Take the Hugging Face files out of TRL's native checkpoint, without the optimiser's state."""
    source = paths.work / "native" / f"checkpoint-{step * native_steps(run, stage)}"
    trainer_files = {
        "training_args.bin",
        "trainer_state.json",
        "optimizer.pt",
        "optimizer.bin",
        "scheduler.pt",
        "latest",
    }
    if not source.is_dir() or not any(source.glob("model*.safetensors")):
        raise UserError(f"{source} has no weights to export; delete the stage's training log to have it trained again")
    for file in source.iterdir():
        if file.is_file() and file.name not in trainer_files and not file.name.startswith(("rng_state", "zero_to")):
            shutil.copy2(file, output / file.name)

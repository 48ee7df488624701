"""The adapter of OpenRLHF: it runs its own `train_ppo_ray`, reads its log and takes its checkpoints."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from contracts import tables
from contracts.errors import UserError
from contracts.run_file import ROOT, Run, Stage
from frameworks import adapter, training_prompts
from frameworks.adapter import Command, Paths
from frameworks.openrlhf import reward_hook as openrlhf_reward
from frameworks.openrlhf.command import arguments, check, render
from recipes import rewards
from tasks import prompts

__all__ = ["check", "export", "prepare", "read_log", "read_rollouts"]

CPU_START = ROOT / "frameworks" / "openrlhf" / "cpu" / "start"
CLOCK_SECONDS = 2.0  # by which the clocks of a cluster's nodes, and the trainer's own timing, may be off


def write_data(run: Run, stage: Stage, seed: int, paths: Paths, folder: Path) -> tuple[int, list[str]]:
    """The training set as OpenRLHF reads it, prompts as text and problems as labels; its rows, and the special tokens.

    The order hangs on the seed, because the trainer's own shuffling does not.
    """
    from transformers import AutoTokenizer

    prompt = prompts.load(run.prompt)
    tokenizer = AutoTokenizer.from_pretrained(paths.model)
    beginning = tokenizer.decode(tokenizer("")["input_ids"])  # such as a beginning-of-text token; OpenRLHF adds none
    rows: list[dict[str, Any]] = []
    for problem, text in training_prompts.rendered(run, stage, paths, tokenizer):
        label = {name: problem[name] for name in ("problem_id", *rewards.COLUMNS)}
        rows.append({"prompt": beginning + text, "label": label | {"prefill": prompt.assistant}})
    random.Random(seed).shuffle(rows)
    prompts_per_step = stage.batch.get("prompts_per_step", stage.batch["prompts_per_update"])
    recorded = tables.ROLLOUTS_PER_STEP / (prompts_per_step * stage.batch["samples_per_prompt"])
    every = max(1, int(1 / (2 * recorded)))  # twice as many as are kept, because a step draws its prompts at random
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        for index, row in enumerate(rows):
            label = row["label"] | {"recorded": index % every == 0}
            file.write(json.dumps({"prompt": row["prompt"], "label": json.dumps(label)}) + "\n")
    return len(rows), list(tokenizer.all_special_tokens)


def prepare(run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
    """Write the data and return the native command; OpenRLHF goes on from the checkpoint that it finds."""
    native, scratch = paths.work / "native", adapter.scratch(paths.work)
    rows, special_tokens = write_data(run, stage, seed, paths, paths.work / "data")
    data = (paths.work / "data" / "train.jsonl").absolute()
    flags = arguments(run, stage, seed, data, paths.model.absolute(), native.absolute(), rows)
    resumed_from = _keep_last_whole_checkpoint(native / "checkpoints", critic=run.algorithm == "ppo")
    shutil.rmtree(scratch, ignore_errors=True)
    environment = {
        **rewards.environment(run.rewards),
        **openrlhf_reward.environment(special_tokens, (native / "rollouts").absolute()),
        "PYTHONPATH": _python_path(ROOT),
        "RAY_TMPDIR": str(scratch),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_COLOR_PREFIX": "0",
        "RAY_DEDUP_LOGS": "0",
        "RAY_worker_niceness": "0",  # Ray's default, 15, would give way to every other process
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    if run.hardware.get("nodes", 1) == 1:
        environment["RAY_ADDRESS"] = ""  # never somebody else's Ray
    if run.device == "cpu":
        environment |= {
            "PYTHONPATH": _python_path(ROOT, CPU_START),
            "DS_ACCELERATOR": "cpu",
            "RAY_OVERRIDE_RESOURCES": json.dumps({"GPU": 1, "CPU": 2}),  # what the processes ask for; they share it
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",  # Snakemake sets it to the job's cores, and its threads would wait for each other
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        }
    else:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(adapter.gpus(run))
    scratch.mkdir(parents=True)
    return Command(
        arguments=adapter.with_ray(run, scratch, [sys.executable, "-m", "openrlhf.cli.train_ppo_ray", *render(flags)]),
        environment=environment,
        progress=_step_metrics,
        resumed_from=resumed_from,
        scratch=scratch,
    )


def _python_path(*folders: Path) -> str:
    """PYTHONPATH with folders in front: Ray's processes do not start where the trainer does."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])


def _keep_last_whole_checkpoint(folder: Path, critic: bool) -> int:
    """The step of the newest checkpoint that was written to its end, 0 for none; newer remains are removed.

    OpenRLHF writes metric.json into the state of actor and critic last, and the tokenizer last beside the weights; it
    goes on from the state that the file `latest` names.
    """
    states = [folder / "_actor", *([folder / "_critic"] if critic else [])]
    written = {int(found.name.removeprefix("global_step")) for state in states for found in state.glob("global_step*")}
    written |= {int(found.name[len("global_step") : -len("_hf")]) for found in folder.glob("global_step*_hf")}

    def whole(step: int) -> bool:
        weights = folder / f"global_step{step}_hf"
        finished = all((state / f"global_step{step}" / "metric.json").is_file() for state in states)
        return finished and any(weights.glob("*.safetensors")) and _is_json(weights / "tokenizer.json")

    last = max((step for step in written if whole(step)), default=0)
    for step in written:
        if step > last:
            for remains in [folder / f"global_step{step}_hf", *(state / f"global_step{step}" for state in states)]:
                shutil.rmtree(remains, ignore_errors=True)
    for state in states:
        if last:
            (state / "latest").write_text(f"global_step{last}")
        else:
            shutil.rmtree(state, ignore_errors=True)
    return last


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _step_metrics(line: str) -> dict[str, float] | None:
    """The metrics of one step from the line that OpenRLHF prints for it; raises UserError for a reward that failed."""
    if openrlhf_reward.FAILURE in line:
        raise UserError(f"was ended: {line[line.index(openrlhf_reward.FAILURE) :].strip()}")
    if "Global step " not in line:
        return None
    printed = dict(re.findall(r"'([\w/]+)': ([-\w.+]+)", line.partition("Global step ")[2]))
    names = {
        "rollout/reward_mean": "reward", "policy_loss": "loss", "critic_loss": "critic_loss", "return": "return",
        "rollout/response_length_mean": "length", "rollout/truncated_rate": "truncated", "kl": "kl",
        "entropy_loss": "entropy", "accuracy": "accuracy", "format_error_rate": "format_error",
        "actor_grad_norm": "grad_norm", "critic_grad_norm": "critic_grad_norm",
    }  # fmt: skip
    return {name: float(printed[key]) for key, name in names.items() if key in printed}


def _logged(native: Path) -> dict[int, tuple[float, dict[str, float]]]:
    """When each step ended and what OpenRLHF logged of it in TensorBoard; of a step that was repeated, the later."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    steps: dict[int, dict[str, tuple[float, float]]] = {}
    for file in sorted((native / "log").rglob("events.out.tfevents.*")):
        events = EventAccumulator(str(file), size_guidance={"scalars": 0}).Reload()
        for tag in (tag for tag in events.Tags()["scalars"] if tag.startswith("train/")):
            for event in events.Scalars(tag):
                before = steps.setdefault(event.step, {}).get(tag)
                if before is None or event.wall_time > before[0]:
                    steps[event.step][tag] = (event.wall_time, event.value)
    return {
        step: (
            min(time for time, _ in found.values()),
            {tag.removeprefix("train/"): value for tag, (_, value) in found.items()},
        )
        for step, found in sorted(steps.items())
    }


def _rollouts(native: Path, logged: dict[int, tuple[float, dict[str, float]]]) -> dict[int, list[dict[str, Any]]]:
    """What the rewards recorded, by the step that was running; what a kill cut off belongs to none."""
    rows = [
        json.loads(line)
        for file in (native / "rollouts").glob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.endswith("}")  # else cut off when the trainer was killed
    ]
    found: dict[int, list[dict[str, Any]]] = {}
    for step, (end, values) in logged.items():
        begin = end - values["timing/step_total"] - CLOCK_SECONDS
        found[step] = [row for row in rows if begin <= row["time"] <= end]
        rows = [row for row in rows if row["time"] > end or row["time"] < begin]
    return found


def _by_problem(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    ordered = sorted(rows, key=lambda row: row["problem_id"])
    return [list(members) for _, members in groupby(ordered, key=lambda row: row["problem_id"])]


def read_log(run: Run, stage: Stage, paths: Paths, run_name: str) -> list[dict[str, Any]]:
    """The rows of the training log, from OpenRLHF's TensorBoard events and what the rewards recorded.

    Raises:
        UserError: something that was logged is not a number; OpenRLHF itself trains on and ends with status 0.
    """
    native, rows, elapsed = paths.work / "native", [], 0.0
    logged = _logged(native)
    recorded = _rollouts(native, logged)
    for step, (_, values) in logged.items():
        broken = sorted(tag for tag, value in values.items() if not math.isfinite(value))
        if broken:
            raise UserError(
                f"{run.name}: {', '.join(broken)} is not a number at step {step}: what was trained is of no use; "
                f"delete {paths.work} after mending the settings"
            )
        duration = values["timing/step_total"]
        elapsed += duration
        groups = [[row["reward"] for row in group] for group in _by_problem(recorded[step])]
        rows.append(
            {
                "run": run_name,
                "stage": stage.number,
                "step": stage.first_step + step,
                "wall_time": elapsed,
                "reward_mean": values["rollout/reward_mean"],
                "reward_std": values["rollout/reward_std"],
                "accuracy": values.get("accuracy"),
                "format_error_rate": values.get("format_error_rate"),
                "wrong_answer_rate": values.get("wrong_answer_rate"),
                "response_length_mean": values["rollout/response_length_mean"],
                "response_length_max": None,
                "truncated_rate": values["rollout/truncated_rate"],
                "kl": values.get("kl"),
                "entropy": values.get("entropy_loss"),
                "grad_norm": values.get("actor_grad_norm"),
                "learning_rate": values.get("actor_lr"),
                "zero_signal_rate": rewards.zero_signal_rate(groups),
                "tokens_per_second": values["total_length"] * values["rollout/num_samples"] / duration,
            }
        )
    return rows


def read_rollouts(run: Run, stage: Stage, paths: Paths, run_name: str) -> list[dict[str, Any]]:
    """Completions of each step, from what the rewards recorded."""
    native, rows = paths.work / "native", []
    for step, recorded in _rollouts(native, _logged(native)).items():
        whole = [row for group in _by_problem([row for row in recorded if "completion" in row]) for row in group]
        rows += [
            {
                "run": run_name,
                "stage": stage.number,
                "step": stage.first_step + step,
                **{name: row[name] for name in ("problem_id", "prompt", "completion", "reward", "verdict")},
            }
            for row in whole[: tables.ROLLOUTS_PER_STEP]
        ]
    return rows


def export(run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
    """The weights of a checkpoint, beside the base model's configuration, tokenizer and chat template."""
    source = paths.work / "native" / "checkpoints" / f"global_step{step}_hf"
    if not any(source.glob("*.safetensors")):
        raise UserError(f"{source} has no weights to export; delete the stage's training log to have it trained again")
    for folder, weights in ((source, True), (paths.model, False)):
        for file in folder.iterdir():
            if file.is_file() and ("safetensors" in file.name) == weights and file.name != "provenance.json":
                shutil.copy2(file, output / file.name)

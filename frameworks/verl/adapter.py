"""The adapter of verl: it runs verl's own `main_ppo`, reads its log and exports its checkpoints."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from contracts.run_file import Run, Stage
from frameworks import (
    checkpoints,
    lora,
    stop_tokens,
    tensorboard_events,
    trainer_environment,
    training_prompts,
)
from frameworks.adapter import Adapter, Command, Paths
from frameworks.memory import CheckpointSize, Memory
from frameworks.run_settings import save_interval
from frameworks.verl import command, convert_checkpoint, memory, metrics, parser_check, running_advantage
from frameworks.verl.command import command_line, trainer_overrides
from frameworks.verl.cpu import process_environment
from system import durable, fork_server, json_lines
from system.errors import UserError

FLASH = "flash_attention_2"  # the release's default
PRINTED_STEP = re.compile(r"\bstep:(\d+) - ")
WRAPPED = re.compile(r"(?:np\.\w+|tensor)\(([^(),]*)[^()]*\)")  # numbers of NumPy and torch
DROPPED = "Error in _run_prompt"  # verl prints it where sampling or rewarding a prompt fails, and continues without


class VerlAdapter(Adapter):
    """verl's PPO and GRPO."""

    command: ClassVar = command
    parser: ClassVar = parser_check
    timers, metrics, earlier_names = metrics.TIMERS, metrics.COLUMNS, metrics.EARLIER
    # FSDP: 4 + 8, and the weights are exported from these
    checkpoint_size = CheckpointSize(state=12, weights=0, frozen=4)
    sampler_distance = "training/rollout_probs_diff_mean"
    engine_share = "actor_rollout_ref.rollout.gpu_memory_utilization"
    several_gpus = ("actor_rollout_ref.rollout.tensor_model_parallel_size",)
    preloaded = process_environment.PRELOADED
    entry_modules = ("verl.trainer.main_ppo", "verl.workers.engine_workers", "verl.model_merger", "flash_attn", "vllm")

    def newest_checkpoint(self, run: Run, stage: Stage, paths: Paths) -> int:
        """See Adapter; verl names a checkpoint in a file when it is written to its end, and resumes from that.

        Where a power cut spoiled that file or that checkpoint, an earlier one is named instead; the logs of what was
        trained from later ones are deleted, since these steps are made again.
        """
        folder = paths.native / "checkpoints"
        folders = self.removable_checkpoints(run, stage, paths)
        named = folder / "latest_checkpointed_iteration.txt"
        name = named.read_text(errors="replace").strip() if named.is_file() else ""

        def complete(step: int) -> bool:
            written = name == str(step) or step < max(folders)  # verl went on after each but the last
            return written and checkpoints.is_whole(folder / f"global_step_{step}")

        newest = checkpoints.newest_complete(folders, complete)
        if not newest:
            named.unlink(missing_ok=True)
        elif name != str(newest):
            durable.write_text(named, str(newest))
        for log in _log_file(paths, newest).parent.glob("from-*.jsonl"):
            if log > _log_file(paths, newest):
                log.unlink()
        return newest

    def removable_checkpoints(self, run: Run, stage: Stage, paths: Paths) -> dict[int, list[Path]]:
        """See Adapter."""
        folders = (paths.native / "checkpoints").glob("global_step_*")
        return {checkpoints.step_number(folder, "_"): [folder] for folder in folders}

    def prepare(self, run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
        """See Adapter; verl resumes from its newest checkpoint by itself."""
        paths = stop_tokens.with_stops(run, stage, paths)
        scratch = trainer_environment.empty_scratch(paths.work)
        self.write_data(run, stage, paths, paths.work / "data")
        log = _log_file(paths, self.newest_checkpoint(run, stage, paths))
        log.parent.mkdir(parents=True, exist_ok=True)
        environment = trainer_environment.variables(
            run, stage, paths.model, scratch
        ) | trainer_environment.ray_variables(run)
        environment |= {"VERL_FILE_LOGGER_PATH": str(log.absolute())}
        environment |= {"VERL_USE_EXTERNAL_MODULES": ",".join(external_modules(run))} | momentum_environment(stage)
        if run.device == "cpu":
            environment |= trainer_environment.ONE_CPU | process_environment.ENVIRONMENT
            fork_server.write_interpreter(scratch / "python")
        else:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(trainer_environment.take_gpus(run))
        trainer = [sys.executable, "-m", "verl.trainer.main_ppo"]
        flags = trainer_overrides(run, stage, seed, paths, scratch)
        flags.state("trainer.save_freq", save_interval(run, stage))
        trainer += command_line(flags)
        return Command(trainer_environment.with_ray_cluster(run, scratch, trainer), environment, scratch=scratch)

    def write_data(self, run: Run, stage: Stage, paths: Paths, folder: Path) -> None:
        """Write the training set as verl reads it: each prompt as one message, the question as ground truth."""
        import pyarrow as pa
        import pyarrow.parquet as pq
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(paths.model)
        beginning = training_prompts.beginning_of_text(tokenizer)
        rows: list[dict[str, Any]] = []
        for question in training_prompts.render_prompts(run, stage, paths, tokenizer):
            question["prompt"] = beginning + question["prompt"]
            rows.append(
                {
                    "data_source": question["task"],
                    "prompt": [{"role": "user", "content": question["prompt"]}],
                    "reward_model": {"style": "rule", "ground_truth": json.dumps(question)},
                    "extra_info": {"index": len(rows)},
                }
            )
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")

    def metrics_in_line(self, line: str) -> dict[str, float] | None:
        """See Adapter."""
        if PRINTED_STEP.search(line) is None:
            return None
        names = {*self.metrics, "response_length/clip_ratio"}
        return {name: value for name, value in _printed_metrics(line).items() if name in names}

    def columns_in_line(self, stage: Stage, line: str) -> dict[str, float] | None:
        """See Adapter."""
        columns = super().columns_in_line(stage, line)
        if DROPPED in line:
            raise UserError("was ended: verl failed to sample or to reward a prompt", code="prompt-dropped")
        return columns

    def metrics_of_training(self, run: Run, stage: Stage, paths: Paths) -> dict[int, dict[str, float]]:
        """See Adapter; verl's file logger begins a file for each checkpoint that training starts from."""
        steps: dict[int, dict[str, float]] = {}
        for file in sorted((paths.native / "log").glob("from-*.jsonl")):
            try:
                for step, values in _logged_steps(file):
                    steps.setdefault(step, {}).update(values)
            except (UserError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
                print(f"WARNING: the rest of {file} cannot be read, so the log has gaps: {error}", flush=True)
        return steps

    def metrics_of_file(self, file: Path) -> dict[int, dict[str, float]]:
        """See Adapter; what verl's file logger or its TensorBoard wrote, or what it printed."""
        if file.match(tensorboard_events.PATTERN):
            return tensorboard_events.metrics_of_file(file, prefix="")
        if file.suffix == ".jsonl":
            logged: dict[int, dict[str, float]] = {}
            for step, values in _logged_steps(file):
                logged.setdefault(step, {}).update(values)
            return logged
        steps: dict[int, dict[str, float]] = {}
        *lines, last = file.read_text(errors="replace").split("\n")
        for match in map(PRINTED_STEP.search, [*lines, last.rpartition(" - ")[0]]):  # its last number may be cut
            if match:  # a step's validation may be a line of its own
                steps.setdefault(int(match[1]), {}).update(_printed_metrics(match.string))
        return steps

    def our_columns(self, values: Mapping[str, float], max_response_tokens: int | None) -> dict[str, float]:
        """See Adapter; verl's clip ratio counts completions as long as the longest, even where that was not cut."""
        columns = super().our_columns(values, max_response_tokens)
        if max_response_tokens and {"response_length/clip_ratio", "response_length/max"} <= values.keys():
            cut = values["response_length/max"] >= max_response_tokens
            columns["truncated_rate"] = values["response_length/clip_ratio"] if cut else 0.0
        return columns

    def export(self, run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
        """See Adapter; the base model's configuration, tokenizer and chat template are copied beside the weights.

        `verl.model_merger` merges the shards and writes bfloat16; where verl wrote whole weights too, as it does on the
        CPU without LoRA, these are taken, in the precision of training. A LoRA adapter is merged into the base model;
        a later stage's into the frozen weights beside it.
        """
        actor = paths.native / "checkpoints" / f"global_step_{step}" / "actor"
        if not any(actor.glob("model_world_size_*.pt")):
            raise UserError(
                f"{actor} has no weights to export; delete the stage's training log to train it again",
                code="missing-weights",
            )
        with tempfile.TemporaryDirectory(dir=output.parent) as merged:
            convert_checkpoint.merge_shards(actor, Path(merged), paths.model)
            if stage.lora:
                frozen = paths.model if stage.number == 1 else Path(merged)
                lora.merge_adapter(Path(merged) / "lora_adapter", frozen, output)
            else:
                checkpoints.copy_into(checkpoints.weight_files(Path(merged)), output)
        checkpoints.copy_into(checkpoints.files_beside_weights(paths.model), output)

    def attention_implementations(self, run: Run, stage: Stage) -> set[str]:
        """See Adapter; the release loads the critic with flash attention whatever is configured."""
        chosen = self.stated_settings(run, stage).get(
            "actor_rollout_ref.model.override_config.attn_implementation", FLASH
        )
        return {chosen, FLASH} if run.algorithm == "ppo" and run.device == "cuda" else {chosen}

    def memory_per_gpu(self, run: Run, stage: Stage, gpus: int, parameters: float) -> Memory:
        """See Adapter."""
        return memory.estimate(run, stage, gpus, parameters)


def _log_file(paths: Paths, step: int) -> Path:
    """Where verl logs what it trains from a checkpoint."""
    return paths.native / "log" / f"from-{step:06d}.jsonl"


def external_modules(run: Run) -> list[str]:
    """The modules that each of verl's processes loads besides its own."""
    cpu = [process_environment.MODULE] if run.device == "cpu" else []
    return ["frameworks.verl.weight_socket", "frameworks.verl.running_advantage", *cpu]


def momentum_environment(stage: Stage) -> dict[str, str]:
    """The environment variable with the momentum of running statistics; nothing where the stage has none."""
    step_and_largest = [stage.objective.get(key) for key in ("momentum_step", "momentum_max")]
    return {running_advantage.VARIABLE: json.dumps(step_and_largest)} if None not in step_and_largest else {}


def _printed_metrics(line: str) -> dict[str, float]:
    """What verl prints for a step, `step:7 - name:value - name:value …`; what is no number is left out.

    Up to 0.4 it prints three decimals, of which a learning rate has none.
    """
    values = {}
    for part in WRAPPED.sub(r"\1", line[PRINTED_STEP.search(line).end() :]).split(" - "):  # type: ignore[union-attr]
        name, _, value = part.strip().rpartition(":")
        with contextlib.suppress(ValueError):
            if not (name.endswith("/lr") and value == "0.000"):
                values[name] = float(value)
    return values


def _logged_steps(file: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """Steps and metrics of a file of verl's file logger, which writes null for NaN."""
    for entry in json_lines.read(file, torn_last_line=True):
        values = {name: math.nan if value is None else value for name, value in entry["data"].items()}
        yield entry["step"], values


ADAPTER = VerlAdapter()

"""The adapter of TRL: it runs TRL's own `grpo` script, reads its log and exports its checkpoints."""

from __future__ import annotations

import ast
import json
import math
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from contracts.run_file import Run, Stage
from frameworks import (
    checkpoints,
    memory,
    slurm_nodes,
    stop_tokens,
    tensorboard_events,
    trainer_environment,
    training_prompts,
)
from frameworks.adapter import Adapter, Command, Paths
from frameworks.lora import STATE_BYTES
from frameworks.memory import CheckpointSize, Memory
from frameworks.run_settings import save_interval
from frameworks.trl import command, lora, metrics, parser_check
from frameworks.trl.command import (
    NATIVE_STEPS,
    TIME_LIMIT,
    Ports,
    accelerate_options,
    command_line,
    native_steps,
    server_options,
    trainer_flags,
    training_devices,
)
from system import durable, json_lines

# Files of a native checkpoint that belong to the trainer, not to the model.
SWIFT_STEP = "global_step/max_steps"  # ms-swift numbers its steps by this alone
TRAINER_FILES = {"training_args.bin", "trainer_state.json", "optimizer.pt", "optimizer.bin", "scheduler.pt", "latest"}


class TRLAdapter(Adapter):
    """TRL's GRPO."""

    command: ClassVar = command
    parser: ClassVar = parser_check
    unnumbered_text = metrics.PRINTED
    timers, metrics, imported_metrics, earlier_names = (
        metrics.TIMERS, metrics.COLUMNS, metrics.IMPORTED, metrics.EARLIER,
    )  # fmt: skip
    checkpoint_size = CheckpointSize(state=14, weights=2)
    sampler_distance = "sampling/sampling_logp_difference/mean"
    engine_share = "vllm_gpu_memory_utilization"
    colocated: ClassVar = {"vllm_enable_sleep_mode": True}
    several_gpus = ("vllm_tensor_parallel_size",)
    preloaded = (
        "torch", "torch._dynamo", "transformers", "transformers.trainer", "transformers.models.qwen2.modeling_qwen2",
        "datasets", "accelerate", "peft", "trl.trainer.grpo_trainer", "trl.scripts.grpo",
    )  # fmt: skip
    entry_modules = ("trl.scripts.grpo", "trl.scripts.vllm_serve", "accelerate.commands.launch", "deepspeed", "vllm")

    def newest_checkpoint(self, run: Run, stage: Stage, paths: Paths) -> int:
        """See Adapter; checkpoints saved in time between two that were asked for are deleted, but for the newest."""
        updates = native_steps(run, stage)
        folders = {checkpoints.step_number(folder, "-"): folder for folder in paths.native.glob("checkpoint-*")}
        newest = checkpoints.newest_complete(
            {step: [folder] for step, folder in folders.items()}, lambda step: _is_complete(folders[step], updates)
        )
        if newest:
            durable.sync_tree(folders[newest])  # before older ones are deleted
        for step, folder in folders.items():
            if step < newest and (step % (math.gcd(*stage.checkpoints) * updates) or not _is_complete(folder, updates)):
                shutil.rmtree(folder)
        return newest // updates

    def removable_checkpoints(self, run: Run, stage: Stage, paths: Paths) -> dict[int, list[Path]]:
        """See Adapter."""
        updates = native_steps(run, stage)
        folders = {checkpoints.step_number(folder, "-"): folder for folder in paths.native.glob("checkpoint-*")}
        return {step // updates: [folder] for step, folder in folders.items() if step % updates == 0}

    def prepare(self, run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
        """See Adapter."""
        scratch = trainer_environment.empty_scratch(paths.work)
        paths = stop_tokens.with_stops(run, stage, paths)
        data = paths.work / "data"
        self.write_data(run, stage, paths, data)
        ports = Ports(*slurm_nodes.free_ports(2))
        flags = trainer_flags(run, stage, seed, data, paths.model, paths.native, ports)
        flags.state("save_steps", save_interval(run, stage) * native_steps(run, stage))
        trainer = command_line(flags)
        if newest := self.newest_checkpoint(run, stage, paths):
            trainer += [
                "--resume_from_checkpoint",
                str(paths.native / f"checkpoint-{newest * native_steps(run, stage)}"),
            ]
        environment = trainer_environment.variables(run, stage, paths.model, scratch) | {
            NATIVE_STEPS: str(native_steps(run, stage))
        }
        if limit := slurm_nodes.job_end_time():
            environment[TIME_LIMIT] = str(limit)
        servers: list[Command] = []
        if run.device == "cpu":
            environment |= {"OMP_NUM_THREADS": str(run.hardware["cpus"]), "CUDA_VISIBLE_DEVICES": ""}
        else:
            gpus, training = trainer_environment.take_gpus(run), training_devices(run, stage)
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[:training])
            if stage.rollout.get("engine") == "vllm-server":
                serve = [
                    sys.executable,
                    "-m",
                    "trl.scripts.vllm_serve",
                    *server_options(run, stage, paths.model, ports),
                ]
                servers.append(Command(serve, environment | {"CUDA_VISIBLE_DEVICES": ",".join(gpus[training:])}))
        return Command([*_launch(run, stage), "-m", "trl.scripts.grpo", *trainer], environment, servers, scratch)

    def write_data(self, run: Run, stage: Stage, paths: Paths, folder: Path) -> None:
        """Write the training set as TRL reads it: prompts as text, and a column for all that the reward hook needs."""
        import pyarrow as pa
        import pyarrow.parquet as pq
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(paths.model)
        rows = training_prompts.render_prompts(run, stage, paths, tokenizer)
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")

    def metrics_in_line(self, line: str) -> dict[str, float] | None:
        """See Adapter; transformers prints an update as a Python dictionary of words; a step's first has the reward."""
        if not (line.startswith("{") and "'reward'" in line):
            return None
        try:
            values = ast.literal_eval(line)
        except (ValueError, SyntaxError):
            return None
        return {name: _number(values[name]) for name in self.metrics if name in values}

    def is_further_update(self, line: str) -> bool:
        """See Adapter."""
        return line.startswith("{") and f"'{metrics.SINCE}'" in line and "'reward'" not in line

    def metrics_of_training(self, run: Run, stage: Stage, paths: Paths) -> dict[int, dict[str, float]]:
        """See Adapter; where a step makes several updates, TRL reports its completions with the first of them."""
        updates, steps, tokens_before = native_steps(run, stage), dict[int, dict[str, float]](), 0.0
        for native_step, values in tensorboard_events.metrics_by_step(paths.native).items():
            step = 1 + (native_step - 1) // updates
            if "reward" in values:
                steps[step] = values
                tokens = values.get("num_tokens", tokens_before)  # since the training began, or was resumed
                values["num_tokens"] = tokens - (tokens_before if tokens >= tokens_before else 0.0)
                tokens_before = tokens
            elif step in steps:
                for name in ("step_time", *self.timers):
                    if name in values:
                        steps[step][name] = steps[step].get(name, 0.0) + values[name]
        return steps

    def metrics_of_file(self, file: Path) -> dict[int, dict[str, float]]:
        """See Adapter; TensorBoard events, the history in trainer_state.json, or ms-swift's logging.jsonl."""
        if file.suffix == ".jsonl":
            entries = (
                {**entry, "step": int(entry[SWIFT_STEP].partition("/")[0])}
                for entry in json_lines.read(file)
                if SWIFT_STEP in entry
            )
        elif file.suffix == ".json":
            entries = json.loads(file.read_text(encoding="utf-8"))["log_history"]
        else:
            return tensorboard_events.metrics_of_file(file)
        steps: dict[int, dict[str, float]] = {}
        for (
            entry
        ) in entries:  # an evaluation has an entry of its own; one that a resumed training repeats counts as the later
            steps.setdefault(entry["step"], {}).update(entry)
        return {step: values for step, values in steps.items() if "reward" in values}

    def per_step(self, logged: Mapping[int, Mapping[str, float]]) -> dict[int, dict[str, float]]:
        """See Adapter; steps are updates of weights, and those on completions of an earlier one are left out."""
        steps, before, tokens_before = dict[int, dict[str, float]](), 0, 0.0
        old = not any(metrics.SINCE in entry for entry in logged.values())
        for step, entry in logged.items():
            if "reward" not in entry:
                continue
            values = {name: _number(value) for name, value in entry.items()}
            if "num_tokens" in values:  # since the training began
                tokens = values["num_tokens"]
                if tokens < tokens_before:  # a resumed training may count anew
                    tokens_before = 0.0
                values["num_tokens"], tokens_before = (tokens - tokens_before) / max(step - before, 1), tokens
            if old and "reward_std" in values:
                values[metrics.GROUP_STD] = values.pop("reward_std")
            steps[step], before = values, step
        return steps

    def export(self, run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
        """See Adapter; the native checkpoint is a Hugging Face folder, or LoRA's, with the trainer's files beside."""
        source = paths.native / f"checkpoint-{step * native_steps(run, stage)}"
        checkpoints.weight_files(source)
        if stage.lora:
            lora.merge(stage, source, paths.model, output)
        else:
            checkpoints.copy_into(
                (
                    file
                    for file in source.iterdir()
                    if file.is_file()
                    and file.name not in TRAINER_FILES
                    and not file.name.startswith(("rng_state", "zero_to"))
                ),
                output,
            )
        if stage.rollout.get("stop"):
            stop_tokens.restore_generation_config(paths.model, output)

    def attention_implementations(self, run: Run, stage: Stage) -> set[str]:
        """See Adapter; without a choice transformers takes sdpa."""
        return {self.stated_settings(run, stage).get("attn_implementation", "sdpa")}

    def memory_per_gpu(self, run: Run, stage: Stage, gpus: int, parameters: float) -> Memory:
        """See Adapter; TRL computes logits of the completion alone."""
        reference = memory.reference_bytes(stage, parameters)
        training, generating = memory.deepspeed_state(run, gpus, parameters, 1, reference)
        loaded = parameters * (1 + memory.has_reference(stage)) * (2 if stage.native.get("dtype") == "bfloat16" else 4)
        if stage.lora:
            loaded = lora.frozen_bytes(stage, parameters)
            training = generating = loaded / (gpus if run.hardware.get("sharding") == "zero3" else 1)
        default = 0.3 if stage.rollout.get("engine") == "vllm-colocated" else 0.9
        return Memory(
            training=training,
            generating=generating,
            engine_share=float(stage.native.get("vllm_gpu_memory_utilization", default)),
            engine_sleeps=bool(stage.native.get("vllm_enable_sleep_mode")),
            scored_tokens=stage.rollout["max_response_tokens"],
            host=loaded * gpus / run.hardware.get("nodes", 1),  # each process loads both, before they go to its GPU
            adapter=STATE_BYTES if stage.lora else 0,
        )


def _launch(run: Run, stage: Stage) -> list[str]:
    """The interpreter; on GPUs or several nodes under accelerate, on each node."""
    count = run.hardware.get("nodes", 1)
    if run.device == "cpu" and count == 1:
        return [sys.executable]
    accelerate = [sys.executable, "-m", "accelerate.commands.launch", *accelerate_options(run, stage)]
    if count == 1:
        return accelerate
    rendezvous = ["--machine_rank", "{rank}", "--main_process_ip", "{head}", "--main_process_port", "{port}"]
    return [sys.executable, "-m", "frameworks.slurm_nodes", "each", str(count), *accelerate, *rendezvous]


def _is_complete(folder: Path, updates: int) -> bool:
    """Whether the trainer can resume from it: written to its end (trainer_state.json is last), at the end of a step.

    The trainer also saves at a step whose metrics are not numbers.
    """
    state = folder / "trainer_state.json"
    has_weights = (folder / lora.WEIGHTS).is_file() or any(folder.glob("model*.safetensors"))
    if checkpoints.step_number(folder, "-") % updates or not state.is_file() or not has_weights:
        return False
    if not checkpoints.is_whole(folder):
        return False
    try:
        content = json.loads(state.read_text(encoding="utf-8"))
        logged, step = content["log_history"], content["global_step"]
        content["stateful_callbacks"]["TrainerControl"]  # which the trainer reads when it resumes
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if step != checkpoints.step_number(folder, "-"):
        return False
    return all(math.isfinite(_number(entry.get(name, 0.0))) for entry in logged for name in metrics.COLUMNS)


def _number(value: object) -> float:
    """A metric as a number; TRL logs None, and transformers prints words."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


ADAPTER = TRLAdapter()

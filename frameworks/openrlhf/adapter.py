"""The adapter of OpenRLHF: it runs its own `train_ppo_ray`, reads its log and exports its checkpoints."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from contracts.paths import check_path
from contracts.run_file import ROOT, Run, Stage
from frameworks import checkpoints, memory, stop_tokens, tensorboard_events, trainer_environment, training_prompts
from frameworks.adapter import Adapter, Command, Paths
from frameworks.memory import CheckpointSize, Memory
from frameworks.openrlhf import command, metrics, parser_check, reward_hook
from frameworks.openrlhf.command import (
    SAMPLING,
    STATES_KEPT,
    agent_sampling,
    command_line,
    copies_of_data,
    trainer_flags,
)
from frameworks.run_settings import save_interval
from system import durable, fork_server
from system.errors import UserError

PRINTED_STEP = re.compile(r"\bGlobal step (\d+): \{")
FLASH = "flash_attention_2"  # the release's default
START = Path(__file__).with_name("start")


class OpenRLHFAdapter(Adapter):
    """OpenRLHF's PPO and GRPO."""

    command: ClassVar = command
    parser: ClassVar = parser_check
    timers, metrics, imported_metrics, earlier_names = (
        metrics.TIMERS, metrics.COLUMNS, metrics.IMPORTED, metrics.EARLIER,
    )  # fmt: skip
    checkpoint_size = CheckpointSize(state=14, weights=2, states_kept=STATES_KEPT)
    sampler_distance = "vllm_kl"
    engine_share = "vllm.gpu_memory_utilization"
    several_gpus = ("vllm.tensor_parallel_size",)
    entry_modules = ("openrlhf.trainer.ray.ppo_actor", "deepspeed.ops.adam", "flash_attn.bert_padding", "vllm")
    compiled_ops = ("FusedAdam", "CPUAdam")  # the second for `ds.adam_offload`
    preloaded = (
        "torch", "torch._dynamo", "transformers", "transformers.modeling_utils",
        "transformers.models.qwen2.modeling_qwen2", "datasets", "deepspeed", "peft", "tensorboard", "pandas",
        "vllm.v1.engine.async_llm", "vllm.v1.worker.cpu_worker", "vllm.model_executor.models.qwen2",
    )  # fmt: skip
    preload_environment: ClassVar = {"DS_ACCELERATOR": "cpu"}

    def newest_checkpoint(self, run: Run, stage: Stage, paths: Paths) -> int:
        """See Adapter; OpenRLHF resumes from the state that the file `latest` names, which is set."""
        return keep_newest_checkpoint(paths.native / "checkpoints", critic=run.algorithm == "ppo")

    def removable_checkpoints(self, run: Run, stage: Stage, paths: Paths) -> dict[int, list[Path]]:
        """See Adapter; OpenRLHF keeps the newest states itself, and all weights."""
        return weight_folders(paths.native / "checkpoints")

    def prepare(self, run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
        """See Adapter; OpenRLHF resumes from the checkpoint that it finds."""
        paths = stop_tokens.with_stops(run, stage, paths)
        scratch = trainer_environment.empty_scratch(paths.work)
        rows, special_tokens = self.write_data(run, stage, seed, paths, paths.work / "data")
        data = path_without_separators(run, paths.work.absolute() / "data", scratch) / "train.jsonl"
        flags = trainer_flags(run, stage, seed, data, paths.model.absolute(), paths.native.absolute(), rows)
        flags.state("ckpt.save_steps", save_interval(run, stage))
        environment = {
            **trainer_environment.variables(run, stage, paths.model, scratch),
            **reward_hook.environment(special_tokens),
            **trainer_environment.ray_variables(run, START),
            "RAY_TMPDIR": str(scratch),
        }
        environment |= {SAMPLING[name][0]: str(value) for name, value in agent_sampling(stage).items()}
        if run.hardware.get("nodes", 1) == 1:
            environment["RAY_ADDRESS"] = ""  # never another user's Ray
        if run.device == "cpu":
            environment |= trainer_environment.ONE_CPU
            environment |= self.preload_environment
            # Ray adds it to the trainer's ray.init()
            runtime = {"py_executable": str(fork_server.write_interpreter(scratch / "python"))}
            environment["RAY_JOB_CONFIG_JSON_ENV_VAR"] = json.dumps({"runtime_env": runtime})
            environment["RAY_OVERRIDE_RESOURCES"] = json.dumps({"GPU": 1, "CPU": 2})  # requested, and shared
        else:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(trainer_environment.take_gpus(run))
        trainer = [sys.executable, "-m", "openrlhf.cli.train_ppo_ray", *command_line(flags)]
        last = functools.partial(is_complete, paths.native / "checkpoints", stage.steps, run.algorithm == "ppo")
        return Command(
            trainer_environment.with_ray_cluster(run, scratch, trainer),
            environment,
            scratch=scratch,
            finished=last if stage.objective.get("dynamic_sampling") else None,  # else it ends with its prompts
        )

    def write_data(self, run: Run, stage: Stage, seed: int, paths: Paths, folder: Path) -> tuple[int, list[str]]:
        """Write the training set as OpenRLHF reads it: prompts as text, questions as labels, which number their copies.

        The order depends on the seed, because the trainer's own shuffling does not.

        Returns:
            The number of problems, and the special tokens, which end a turn.
        """
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(paths.model)
        beginning = training_prompts.beginning_of_text(tokenizer)
        rows = training_prompts.render_prompts(run, stage, paths, tokenizer)
        random.Random(seed).shuffle(rows)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
            for number, row in itertools.product(range(copies_of_data(run, stage, len(rows))), rows):
                label = {name: row[name] for name in training_prompts.QUESTION} | {"copy": number}
                file.write(json.dumps({"prompt": beginning + row["prompt"], "label": json.dumps(label)}) + "\n")
        return len(rows), list(tokenizer.all_special_tokens)

    def metrics_in_line(self, line: str) -> dict[str, float] | None:
        """See Adapter; OpenRLHF prints a step as a Python dictionary."""
        if "Global step " not in line:
            return None
        return {name: value for name, value in _printed_metrics(line).items() if name in self.metrics}

    def metrics_of_training(self, run: Run, stage: Stage, paths: Paths) -> dict[int, dict[str, float]]:
        """See Adapter; a trainer that was ended may not have written its last events, but it has printed them."""
        log = paths.work / "train.log"
        by_step = self.metrics_of_file(log) if log.is_file() else {}
        for step, values in tensorboard_events.metrics_by_step(paths.native / "log").items():
            by_step[step] = values | by_step.get(step, {})  # events may be those of an earlier start
        return by_step

    def metrics_of_file(self, file: Path) -> dict[int, dict[str, float]]:
        """See Adapter; TensorBoard events, or what OpenRLHF printed from 0.9 on."""
        if file.match(tensorboard_events.PATTERN):
            return tensorboard_events.metrics_of_file(file)
        steps, text = dict[int, dict[str, float]](), file.read_text(errors="replace")
        for match in map(PRINTED_STEP.search, text.split("\n")):
            if match:
                steps.setdefault(int(match[1]), {}).update(_printed_metrics(match.string))
        if not steps and "Train epoch [" in text:
            raise UserError(
                f"{file} has OpenRLHF's progress bars, which do not number the steps (up to 0.8): import the "
                "TensorBoard events, or export the run from Weights & Biases as CSV",
                code="log-of-another-program",
                path=str(file),
            )
        return steps

    def our_columns(self, values: Mapping[str, float], max_response_tokens: int | None) -> dict[str, float]:
        """See Adapter; a step's tokens are those of its mean sequence times its samples."""
        columns = super().our_columns(values, max_response_tokens)
        if "total_length" in values and "rollout/num_samples" in values:
            columns["tokens"] = values["total_length"] * values["rollout/num_samples"]
        return columns

    def export(self, run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
        """See Adapter; the base model's configuration, tokenizer and chat template are copied beside the weights."""
        checkpoints.copy_into(checkpoints.weight_files(paths.native / "checkpoints" / f"global_step{step}_hf"), output)
        checkpoints.copy_into(checkpoints.files_beside_weights(paths.model), output)

    def attention_implementations(self, run: Run, stage: Stage) -> set[str]:
        """See Adapter."""
        return {self.stated_settings(run, stage).get("ds.attn_implementation", FLASH)}

    def memory_per_gpu(self, run: Run, stage: Stage, gpus: int, parameters: float) -> Memory:
        """See Adapter."""
        models, reference = 1 + (run.algorithm == "ppo"), memory.reference_bytes(stage, parameters)
        of_node = min(gpus, run.hardware["gpus"] // run.hardware.get("nodes", 1))  # that train, at most
        if models == 2 and stage.rollout.get("engine") == "vllm-server":
            # actor and critic have GPUs of their own, and the reference model is with the actor
            gpus, models = gpus // 2, 1
        offloaded = 12 if stage.native.get("ds.adam_offload") else 0
        training, generating = memory.deepspeed_state(run, gpus, parameters, models, reference, 12 - offloaded)
        host = models * (2 + offloaded / gpus) * parameters + reference
        return Memory(
            training=training,
            generating=generating,
            engine_share=float(stage.native.get("vllm.gpu_memory_utilization", 0.95)),
            engine_sleeps=True,
            scored_tokens=memory.longest_sequence(stage),
            host=of_node * host,
        )


def _printed_metrics(line: str) -> dict[str, float]:
    """The numbers of a printed step; a dictionary that is cut gives those that are whole."""
    pairs = re.findall(r"'([\w/]+)': (?:np\.\w+\()?([-\w.+]+)\)?[,}]", line.partition("Global step ")[2])
    numbers = {}
    for name, value in pairs:
        with suppress(ValueError):
            numbers[name] = float(value)
    return numbers


def weight_folders(folder: Path) -> dict[int, list[Path]]:
    """By step, the folder of the weights in Hugging Face format."""
    folders = folder.glob("global_step*_hf")
    return {int(one.name[len("global_step") : -len("_hf")]): [one] for one in folders}


def state_folders(folder: Path, critic: bool) -> list[Path]:
    """Where the states of actor and critic are."""
    return [folder / "_actor", *([folder / "_critic"] if critic else [])]


def checkpoint_folders(folder: Path, step: int, critic: bool) -> list[Path]:
    """The folders of a step: weights first, then the states."""
    states = (state / f"global_step{step}" for state in state_folders(folder, critic))
    return [folder / f"global_step{step}_hf", *states]


def is_complete(folder: Path, step: int, critic: bool) -> bool:
    """Whether a step's checkpoint was written to its end.

    OpenRLHF writes metric.json into the state of actor and critic last, and the tokenizer last beside the weights.
    """
    weights, *states = checkpoint_folders(folder, step, critic)
    finished = all((state / "metric.json").is_file() for state in states)
    written = finished and any(weights.glob("*.safetensors")) and checkpoints.is_json(weights / "tokenizer.json")
    return written and all(map(checkpoints.is_whole, (weights, *states)))


def keep_newest_checkpoint(folder: Path, critic: bool) -> int:
    """The step of the newest complete checkpoint, 0 for none; newer remains are deleted, and `latest` names it."""
    states = state_folders(folder, critic)
    steps = {
        checkpoints.step_number(written_by, "step") for state in states for written_by in state.glob("global_step*")
    }
    steps |= weight_folders(folder).keys()
    newest = checkpoints.newest_complete(
        {step: checkpoint_folders(folder, step, critic) for step in steps},
        lambda step: is_complete(folder, step, critic),
    )
    for state in states:
        if newest:
            durable.write_text(state / "latest", f"global_step{newest}")
        else:
            shutil.rmtree(state, ignore_errors=True)
    return newest


def path_without_separators(run: Run, data: Path, scratch: Path) -> Path:
    """A path to a folder that OpenRLHF takes: it reads commas and @ as separators, and names of variants have both.

    Args:
        run: on several nodes no link is made, which one of them alone would have.
        data: the folder.
        scratch: where a link to it may be.

    Raises:
        UserError: that path, or the project's, has such a character.
    """
    if set(",@") & set(str(data)) and run.hardware.get("nodes", 1) == 1:
        scratch.mkdir(parents=True, exist_ok=True)
        link = scratch / "data"
        link.symlink_to(data)
        data = link
    for folder in (ROOT, data):
        check_path("a folder for OpenRLHF, which reads commas and @ as separators,", folder, ",@")
    return data


ADAPTER = OpenRLHFAdapter()

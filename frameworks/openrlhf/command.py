"""A run as flags of OpenRLHF's `train_ppo_ray`; the parser and the assertions of the pinned release check them.

Units. OpenRLHF's rollout batch counts prompts, its train batch counts samples; a step (`global_step`) samples a rollout
batch and makes an optimiser step of each train batch in it. Which key of the run file becomes which flag is in FLAGS;
recipes/simplerl/published_script.md has the names of OpenRLHF 0.5, for which SimpleRL's script was written.

GPUs. `vllm-colocated` puts actor, critic, reference and vLLM on all GPUs, where they take turns. `vllm-server` gives
vLLM `rollout.gpus` of its own; of the others the critic, if there is one, has half, and actor and reference the rest.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import importlib.util
import io
import math
import os
import sys
import warnings
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import patch

from contracts.errors import UserError
from contracts.run_file import Run, Stage
from frameworks.adapter import devices, updates_per_step, values
from recipes import rewards

REWARD_FILE = Path(__file__).with_name("reward_hook.py")
FLAGS = {
    "batch.samples_per_prompt": ["rollout.n_samples_per_prompt"],
    "batch.samples_per_device": ["rollout.micro_batch_size", "train.micro_batch_size"],
    "rollout.temperature": ["rollout.temperature"],
    "rollout.top_p": ["rollout.top_p"],
    "rollout.max_response_tokens": ["rollout.max_new_tokens"],
    "optimizer.learning_rate": ["actor.adam.lr"],
    "optimizer.critic_learning_rate": ["critic.adam.lr"],
    "optimizer.schedule": ["actor.lr_scheduler", "critic.lr_scheduler"],
    "optimizer.warmup_ratio": ["actor.lr_warmup_ratio", "critic.lr_warmup_ratio"],
    "optimizer.weight_decay": ["actor.adam.weight_decay", "critic.adam.weight_decay"],
    "optimizer.max_grad_norm": ["actor.max_norm", "critic.max_norm"],
    "objective.kl_coefficient": ["algo.kl.init_coef"],
    "objective.clip_ratio": ["actor.eps_clip"],
    "objective.value_clip": ["critic.value_clip"],
    "objective.gamma": ["algo.advantage.gamma"],
    "objective.gae_lambda": ["algo.advantage.lambd"],
    "objective.entropy_coefficient": ["actor.entropy_coef"],
    "objective.updates_per_batch": ["train.max_epochs"],
}
# Keys that are converted, or used elsewhere than in a flag of their own.
CONVERTED = {
    "batch.prompts_per_step": "rollout.batch_size",
    "batch.prompts_per_update": "train.batch_size",
    "rollout.max_prompt_tokens": "data.max_len",  # longer prompts are left out of the data and counted
    "rollout.engine": "train.colocate_all",
    "rollout.gpus": "vllm.num_engines",
    "optimizer.adam_beta2": "actor.adam.betas",
    "optimizer.critic_warmup_steps": "critic.freezing_steps",
    "objective.kl_in": "algo.kl.use_loss",
    "objective.kl_estimator": "algo.kl.estimator",
    "objective.loss": "actor.loss_agg_mode",
    "objective.scale_rewards": "algo.advantage.estimator",
}
LOSSES = {"grpo": "seq-mean-token-mean", "dapo": "token-mean"}
ESTIMATORS = {"group": "group_norm", "batch": "reinforce_baseline", "none": "dr_grpo"}  # of GRPO
ADAM_BETA1 = 0.9  # OpenRLHF's default, as its second, for which run files have a key
SCHEDULES = (
    "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup", "inverse_sqrt",
    "cosine_with_min_lr", "cosine_warmup_with_min_lr", "warmup_stable_decay",
)  # fmt: skip


def _refuse(run: Run, key: str, text: str) -> NoReturn:
    raise UserError(f"{run.file.name}: {run.scale}.{key}: {text}")


def _group(run: Run, gpus: int) -> dict[str, int]:
    """Nodes and GPUs per node of a group of processes."""
    per_node = devices(run) // run.hardware.get("nodes", 1)
    return {"num_nodes": max(1, gpus // per_node), "num_gpus_per_node": min(gpus, per_node)}


def layout(run: Run, stage: Stage) -> dict[str, int]:
    """GPUs of actor and reference, critic, and vLLM; on the CPU one process of each on a node."""
    total, engine = devices(run), stage.rollout.get("engine", "vllm-colocated")
    critics = int(run.algorithm == "ppo")
    if engine == "vllm-colocated":
        return {"actor": total, "critic": total * critics, "vllm": total}
    if engine != "vllm-server":
        _refuse(run, "rollout.engine", f"OpenRLHF generates with vLLM (vllm-colocated, vllm-server), not '{engine}'")
    rest = total - stage.rollout.get("gpus", 1)
    if rest < 1 + critics or rest % (1 + critics):
        _refuse(run, "rollout.gpus", f"leaves {rest} of {total} GPUs to train on, which actor and critic cannot share")
    actor = rest // (1 + critics)
    return {"actor": actor, "critic": actor * critics, "vllm": total - rest}


def _check_batch(run: Run, stage: Stage, actors: int) -> None:
    updates_per_step(run, stage)
    if "samples_per_device" not in stage.batch:
        _refuse(run, "batch.samples_per_device", "is needed by OpenRLHF; add it")
    update = stage.batch["prompts_per_update"] * stage.batch["samples_per_prompt"]
    at_once = stage.batch["samples_per_device"] * actors
    if update % at_once:
        _refuse(
            run, "batch.prompts_per_update",
            f"{stage.batch['prompts_per_update']} prompts × {stage.batch['samples_per_prompt']} samples = {update} do "
            f"not divide into {actors} devices × {stage.batch['samples_per_device']} samples_per_device = {at_once}",
        )  # fmt: skip


def passes(run: Run, stage: Stage, rows: int) -> tuple[int, int]:
    """Steps in one pass over `rows` problems, and passes: whole steps only, what is left over is not used.

    Raises:
        UserError: there are too few problems for a step, or the stage would end within a pass.
    """
    prompts = stage.batch.get("prompts_per_step", stage.batch["prompts_per_update"])
    whole = rows // prompts
    if not whole:
        _refuse(run, "batch.prompts_per_step", f"{prompts} prompts are more than the {rows} of {stage.dataset}")
    if stage.steps <= whole:
        return stage.steps, 1
    if stage.steps % whole:
        least = stage.steps - stage.steps % whole
        _refuse(
            run, "steps", f"OpenRLHF ends with a pass, {whole} steps over {rows} problems: {least} or {least + whole}"
        )
    return whole, stage.steps // whole


def arguments(
    run: Run, stage: Stage, seed: int, data: Path, model: Path, output: Path, rows: int | None = None
) -> dict[str, tuple[Any, str]]:
    """Every flag with its value and the key of the run file that it comes from; `rows`: how many problems there are."""
    found: dict[str, tuple[Any, str]] = {}

    def put(flag: str, value: Any, key: str = "") -> None:
        found[flag] = (value, f"{run.scale}.{key}" if key else "")

    given = values(stage)
    for key, value in given.items():
        if key not in FLAGS and key not in CONVERTED:
            _refuse(run, key, "has no meaning for OpenRLHF; take it out")
        for flag in FLAGS.get(key, []):
            put(flag, value, key)
    gpus = layout(run, stage)
    _check_batch(run, stage, gpus["actor"])

    prompts = stage.batch.get("prompts_per_step", stage.batch["prompts_per_update"])
    put("rollout.batch_size", prompts, "batch.prompts_per_step")
    put(
        "train.batch_size",
        stage.batch["prompts_per_update"] * stage.batch["samples_per_prompt"],
        "batch.prompts_per_update",
    )
    per_pass, episodes = passes(run, stage, rows) if rows is not None else (stage.steps, 1)
    put("data.max_samples", per_pass * prompts, "steps")
    put("train.num_episodes", episodes, "steps")
    longest = given.get("rollout.max_prompt_tokens", 1024) + given.get("rollout.max_response_tokens", 1024)
    put("data.max_len", longest, "rollout.max_prompt_tokens")
    if "optimizer.adam_beta2" in given:
        for entity in ("actor", "critic"):
            put(f"{entity}.adam.betas", [ADAM_BETA1, given["optimizer.adam_beta2"]], "optimizer.adam_beta2")
    if "optimizer.critic_warmup_steps" in given:  # OpenRLHF names the last such step, counted from 0
        put("critic.freezing_steps", given["optimizer.critic_warmup_steps"] - 1, "optimizer.critic_warmup_steps")
    if given.get("optimizer.schedule", SCHEDULES[0]) not in SCHEDULES:
        _refuse(
            run, "optimizer.schedule", f"transformers has {', '.join(SCHEDULES)}, not '{given['optimizer.schedule']}'"
        )
    _objective(run, given, put)

    put("actor.model_name_or_path", str(model), "model")
    put("data.prompt_dataset", str(data), "dataset")
    put("data.input_key", "prompt")
    put("data.label_key", "label")
    put("reward.remote_url", str(REWARD_FILE), "rewards")
    put("train.seed", seed)
    put("ckpt.path", str(output / "checkpoints"))
    put("ckpt.output_dir", str(output / "final"))
    put("ckpt.save_steps", math.gcd(*stage.checkpoints), "checkpoints")
    put("ckpt.save_hf", True)
    put("ckpt.load_enable", True)
    put("ckpt.max_num", 2)  # of the states that a resume needs, each many times the model; HF folders are not counted
    put("logger.tensorboard_dir", str(output))
    put("logger.wandb.run_name", "log")
    _devices(run, stage, gpus, put)
    for flag, value in stage.native.items():
        if flag in found:
            _refuse(run, f"native.{flag}", f"is set by {found[flag][1] or 'the adapter'} already")
        put(flag, value, f"native.{flag}")
    return found


def _objective(run: Run, given: dict[str, Any], put: Any) -> None:
    place = given.get("objective.kl_in", "reward" if run.algorithm == "ppo" else "loss")
    put("algo.kl.use_loss", place == "loss", "objective.kl_in")
    put(
        "algo.kl.estimator",
        given.get("objective.kl_estimator", "k3" if place == "loss" else "k1"),
        "objective.kl_estimator",
    )
    if "objective.loss" in given:
        if given["objective.loss"] not in LOSSES:
            _refuse(run, "objective.loss", f"OpenRLHF has {', '.join(LOSSES)}, not '{given['objective.loss']}'")
        put("actor.loss_agg_mode", LOSSES[given["objective.loss"]], "objective.loss")
    scale = given.get("objective.scale_rewards", "batch" if run.algorithm == "ppo" else "group")
    if run.algorithm == "ppo":
        if scale == "group":
            _refuse(run, "objective.scale_rewards", "with a critic OpenRLHF divides advantages by the batch's, or not")
        put("algo.advantage.estimator", "gae", "algorithm")
        put("algo.advantage.no_std_norm", scale == "none", "objective.scale_rewards")
    else:
        put("algo.advantage.estimator", ESTIMATORS[scale], "objective.scale_rewards")


def _devices(run: Run, stage: Stage, gpus: dict[str, int], put: Any) -> None:
    for entity in ("actor", "ref", "critic"):
        for key, value in _group(run, gpus["actor" if entity == "ref" else entity] or 1).items():
            put(f"{entity}.{key}", value, "hardware.gpus")
    parallel = int(stage.native.get("vllm.tensor_parallel_size", 1))
    if gpus["vllm"] % parallel:
        _refuse(
            run, "native.vllm.tensor_parallel_size", f"{gpus['vllm']} GPUs do not divide into engines of {parallel}"
        )
    put("vllm.num_engines", gpus["vllm"] // parallel, "rollout.gpus")
    colocated = stage.rollout.get("engine", "vllm-colocated") == "vllm-colocated"
    put("train.colocate_all", colocated, "rollout.engine")
    put("train.colocate_actor_ref", not colocated, "rollout.engine")
    put("vllm.enable_sleep", colocated and run.device == "cuda", "rollout.engine")
    put("ds.enable_sleep", colocated and run.device == "cuda", "rollout.engine")
    put(
        "ds.zero_stage",
        int(run.hardware.get("sharding", "none").removeprefix("zero").replace("none", "2")),
        "hardware.sharding",
    )
    if run.device == "cpu":
        put("vllm.sync_backend", "gloo", "hardware.gpus")
        put("vllm.enforce_eager", True, "hardware.gpus")
        put("vllm.gpu_memory_utilization", 0.05, "hardware.gpus")
        put("ds.attn_implementation", "eager", "hardware.gpus")


def render(flags: dict[str, tuple[Any, str]]) -> list[str]:
    """The flags as words of a command line; what is False is left out."""
    words: list[str] = []
    for flag, (value, _) in flags.items():
        if value is False:
            continue
        words.append(f"--{flag}")
        if isinstance(value, list):
            words.extend(str(item) for item in value)
        elif value is not True:
            words.append(str(value))
    return words


class _Refused(Exception):
    pass


class _StrictParser(argparse.ArgumentParser):
    """The release's parser, without the abbreviations that argparse takes by default."""

    def __init__(self) -> None:
        super().__init__(allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise _Refused(message)

    def parse_args(self, *_: Any) -> Any:  # type: ignore[override]
        parsed, unknown = self.parse_known_args()
        flags = [word[2:] for word in unknown if word.startswith("--")]
        if flags:
            known = [option[2:] for option in self._option_string_actions if option.startswith("--")]
            near = difflib.get_close_matches(flags[0], known, n=1)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            raise _Refused(f"this release of OpenRLHF has no setting '{flags[0]}'{meant}")
        if unknown:
            raise _Refused(f"unexpected '{' '.join(unknown)}'")
        return parsed


def parse(words: list[str]) -> Any:
    """Have the release's own parser and assertions read a command line, without launching what it says.

    They stand under `if __name__ == "__main__"` in its script, whose last statement launches the training.

    Raises:
        _Refused, AssertionError: the command line is not accepted.
    """
    spec = importlib.util.find_spec("openrlhf")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("OpenRLHF is not installed; build its environment with: python3.11 envs/build.py openrlhf")
    root = Path(spec.submodule_search_locations[0])
    script = root / "cli" / "train_ppo_ray.py"
    guarded = [node for node in ast.parse(script.read_text()).body if isinstance(node, ast.If)]
    *body, launch = guarded[-1].body
    if ast.unparse(launch) != "train(args)":
        raise RuntimeError(f"{script} ends otherwise than the release that this is made for")
    config: dict[str, Any] = {"__name__": "config"}
    exec(compile((root / "utils" / "config.py").read_text(), "config.py", "exec"), config)
    kept = [node for node in body if not (isinstance(node, ast.ImportFrom) and node.module == "openrlhf.utils.config")]
    names = {
        "argparse": SimpleNamespace(ArgumentParser=_StrictParser),
        "os": os,
        "datetime": datetime,
        "hierarchize": config["hierarchize"],
    }
    with patch.object(sys, "argv", ["train_ppo_ray", *words]), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(ast.Module(body=kept, type_ignores=[]), str(script), "exec"), names)
    return names["args"]


def check(run: Run) -> None:
    """Let OpenRLHF's parser and assertions read the rendered commands, and load the rewards."""
    for stage in run.stages:
        flags = arguments(run, stage, 0, Path("data.jsonl"), Path("model"), Path("output"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of packages that torch imports
                parse(render(flags))
        except (_Refused, AssertionError) as error:
            message = str(error)
            key = next((key for flag, (_, key) in flags.items() if key and _names(message, flag)), "")
            raise UserError(f"{run.file.name}: {key + ': ' if key else ''}OpenRLHF refuses it: {message}") from None
    for reward in run.rewards:
        try:
            rewards.load([reward])
        except (ImportError, AttributeError) as error:
            raise UserError(f"{run.file.name}: rewards: {reward['function']} cannot be loaded ({error})") from None


def _names(message: str, flag: str) -> bool:
    return f"--{flag}:" in message or f"'{flag}'" in message

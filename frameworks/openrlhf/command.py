"""A run as flags of OpenRLHF's `train_ppo_ray`.

Units. OpenRLHF's rollout batch counts prompts, its train batch counts samples; a step (`global_step`) samples a rollout
batch and makes an optimiser step of each train batch in it. FLAGS says which key of a run file becomes which flag;
recipes/simplerl/published_script.md has the names of OpenRLHF 0.5, for which SimpleRL's script was written.

GPUs. `vllm-colocated` puts actor, critic, reference and vLLM on all GPUs, where they take turns. `vllm-server` gives
vLLM `rollout.gpus` of its own; of the others the critic, if there is one, has half, and actor and reference the rest.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from contracts.run_file import Run, Stage
from frameworks.command_settings import CommandSettings, Flags, option_in_words
from frameworks.openrlhf import objective
from frameworks.run_settings import (
    check_batch,
    check_critic,
    check_known,
    choose,
    devices,
    prompts_per_step,
    refuse,
    values,
)

REWARD_FILE = Path(__file__).with_name("reward_hook.py")
AGENT_FILE = Path(__file__).with_name("sampling_agent.py")
SAMPLING = {  # what AGENT_FILE changes: by vLLM's name, the environment variable that it reads, and its type
    "temperature": ("CROSSZERO_SAMPLING_TEMPERATURE", float), "top_k": ("CROSSZERO_SAMPLING_TOP_K", int),
}  # fmt: skip
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
    "objective.dual_clip": ["actor.dual_clip"],
    "objective.value_clip": ["critic.value_clip"],
    "objective.gamma": ["algo.advantage.gamma"],
    "objective.gae_lambda": ["algo.advantage.lambd"],
    "objective.entropy_coefficient": ["actor.entropy_coef"],
    "objective.epochs_per_batch": ["train.max_epochs"],
}
# Keys that are converted, or used elsewhere than in a flag of their own, with the flag that they end up in.
CONVERTED = {
    "batch.prompts_per_step": "rollout.batch_size",
    "batch.prompts_per_update": "train.batch_size",
    "rollout.max_prompt_tokens": "data.max_len",  # longer prompts are left out of the training set
    "rollout.stop": "actor.model_name_or_path",  # frameworks/stop_tokens.py
    "rollout.top_k": "train.agent_func_path",
    "rollout.engine": "train.colocate_all",
    "rollout.gpus": "vllm.num_engines",
    "optimizer.adam_beta2": "actor.adam.betas",
    "optimizer.critic_warmup_steps": "critic.freezing_steps",
    "objective.kl_in": "algo.kl.use_loss",
    "objective.kl_estimator": "algo.kl.estimator",
    "objective.loss_aggregation": "actor.loss_agg_mode",
    "objective.scale_rewards": "algo.advantage.estimator",
    "objective.unbiased_kl_gradient": "algo.kl.unbiased_gradient",
    "objective.sampler_correction": "algo.advantage.is_correction_level",
    "objective.logits_temperature": "rollout.temperature, train.agent_func_path",
    "objective.reward_clip": "reward.clip_range",
    "objective.estimator": "algo.advantage.estimator",
    "objective.policy_loss": "actor.policy_loss_type",
    "objective.clip_ratio_high": "actor.eps_clip_low_high",
    "objective.overlong_buffer": "reward.overlong_buffer_len",
    "objective.overlong_penalty": "reward.overlong_penalty_factor",
    "objective.dynamic_sampling": "algo.dynamic_filtering_enable",
    "objective.correction_form": "algo.advantage.is_correction_mode",
    "objective.correction_low": "algo.advantage.is_correction_threshold",
    "objective.correction_high": "algo.advantage.is_correction_threshold",
}
CORRECTIONS = {"none": "off", "token": "token", "sequence_mean": "seq"}
CORRECTION_BOUNDS = (0.5, 5.0)  # OpenRLHF's
NO_REWARD_CLIP = 1_000_000  # OpenRLHF always clips rewards, GRPO's after they were normalised
ADAM_BETA1 = 0.9  # OpenRLHF's default; run files have a key for the second beta alone
WARMUP_RATIO = 0.03  # OpenRLHF's default
ENGINES = dict.fromkeys(("vllm-colocated", "vllm-server"))
CPU = {
    "vllm.sync_backend": "gloo", "vllm.enforce_eager": True, "vllm.gpu_memory_utilization": 0.05,
    "ds.attn_implementation": "eager",
}  # fmt: skip
PROMPTS_SAMPLED = 10  # for each that is kept, at most, where groups without a signal are sampled again
STEADY = ("constant", "constant_with_warmup", "inverse_sqrt")  # schedules that do not know when training ends
STATES_KEPT = 2  # of the states that a resume needs, each many times the size of the model
SCHEDULES = (
    "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup", "inverse_sqrt",
    "cosine_with_min_lr", "cosine_warmup_with_min_lr", "warmup_stable_decay",
)  # fmt: skip


def _group(run: Run, gpus: int) -> dict[str, int]:
    """Nodes and GPUs per node of a group of processes."""
    per_node = devices(run) // run.hardware.get("nodes", 1)
    return {"num_nodes": max(1, gpus // per_node), "num_gpus_per_node": min(gpus, per_node)}


def gpu_layout(run: Run, stage: Stage) -> dict[str, int]:
    """GPUs of actor and reference, critic, and vLLM; on the CPU one process of each on a node."""
    total, engine = devices(run), stage.rollout.get("engine", "vllm-colocated")
    critics = int(run.algorithm == "ppo")
    if engine == "vllm-colocated":
        return {"actor": total, "critic": total * critics, "vllm": total}
    choose(run, "OpenRLHF", "rollout.engine", engine, ENGINES)
    rest = total - stage.rollout.get("gpus", 1)
    if rest < 1 + critics or rest % (1 + critics):
        text = f": leaves {rest} of {total} GPUs to train on, which actor and critic cannot share"
        raise refuse(run, "rollout.gpus", text, "too-few-gpus")
    actor = rest // (1 + critics)
    return {"actor": actor, "critic": actor * critics, "vllm": total - rest}


def data_passes(run: Run, stage: Stage, rows: int) -> tuple[int, int]:
    """Steps in one pass over the training set, and number of passes; problems that do not fill a step are not used.

    With dynamic sampling nobody knows how many prompts the steps take: there are PROMPTS_SAMPLED times as many as they
    keep, in one pass, because OpenRLHF trains on what is left at a pass's end as on a whole step. The training is
    ended at its last step (OpenRLHFAdapter.prepare).

    Args:
        run: for messages.
        stage: says how many steps there are, and how many prompts each samples.
        rows: problems in the training set.

    Raises:
        UserError: there are too few problems for a step, or the stage would end within a pass.
    """
    prompts = stage.batch.get("prompts_per_step", stage.batch["prompts_per_update"])
    whole = rows // prompts
    if not whole:
        text = f": {prompts} prompts are more than the {rows} of {stage.dataset}"
        raise refuse(run, "batch.prompts_per_step", text, "too-few-problems")
    if stage.objective.get("dynamic_sampling"):
        return PROMPTS_SAMPLED * stage.steps, 1
    if stage.steps <= whole:
        return stage.steps, 1
    if stage.steps % whole:
        before = stage.steps - stage.steps % whole
        text = f": OpenRLHF ends with a pass, {whole} steps over {rows} problems: {before} or {before + whole}"
        raise refuse(run, "steps", text, "ends-within-a-pass")
    return whole, stage.steps // whole


def copies_of_data(run: Run, stage: Stage, rows: int) -> int:
    """How often the file of the training set has each of its problems, so that one pass is long enough."""
    if not stage.objective.get("dynamic_sampling"):
        return 1
    per_pass, _ = data_passes(run, stage, rows)
    return -(-per_pass * prompts_per_step(run, stage) // rows)


def trainer_flags(
    run: Run, stage: Stage, seed: int, data: Path, model: Path, output: Path, rows: int | None = None
) -> CommandSettings:
    """Every flag with its value and the key of the run file that it comes from.

    Args:
        run: the run.
        stage: one of its stages.
        seed: the trainer's.
        data: file of the training set.
        model: folder that training starts from.
        output: folder of native checkpoints and logs.
        rows: problems in the training set; None where it is not written yet.

    Raises:
        UserError: OpenRLHF does not have what the run wants, or the batch, the GPUs or the passes do not divide.
    """
    keys, flags = values(stage), CommandSettings(run)
    for key in keys:
        if key.startswith("lora."):
            text = ": OpenRLHF gives vLLM the weights under an adapter's names, which vLLM does not know; remove it"
            raise refuse(run, key, text, "setting-not-in-framework")
    check_known(run, "OpenRLHF", keys, (*FLAGS, *CONVERTED))
    check_critic(run, keys, discounting=keys.get("objective.estimator") == "reinforce")
    for key, value in keys.items():
        for flag in FLAGS.get(key, []):
            flags.state(flag, value, key)
    gpus = gpu_layout(run, stage)
    check_batch(run, stage, gpus["actor"])
    _state_batch(flags, stage, keys, rows)
    _state_optimizer(flags, keys)
    objective.state(flags, keys)
    _state_new_defaults(flags, stage, keys)
    _state_files(flags, stage, seed, data, model, output)
    _state_devices(flags, stage, gpus)
    flags.state_native(stage)
    return flags


def stated_settings(run: Run, stage: Stage, rows: int | None = None) -> CommandSettings:
    """See frameworks.adapter.SettingsOfRuns; `rows` as in `arguments`."""
    return trainer_flags(run, stage, 0, Path("data"), Path(run.model), Path("output"), rows)


def agent_sampling(stage: Stage) -> dict[str, float]:
    """What AGENT_FILE changes of sampling: a temperature that the logits are not divided by; top k."""
    keys = values(stage)
    sampled = float(keys.get("rollout.temperature", 1.0))
    own = {"temperature": sampled} if keys.get("objective.logits_temperature", sampled) != sampled else {}
    return own | ({"top_k": keys["rollout.top_k"]} if "rollout.top_k" in keys else {})


def _state_batch(flags: CommandSettings, stage: Stage, keys: dict[str, Any], rows: int | None) -> None:
    prompts = stage.batch.get("prompts_per_step", stage.batch["prompts_per_update"])
    completions = stage.batch["prompts_per_update"] * stage.batch["samples_per_prompt"]
    flags.state("rollout.batch_size", prompts, "batch.prompts_per_step")
    flags.state("train.batch_size", completions, "batch.prompts_per_update")
    per_pass, episodes = data_passes(flags.run, stage, rows) if rows is not None else (stage.steps, 1)
    flags.state("data.max_samples", per_pass * prompts, "steps")
    flags.state("train.num_episodes", episodes, "steps")
    longest = keys.get("rollout.max_prompt_tokens", 1024) + keys.get("rollout.max_response_tokens", 1024)
    flags.state("data.max_len", longest, "rollout.max_prompt_tokens")
    if stage.objective.get("dynamic_sampling") and rows is not None:
        _state_schedule_of_kept(flags, keys)


def _state_schedule_of_kept(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """The warm-up as a share of all prompts that may be sampled, over which OpenRLHF lays the learning rate."""
    if keys.get("optimizer.schedule", SCHEDULES[0]) not in STEADY:
        text = (
            f": OpenRLHF would end it with the prompts, not with the steps; with dynamic_sampling: {', '.join(STEADY)}"
        )
        raise refuse(flags.run, "optimizer.schedule", text, "settings-conflict")
    share = keys.get("optimizer.warmup_ratio", WARMUP_RATIO) / PROMPTS_SAMPLED
    for entity in ("actor", "critic"):
        flags.state(f"{entity}.lr_warmup_ratio", share, "optimizer.warmup_ratio")


def _state_optimizer(flags: CommandSettings, keys: dict[str, Any]) -> None:
    if "optimizer.adam_beta2" in keys:
        for entity in ("actor", "critic"):
            betas = [ADAM_BETA1, keys["optimizer.adam_beta2"]]
            flags.state(f"{entity}.adam.betas", betas, "optimizer.adam_beta2")
    if "optimizer.critic_warmup_steps" in keys:  # OpenRLHF names the last such step, counted from 0
        last = keys["optimizer.critic_warmup_steps"] - 1
        flags.state("critic.freezing_steps", last, "optimizer.critic_warmup_steps")
    if (schedule := keys.get("optimizer.schedule", SCHEDULES[0])) not in SCHEDULES:
        text = f": transformers has {', '.join(SCHEDULES)}, not '{schedule}'"
        raise refuse(flags.run, "optimizer.schedule", text, "value-not-in-framework")


def _state_new_defaults(flags: CommandSettings, stage: Stage, keys: dict[str, Any]) -> None:
    """Settings whose defaults this release has changed: always stated."""
    correction = keys.get("objective.sampler_correction", "none")
    own = agent_sampling(stage)
    if "top_k" in own:
        flags.state("train.agent_func_path", str(AGENT_FILE), "rollout.top_k")
    if "temperature" in own:  # rollout.temperature is the actor's; AGENT_FILE samples at another
        if correction != "none":
            text = ": compares probabilities at one temperature; remove logits_temperature"
            raise refuse(flags.run, "objective.sampler_correction", text, "settings-conflict")
        divisor = keys["objective.logits_temperature"]
        flags.state("rollout.temperature", divisor, "objective.logits_temperature")
        flags.state("train.agent_func_path", str(AGENT_FILE), "objective.logits_temperature")
    unbiased = keys.get("objective.unbiased_kl_gradient", False)
    flags.state("algo.kl.unbiased_gradient", unbiased, "objective.unbiased_kl_gradient")
    level = choose(flags.run, "OpenRLHF", "objective.sampler_correction", correction, CORRECTIONS)
    flags.state("algo.advantage.is_correction_level", level, "objective.sampler_correction")
    if form := keys.get("objective.correction_form"):
        if form == "truncate" and correction == "sequence_mean":
            text = ": sequences that are judged by their mean are dropped or kept"
            raise refuse(flags.run, "objective.correction_form", text, "value-not-in-framework")
        mode = {"truncate": "clip", "mask": "mask"}[form]
        flags.state("algo.advantage.is_correction_mode", mode, "objective.correction_form")
    bounds = [keys.get(f"objective.correction_{end}") for end in ("low", "high")]
    if bounds != [None, None]:
        low, high = (
            default if bound is None else bound for bound, default in zip(bounds, CORRECTION_BOUNDS, strict=True)
        )
        flags.state("algo.advantage.is_correction_threshold", [low, high], "objective.correction_high")
    if "objective.reward_clip" in keys and flags.run.algorithm != "ppo":
        text = ": OpenRLHF would clip GRPO's advantages, not its rewards; remove it"
        raise refuse(flags.run, "objective.reward_clip", text, "setting-not-in-framework")
    clip = keys.get("objective.reward_clip", NO_REWARD_CLIP)
    flags.state("reward.clip_range", [-clip, clip], "objective.reward_clip")


def _state_files(flags: CommandSettings, stage: Stage, seed: int, data: Path, model: Path, output: Path) -> None:
    flags.state("actor.model_name_or_path", str(model), "model")
    flags.state("data.prompt_dataset", str(data), "dataset")
    flags.state("data.input_key", "prompt")
    flags.state("data.label_key", "label")
    flags.state("reward.remote_url", str(REWARD_FILE), "rewards")
    flags.state("train.seed", seed)
    flags.state("ckpt.path", str(output / "checkpoints"))
    flags.state("ckpt.output_dir", str(output / "final"))
    flags.state("ckpt.save_steps", math.gcd(*stage.checkpoints), "checkpoints")
    flags.state("ckpt.save_hf", True)
    flags.state("ckpt.load_enable", True)
    flags.state("ckpt.max_num", STATES_KEPT)  # Hugging Face folders are not counted, and all are kept
    flags.state("logger.tensorboard_dir", str(output))
    flags.state("logger.wandb.run_name", "log")  # the folder of TensorBoard's events, too


def _state_devices(flags: CommandSettings, stage: Stage, gpus: dict[str, int]) -> None:
    run = flags.run
    for entity in ("actor", "ref", "critic"):
        for name, count in _group(run, gpus["actor" if entity == "ref" else entity] or 1).items():
            flags.state(f"{entity}.{name}", count, "hardware.gpus")
    parallel = int(stage.native.get("vllm.tensor_parallel_size", 1))
    if gpus["vllm"] % parallel:
        text = f": {gpus['vllm']} GPUs do not divide into engines of {parallel}"
        raise refuse(run, "native.vllm.tensor_parallel_size", text, "gpus-do-not-divide")
    flags.state("vllm.num_engines", gpus["vllm"] // parallel, "rollout.gpus")
    colocated = stage.rollout.get("engine", "vllm-colocated") == "vllm-colocated"
    flags.state("train.colocate_all", colocated, "rollout.engine")
    flags.state("train.colocate_actor_ref", not colocated, "rollout.engine")
    flags.state("vllm.enable_sleep", colocated and run.device == "cuda", "rollout.engine")
    flags.state("ds.enable_sleep", colocated and run.device == "cuda", "rollout.engine")
    zero = int(run.hardware.get("sharding", "none").removeprefix("zero").replace("none", "2"))
    flags.state("ds.zero_stage", zero, "hardware.sharding")
    if run.device == "cpu":
        for flag, value in CPU.items():
            flags.state(flag, value, "hardware.gpus")


def command_line(flags: Flags) -> list[str]:
    """The flags as words of a command line; what is False is left out."""
    arguments: list[str] = []
    for flag, (value, _) in flags.items():
        if value is not False:
            values = value if isinstance(value, list) else [] if value is True else [value]
            arguments += option_in_words(flag, values)
    return arguments

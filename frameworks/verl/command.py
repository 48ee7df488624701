"""A run as Hydra overrides of verl's `main_ppo`.

Units. verl counts prompts in `data.train_batch_size` (sampled in one step) and in `ppo_mini_batch_size` (behind one
optimiser step), completions in `ppo_micro_batch_size_per_gpu`. Run files state all three in these units already; a
batch that does not divide is refused. OVERRIDES says which key of a run file becomes which override.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from contracts import model_dimensions
from contracts.run_file import Run, Stage
from frameworks import adapter, run_settings, trainer_environment
from frameworks.command_settings import CommandSettings, Flags
from frameworks.lora import ALL_LAYERS
from frameworks.run_settings import check_batch, check_critic, check_known, choose, refuse
from frameworks.verl import objective
from frameworks.verl.setting_groups import ACTOR, MODEL, REF, ROLLOUT

# Prompts are rendered already: the one message of each goes to the tokenizer as it is.
PASS_THROUGH_TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
OVERRIDES: dict[str, list[str]] = {
    "batch.samples_per_prompt": [f"{ROLLOUT}.n"],
    "batch.samples_per_device": [
        f"{ACTOR}.ppo_micro_batch_size_per_gpu",
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu",
        f"{REF}.log_prob_micro_batch_size_per_gpu",
        "critic.ppo_micro_batch_size_per_gpu",
    ],
    "batch.prompts_per_update": [f"{ACTOR}.ppo_mini_batch_size"],
    "rollout.temperature": [f"{ROLLOUT}.temperature"],
    "rollout.top_p": [f"{ROLLOUT}.top_p"],
    "rollout.top_k": [f"{ROLLOUT}.top_k"],
    "rollout.max_prompt_tokens": ["data.max_prompt_length"],
    "rollout.max_response_tokens": ["data.max_response_length"],
    "optimizer.learning_rate": [f"{ACTOR}.optim.lr"],
    "optimizer.critic_learning_rate": ["critic.optim.lr"],
    "optimizer.warmup_ratio": [f"{ACTOR}.optim.lr_warmup_steps_ratio", "critic.optim.lr_warmup_steps_ratio"],
    "optimizer.weight_decay": [f"{ACTOR}.optim.weight_decay", "critic.optim.weight_decay"],
    "optimizer.max_grad_norm": [f"{ACTOR}.optim.clip_grad", "critic.optim.clip_grad"],  # nothing reads *.grad_clip
    "objective.clip_ratio": [f"{ACTOR}.clip_ratio", f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high"],
    "objective.clip_ratio_high": [f"{ACTOR}.clip_ratio_high"],
    "objective.dual_clip": [f"{ACTOR}.clip_ratio_c"],
    "objective.value_clip": ["critic.cliprange_value"],
    "objective.gamma": ["algorithm.gamma"],
    "objective.gae_lambda": ["algorithm.lam"],
    "objective.entropy_coefficient": [f"{ACTOR}.entropy_coeff"],
    "objective.epochs_per_batch": [f"{ACTOR}.ppo_epochs"],
    "lora.r": [f"{MODEL}.lora_rank"],
    "lora.alpha": [f"{MODEL}.lora_alpha"],
}
CONVERTED = {
    "batch.prompts_per_step", "optimizer.schedule", "optimizer.adam_beta2", "optimizer.critic_warmup_steps",
    "objective.kl_coefficient", "objective.kl_in", "objective.kl_estimator", "objective.loss_aggregation",
    "objective.scale_rewards", "objective.unbiased_kl_gradient", "objective.sampler_correction",
    "objective.logits_temperature", "objective.momentum_step", "objective.momentum_max", "objective.estimator",
    "objective.policy_loss", "objective.loss_length", "objective.overlong_buffer", "objective.overlong_penalty",
    "objective.dynamic_sampling", "objective.correction_form", "objective.correction_low", "objective.correction_high",
    "rollout.engine", "rollout.stop", "lora.target_modules", "lora.dropout",
}  # fmt: skip
MODEL_PATHS = (f"{MODEL}.path", "critic.model.path")
NEEDED = ("batch.samples_per_device", "rollout.max_prompt_tokens", "rollout.max_response_tokens")
SCHEDULES = {"constant": "constant", "constant_with_warmup": "constant", "cosine": "cosine"}
NO_GRADIENT_CLIP = 1e9  # at 0, where others do not clip, verl leaves nothing of the gradient
SMALLEST_BUCKET = 64  # megabytes; verl's own 2,048 are more than a demo needs
# Without a GPU: one process of each kind, single precision, nothing that pays only on a larger machine.
CPU: dict[str, Any] = {
    "trainer.device": "cpu",
    "data.dataloader_num_workers": 0,
    f"{MODEL}.use_remove_padding": False,
    f"{MODEL}.enable_gradient_checkpointing": False,
    f"+{MODEL}.override_config.attn_implementation": "sdpa",
    f"{ACTOR}.use_torch_compile": False,
    f"{ACTOR}.fsdp_config.use_torch_compile": False,
    f"{ACTOR}.fsdp_config.dtype": "float32",
    f"+{ACTOR}.fsdp_config.mixed_precision.param_dtype": "fp32",
    f"{ACTOR}.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],  # merging would round to bfloat16
    f"{ROLLOUT}.dtype": "float32",
    f"{ROLLOUT}.enforce_eager": True,
    f"{ROLLOUT}.free_cache_engine": False,
    f"+{ROLLOUT}.enable_sleep_mode": False,
    f"{ROLLOUT}.max_num_batched_tokens": 8192,
    f"{ROLLOUT}.enable_chunked_prefill": False,  # a prompt in parts: "CPU Generator does not use offset", in vLLM
    f"{ROLLOUT}.agent.num_workers": 1,
    "reward.num_workers": 1,
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    "trainer.v1.sampler.custom_sampler.path": "pkg://frameworks.verl.cpu.ordered_replay_buffer",
    "trainer.v1.sampler.custom_sampler.name": "OrderedReplayBuffer",
}
CPU_RAY = {
    "ray_kwargs.ray_init.num_cpus": trainer_environment.CPUS_IN_NAME,
    "+ray_kwargs.ray_init.num_gpus": 1,  # a resource in name only, by which verl places its workers
    "+ray_kwargs.ray_init.object_store_memory": 200_000_000,
}
CPU_REFERENCE = {
    f"+{REF}.fsdp_config.mixed_precision.param_dtype": "fp32",
    f"{REF}.fsdp_config.model_dtype": "fp32",
    f"{REF}.fsdp_config.use_torch_compile": False,
}
CPU_CRITIC = {
    "critic.model.use_remove_padding": False,
    "critic.model.enable_gradient_checkpointing": False,
    "+critic.model.override_config.attn_implementation": "sdpa",
    "critic.fsdp.use_torch_compile": False,
    "critic.fsdp.dtype": "float32",
    "+critic.fsdp.mixed_precision.param_dtype": "fp32",
    "critic.fsdp.full_determinism": True,  # otherwise its value head begins with weights that no seed decides
}


def trainer_overrides(run: Run, stage: Stage, seed: int, paths: adapter.Paths, scratch: Path) -> CommandSettings:
    """Every override with its value and the key of the run file that it comes from.

    Args:
        run: the run.
        stage: one of its stages.
        seed: of sampling and of the order of the data.
        paths: where training reads and writes.
        scratch: Ray's folder.

    Raises:
        UserError: verl does not have what the run wants, or the batch does not divide.
    """
    keys, flags = run_settings.values(stage), CommandSettings(run)
    _check(run, stage, keys)
    ppo, reference = run.algorithm == "ppo", bool(keys.get("objective.kl_coefficient"))
    if keys.get("optimizer.max_grad_norm") == 0:
        keys["optimizer.max_grad_norm"] = NO_GRADIENT_CLIP
    for key, names in OVERRIDES.items():
        for name in names if key in keys else []:
            if (ppo or not name.startswith("critic.")) and (reference or not name.startswith(REF)):
                flags.state(name, keys[key], key)
    flags.state("algorithm.adv_estimator", objective.advantage_estimator(run, keys), "algorithm")
    flags.state("data.train_batch_size", run_settings.prompts_per_step(run, stage), "batch.prompts_per_step")
    _state_optimizer(flags, keys)
    objective.state(flags, keys)
    _state_files(flags, stage, seed, paths)
    _state_trainer(flags, stage, paths, scratch)
    _state_device(flags, paths.model, scratch, reference)
    _state_lora(flags, keys)
    tensor_parallel = f"{ROLLOUT}.tensor_model_parallel_size"
    flags.state(tensor_parallel, 1)  # a model of this size fits into one device
    flags.state_native(stage, may_change=(tensor_parallel,))
    objective.check_native(flags)
    return flags


def stated_settings(run: Run, stage: Stage) -> CommandSettings:
    """See frameworks.adapter.SettingsOfRuns."""
    paths = adapter.Paths(problems=Path("problems"), model=Path(run.model), work=Path("work"))
    flags = trainer_overrides(run, stage, 0, paths, Path("ray"))
    for name in MODEL_PATHS:
        if name in flags:
            flags.state(name, run.model, "model")
    return flags


def _check(run: Run, stage: Stage, keys: dict[str, Any]) -> None:
    """Raise UserError for a setting that has no meaning here or is missing, or a batch that does not divide."""
    check_known(run, "verl", keys, {*OVERRIDES, *CONVERTED})
    check_critic(run, keys, discounting=keys.get("objective.estimator") == "reinforce")
    for key in NEEDED:
        if key not in keys:
            raise refuse(run, key, " is needed by verl; add it", "missing-setting")
    if (engine := keys.get("rollout.engine", "vllm-colocated")) != "vllm-colocated":
        text = f": verl samples with vllm-colocated here, not {engine}"
        raise refuse(run, "rollout.engine", text, "value-not-in-framework")
    for key in keys if run.algorithm == "ppo" else ():
        if key.startswith("lora."):
            raise refuse(run, key, ": a critic would be trained whole beside LoRA; remove one", "settings-conflict")
    if keys.get("lora.dropout"):
        raise refuse(run, "lora.dropout", ": verl has none; remove it", "value-not-in-framework")
    estimator = keys.get("objective.estimator", "group")
    if run.algorithm != "ppo" and estimator in objective.NEED_GROUPS and keys["batch.samples_per_prompt"] == 1:
        text = f": {estimator} needs at least 2 completions per prompt"
        raise refuse(run, "batch.samples_per_prompt", text, "too-few-samples")
    running = keys.get("objective.scale_rewards") == "running"
    for key in ("objective.momentum_step", "objective.momentum_max"):
        if running and key not in keys:
            raise refuse(run, key, " is needed with scale_rewards: running; add it", "missing-setting")
        if key in keys and not running:
            raise refuse(run, key, " needs scale_rewards: running", "settings-conflict")
    if running and run.algorithm == "ppo":
        text = ": with a critic verl has no running statistics"
        raise refuse(run, "objective.scale_rewards", text, "value-not-in-framework")
    sampled = keys.get("rollout.temperature", 1.0)
    if keys.get("objective.logits_temperature", sampled) != sampled:
        text = f": verl divides logits by the temperature of sampling, {sampled}"
        raise refuse(run, "objective.logits_temperature", text, "settings-conflict")
    check_batch(run, stage, run_settings.devices(run))


def _state_optimizer(flags: CommandSettings, keys: dict[str, Any]) -> None:
    for optimizer in (f"{ACTOR}.optim", *(["critic.optim"] if flags.run.algorithm == "ppo" else [])):
        if "optimizer.schedule" in keys:
            schedule = choose(flags.run, "verl", "optimizer.schedule", keys["optimizer.schedule"], SCHEDULES)
            flags.state(f"{optimizer}.lr_scheduler_type", schedule, "optimizer.schedule")
        if "optimizer.adam_beta2" in keys:
            flags.state(f"{optimizer}.betas", [0.9, keys["optimizer.adam_beta2"]], "optimizer.adam_beta2")
    if warmup := keys.get("optimizer.critic_warmup_steps"):  # verl counts to the first step that trains the policy
        flags.state("trainer.critic_warmup", warmup + 1, "optimizer.critic_warmup_steps")


def _state_lora(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """Which layers have LoRA; the critic, and so its LoRA, is refused."""
    if "lora.r" not in keys:
        return
    layers = keys["lora.target_modules"]
    flags.state(f"{MODEL}.target_modules", ALL_LAYERS if layers == [ALL_LAYERS] else layers, "lora.target_modules")
    if flags.run.device == "cpu":  # whole weights beside the shards would have the adapter's names
        flags.state(f"{ACTOR}.checkpoint.save_contents", ["model", "optimizer", "extra"], "lora")


def _state_files(flags: CommandSettings, stage: Stage, seed: int, paths: adapter.Paths) -> None:
    """Data, models and their seeds, and the reward."""
    run, data, model = flags.run, paths.work / "data" / "train.parquet", str(paths.model.absolute())
    flags.state("data.train_files", str(data.absolute()), "dataset")
    flags.state("data.val_files", str(data.absolute()))  # verl needs some; nothing is validated
    flags.state("data.val_max_samples", 1)
    flags.state("data.seed", seed)
    flags.state(f"{ROLLOUT}.seed", seed)
    flags.state(f"{ROLLOUT}.name", "vllm", "rollout.engine")
    flags.state(f"{MODEL}.path", model, "model")
    flags.state(f"{MODEL}.custom_chat_template", PASS_THROUGH_TEMPLATE, "prompt")
    flags.state(f"{ACTOR}.strategy", "fsdp2")
    reshard = run.hardware.get("sharding") != "zero2"
    flags.state(f"{ACTOR}.fsdp_config.reshard_after_forward", reshard, "hardware.sharding")
    if run.algorithm == "ppo":
        flags.state("critic.model.path", model, "model")
        flags.state("critic.strategy", "fsdp2")
        flags.state("critic.fsdp.seed", seed)
    flags.state("reward.custom_reward_function.path", "pkg://frameworks.verl.reward_hook", "rewards")
    flags.state("reward.custom_reward_function.name", "compute_score", "rewards")


def _state_trainer(flags: CommandSettings, stage: Stage, paths: adapter.Paths, scratch: Path) -> None:
    """Steps, devices, logs and Ray."""
    run, native = flags.run, paths.native
    nodes = run.hardware.get("nodes", 1)
    flags.state("trainer.total_training_steps", stage.steps, "steps")
    flags.state("trainer.total_epochs", stage.steps, "steps")  # at least as many as the steps need
    flags.state("trainer.save_freq", math.gcd(*stage.checkpoints), "checkpoints")
    flags.state("trainer.test_freq", -1)
    flags.state("trainer.val_before_train", False)
    flags.state("trainer.n_gpus_per_node", run_settings.devices(run) // nodes, "hardware.gpus")
    flags.state("trainer.nnodes", nodes, "hardware.nodes")
    flags.state("trainer.default_local_dir", str((native / "checkpoints").absolute()))
    flags.state("trainer.project_name", "crosszero")
    flags.state("trainer.experiment_name", run.name.replace("/", "-"))
    flags.state("trainer.logger", ["console", "file"])
    flags.state("hydra.run.dir", str((native / "hydra").absolute()))
    if nodes == 1:
        flags.state("+ray_kwargs.ray_init.address", "local")  # never another user's Ray
        flags.state("+ray_kwargs.ray_init._temp_dir", str(scratch))
        flags.state("+ray_kwargs.ray_init.include_dashboard", False)


def _state_device(flags: CommandSettings, model: Path, scratch: Path, reference: bool) -> None:
    run = flags.run
    if run.device != "cpu":
        flags.state("trainer.device", "cuda", "hardware.gpus")
        return
    flags.state("ray_kwargs.ray_init.runtime_env.py_executable", str(scratch / "python"))
    own_ray = CPU_RAY if run.hardware.get("nodes", 1) == 1 else {}  # otherwise ray_cluster starts it, with the same
    of_reference, of_critic = CPU_REFERENCE if reference else {}, CPU_CRITIC if run.algorithm == "ppo" else {}
    for name, value in {**CPU, **own_ray, **of_reference, **of_critic}.items():
        flags.state(name, value, "hardware.gpus")
    if metric := flags.get("algorithm.filter_groups.metric"):  # verl says so to its own buffer alone
        own = {"filter_groups_metric": metric[0], "train_batch_size": flags["data.train_batch_size"][0]}
        for name, value in own.items():
            flags.state(f"+trainer.v1.sampler.sampler_kwargs.{name}", value, "hardware.gpus")
    # Weights go to the sampler through memory of this size, which a tensor has to fit into.
    megabytes = max(SMALLEST_BUCKET, math.ceil(4 * model_dimensions.largest_tensor(model) / 2**20))
    flags.state(f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes", megabytes, "hardware.gpus")


def command_line(flags: Flags) -> list[str]:
    """The overrides as words of a command line, in Hydra's grammar."""
    return [f"{key}={_hydra_text(value)}" for key, (value, _) in flags.items()]


def _hydra_text(value: Any) -> str:
    if isinstance(value, str):
        # Hydra drops a backslash before a quote, and one before each of those that are before a quote or the end;
        # OmegaConf drops one before an interpolation, `${…}`, likewise.
        text = re.sub(r"(\\*)\$\{", lambda match: 2 * match[1] + r"\${", value)
        return "'" + re.sub(r"(\\*)('|\Z)", lambda match: 2 * match[1] + match[2].replace("'", r"\'"), text) + "'"
    if isinstance(value, list):
        return "[" + ",".join(_hydra_text(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_hydra_text(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)

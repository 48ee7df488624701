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

from contracts.run_file import Run, Stage
from frameworks import adapter, run_settings, trainer_environment
from frameworks.run_settings import check_batch
from frameworks.verl import running_advantage

ACTOR, ROLLOUT, REF, MODEL = (f"actor_rollout_ref.{part}" for part in ("actor", "rollout", "ref", "model"))
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
    "rollout.max_prompt_tokens": ["data.max_prompt_length"],
    "rollout.max_response_tokens": ["data.max_response_length"],
    "optimizer.learning_rate": [f"{ACTOR}.optim.lr"],
    "optimizer.critic_learning_rate": ["critic.optim.lr"],
    "optimizer.warmup_ratio": [f"{ACTOR}.optim.lr_warmup_steps_ratio", "critic.optim.lr_warmup_steps_ratio"],
    "optimizer.weight_decay": [f"{ACTOR}.optim.weight_decay", "critic.optim.weight_decay"],
    "optimizer.max_grad_norm": [f"{ACTOR}.optim.clip_grad", "critic.optim.clip_grad"],  # nothing reads *.grad_clip
    "objective.clip_ratio": [f"{ACTOR}.clip_ratio", f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high"],
    "objective.dual_clip": [f"{ACTOR}.clip_ratio_c"],
    "objective.value_clip": ["critic.cliprange_value"],
    "objective.gamma": ["algorithm.gamma"],
    "objective.gae_lambda": ["algorithm.lam"],
    "objective.entropy_coefficient": [f"{ACTOR}.entropy_coeff"],
    "objective.epochs_per_batch": [f"{ACTOR}.ppo_epochs"],
}
CONVERTED = {
    "batch.prompts_per_step", "optimizer.schedule", "optimizer.adam_beta2", "optimizer.critic_warmup_steps",
    "objective.kl_coefficient", "objective.kl_in", "objective.kl_estimator", "objective.loss_aggregation",
    "objective.scale_rewards", "objective.unbiased_kl_gradient", "objective.sampler_correction",
    "objective.logits_temperature", "objective.momentum_step", "objective.momentum_max",
    "rollout.engine", "rollout.stop",
}  # fmt: skip
NEEDED = ("batch.samples_per_device", "rollout.max_prompt_tokens", "rollout.max_response_tokens")
ONLY_PPO = ("critic_learning_rate", "critic_warmup_steps", "value_clip", "gae_lambda", "gamma")
ESTIMATORS = {"ppo": "gae", "grpo": "grpo"}
AGGREGATIONS = {
    "completion_mean": "seq-mean-token-mean", "token_mean": "token-mean", "max_length_mean": "seq-mean-token-sum-norm",
}  # fmt: skip
SCHEDULES = {"constant": "constant", "constant_with_warmup": "constant", "cosine": "cosine"}
KL_ESTIMATORS = {"k1": "kl", "k2": "mse", "k3": "low_var_kl"}
NO_DUAL_CLIP = 1e9  # verl always clips there; the ratios themselves end at exp(20), below it
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
    f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes": 64,
    "reward.num_workers": 1,
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    "trainer.v1.sampler.custom_sampler.path": "pkg://frameworks.verl.cpu.sampler",
    "trainer.v1.sampler.custom_sampler.name": "QuickReplayBuffer",
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
Overrides = dict[str, tuple[Any, str]]


def overrides(run: Run, stage: Stage, seed: int, paths: adapter.Paths, scratch: Path) -> Overrides:
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
    values, found = run_settings.values(stage), Overrides()
    _refuse(run, stage, values)
    ppo = run.algorithm == "ppo"
    reference = bool(values.get("objective.kl_coefficient"))

    def put(key: str, value: Any, source: str = "") -> None:
        found[key] = (value, f"{run.scale}.{source}" if source else "")

    for source, targets in OVERRIDES.items():
        for target in targets if source in values else []:
            if (ppo or not target.startswith("critic.")) and (reference or not target.startswith(REF)):
                put(target, values[source], source)
    _put_converted(run, stage, values, put)
    _put_surroundings(run, stage, seed, paths, scratch, put)
    if run.device == "cpu":
        put("ray_kwargs.ray_init.runtime_env.py_executable", str(scratch / "python"))
        own_ray = CPU_RAY if run.hardware.get("nodes", 1) == 1 else {}  # otherwise ray_cluster starts it, with the same
        for key, value in {
            **CPU,
            **own_ray,
            **(CPU_REFERENCE if reference else {}),
            **(CPU_CRITIC if ppo else {}),
        }.items():
            put(key, value, "hardware.gpus")
    else:
        put("trainer.device", "cuda", "hardware.gpus")
    may_change = {f"{ROLLOUT}.tensor_model_parallel_size"}
    for key in may_change:
        put(key, 1)  # a model of this size fits into one device
    for key, value in stage.native.items():
        name = key.lstrip("+")
        if name not in may_change and (name in found or f"+{name}" in found):
            source = found.get(name, found.get(f"+{name}", (None, "")))[1]
            raise run_settings.refuse(run, f"native.{key}", f" is set by {source or 'the adapter'} already")
        put(key, value, f"native.{key}")
    return found


def _refuse(run: Run, stage: Stage, values: dict[str, Any]) -> None:
    """Raise UserError for a setting that has no meaning here or is missing, or a batch that does not divide."""
    for key in values:
        if key not in OVERRIDES and key not in CONVERTED:
            raise run_settings.refuse(run, key, " has no meaning for verl; remove it")
        if run.algorithm != "ppo" and key.partition(".")[2] in ONLY_PPO:
            raise run_settings.refuse(run, key, f" has no meaning for {run.algorithm}; remove it")
    for key in NEEDED:
        if key not in values:
            raise run_settings.refuse(run, key, " is needed by verl; add it")
    if (engine := values.get("rollout.engine", "vllm-colocated")) != "vllm-colocated":
        raise run_settings.refuse(run, "rollout.engine", f": verl samples with vllm-colocated here, not {engine}")
    running = values.get("objective.scale_rewards") == "running"
    for key in ("objective.momentum_step", "objective.momentum_max"):
        if running != (key in values):
            text = " is needed with scale_rewards: running; add it" if running else " needs scale_rewards: running"
            raise run_settings.refuse(run, key, text)
    if running and run.algorithm == "ppo":
        raise run_settings.refuse(run, "objective.scale_rewards", ": with a critic verl has no running statistics")
    sampled = values.get("rollout.temperature", 1.0)
    if values.get("objective.logits_temperature", sampled) != sampled:
        raise run_settings.refuse(
            run, "objective.logits_temperature", f": verl divides logits by the temperature of sampling, {sampled}"
        )
    check_batch(run, stage, run_settings.devices(run))


def _choice(run: Run, key: str, value: str, known: dict[str, str]) -> str:
    if value not in known:
        raise run_settings.refuse(run, key, f": verl has {', '.join(known)}, not '{value}'")
    return known[value]


def _put_converted(run: Run, stage: Stage, values: dict[str, Any], put: Any) -> None:
    """Settings whose names or units differ."""
    ppo = run.algorithm == "ppo"
    running = values.get("objective.scale_rewards") == "running"
    put("algorithm.adv_estimator", running_advantage.NAME if running else ESTIMATORS[run.algorithm], "algorithm")
    put(
        "data.train_batch_size",
        run_settings.prompts_per_step(run, stage),
        "batch.prompts_per_step",
    )
    trained = [f"{ACTOR}.optim", *(["critic.optim"] if ppo else [])]
    for optim in trained:
        if "optimizer.schedule" in values:
            schedule = _choice(run, "optimizer.schedule", values["optimizer.schedule"], SCHEDULES)
            put(f"{optim}.lr_scheduler_type", schedule, "optimizer.schedule")
        if "optimizer.adam_beta2" in values:
            put(f"{optim}.betas", [0.9, values["optimizer.adam_beta2"]], "optimizer.adam_beta2")
    if values.get("optimizer.critic_warmup_steps"):  # verl counts to the first step that trains the policy
        put("trainer.critic_warmup", values["optimizer.critic_warmup_steps"] + 1, "optimizer.critic_warmup_steps")
    if "objective.loss_aggregation" in values:
        put(
            f"{ACTOR}.loss_agg_mode",
            _choice(run, "objective.loss_aggregation", values["objective.loss_aggregation"], AGGREGATIONS),
            "objective.loss_aggregation",
        )
        if (
            values["objective.loss_aggregation"] == "max_length_mean"
        ):  # otherwise the divisor is the longest completion of a forward pass
            put(f"{ACTOR}.loss_scale_factor", values["rollout.max_response_tokens"], "rollout.max_response_tokens")
    if "objective.dual_clip" not in values:
        put(f"{ACTOR}.clip_ratio_c", NO_DUAL_CLIP, "objective.dual_clip")
    correction = values.get("objective.sampler_correction", "none")
    put(
        "algorithm.rollout_correction.rollout_is",
        None if correction == "none" else correction,
        "objective.sampler_correction",
    )
    # Without a correction too: verl then logs how far the sampler's probabilities are from the trainer's.
    put(f"{ROLLOUT}.calculate_log_probs", True, "objective.sampler_correction")
    if "objective.scale_rewards" in values and not running:
        scaled = _choice(
            run, "objective.scale_rewards", values["objective.scale_rewards"], {"group": "yes", "none": ""}
        )
        put("algorithm.norm_adv_by_std_in_grpo", bool(scaled), "objective.scale_rewards")
    coefficient = values.get("objective.kl_coefficient", 0)
    in_reward = values.get("objective.kl_in", "reward" if ppo else "loss") == "reward"
    estimator = KL_ESTIMATORS[values.get("objective.kl_estimator", "k1" if in_reward else "k3")]
    if (unbiased := values.get("objective.unbiased_kl_gradient", False)) and in_reward:
        raise run_settings.refuse(run, "objective.unbiased_kl_gradient", ": a KL term in the reward has no gradient")
    put("algorithm.use_kl_in_reward", bool(coefficient) and in_reward, "objective.kl_in")
    put(f"{ACTOR}.use_kl_loss", bool(coefficient) and not in_reward, "objective.kl_in")
    if coefficient and in_reward:
        put("algorithm.kl_ctrl.kl_coef", coefficient, "objective.kl_coefficient")
        put("algorithm.kl_penalty", estimator, "objective.kl_estimator")
    elif coefficient:
        put(f"{ACTOR}.kl_loss_coef", coefficient, "objective.kl_coefficient")
        put(f"{ACTOR}.kl_loss_type", f"{estimator}+" if unbiased else estimator, "objective.kl_estimator")


def _put_surroundings(run: Run, stage: Stage, seed: int, paths: adapter.Paths, scratch: Path, put: Any) -> None:
    """Files, devices, logs, seeds."""
    native, data, model = paths.work / "native", paths.work / "data" / "train.parquet", str(paths.model.absolute())
    nodes = run.hardware.get("nodes", 1)
    put("data.train_files", str(data.absolute()), "dataset")
    put("data.val_files", str(data.absolute()))  # verl needs some; nothing is validated
    put("data.val_max_samples", 1)
    put("data.seed", seed)
    put(f"{ROLLOUT}.seed", seed)
    put(f"{ROLLOUT}.name", "vllm", "rollout.engine")
    put(f"{MODEL}.path", model, "model")
    put(f"{MODEL}.custom_chat_template", PASS_THROUGH_TEMPLATE, "prompt")
    put(f"{ACTOR}.strategy", "fsdp2")
    put(f"{ACTOR}.fsdp_config.reshard_after_forward", run.hardware.get("sharding") != "zero2", "hardware.sharding")
    if run.algorithm == "ppo":
        put("critic.model.path", model, "model")
        put("critic.strategy", "fsdp2")
        put("critic.fsdp.seed", seed)
    put("reward.custom_reward_function.path", "pkg://frameworks.verl.reward_hook", "rewards")
    put("reward.custom_reward_function.name", "compute_score", "rewards")
    put("trainer.total_training_steps", stage.steps, "steps")
    put("trainer.total_epochs", stage.steps, "steps")  # at least as many as the steps need
    put("trainer.save_freq", math.gcd(*stage.checkpoints), "checkpoints")
    put("trainer.test_freq", -1)
    put("trainer.val_before_train", False)
    put("trainer.n_gpus_per_node", run_settings.devices(run) // nodes, "hardware.gpus")
    put("trainer.nnodes", nodes, "hardware.nodes")
    put("trainer.default_local_dir", str((native / "checkpoints").absolute()))
    put("trainer.project_name", "crosszero")
    put("trainer.experiment_name", run.name.replace("/", "-"))
    put("trainer.logger", ["console", "file"])
    put("hydra.run.dir", str((native / "hydra").absolute()))
    if nodes == 1:
        put("+ray_kwargs.ray_init.address", "local")  # never another user's Ray
        put("+ray_kwargs.ray_init._temp_dir", str(scratch))
        put("+ray_kwargs.ray_init.include_dashboard", False)


def render(found: Overrides) -> list[str]:
    """The overrides as words of a command line, in Hydra's grammar."""
    return [f"{key}={_hydra(value)}" for key, (value, _) in found.items()]


def _hydra(value: Any) -> str:
    if isinstance(value, str):
        # Hydra drops a backslash before a quote, and one before each of those that are before a quote or the end;
        # OmegaConf drops one before an interpolation, `${…}`, likewise.
        text = re.sub(r"(\\*)\$\{", lambda found: 2 * found[1] + r"\${", value)
        return "'" + re.sub(r"(\\*)('|\Z)", lambda found: 2 * found[1] + found[2].replace("'", r"\'"), text) + "'"
    if isinstance(value, list):
        return "[" + ",".join(_hydra(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_hydra(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)

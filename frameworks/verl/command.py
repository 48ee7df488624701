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
from frameworks.run_settings import check_batch, check_known, choose, refuse
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
}
CONVERTED = {
    "batch.prompts_per_step", "optimizer.schedule", "optimizer.adam_beta2", "optimizer.critic_warmup_steps",
    "objective.kl_coefficient", "objective.kl_in", "objective.kl_estimator", "objective.loss_aggregation",
    "objective.scale_rewards", "objective.unbiased_kl_gradient", "objective.sampler_correction",
    "objective.logits_temperature", "objective.momentum_step", "objective.momentum_max", "objective.estimator",
    "objective.policy_loss", "objective.loss_length", "objective.overlong_buffer", "objective.overlong_penalty",
    "objective.dynamic_sampling", "objective.correction_form", "objective.correction_low", "objective.correction_high",
    "rollout.engine", "rollout.stop",
}  # fmt: skip
MODEL_PATHS = (f"{MODEL}.path", "critic.model.path")
NEEDED = ("batch.samples_per_device", "rollout.max_prompt_tokens", "rollout.max_response_tokens")
ONLY_PPO = ("critic_learning_rate", "critic_warmup_steps", "value_clip", "gae_lambda", "gamma")
ESTIMATORS = {"ppo": "gae", "grpo": "grpo"}
NAMED_ESTIMATORS = {
    "reinforce": "reinforce_plus_plus", "reinforce_baseline": "reinforce_plus_plus_baseline", "rloo": "rloo",
    "remax": "remax", "opo": "opo", "gpg": "gpg", "grpo_passk": "grpo_passk", "gdpo": "gdpo",
    "optimal_token_baseline": "optimal_token_baseline", "tir_optimal_token_baseline": "tir_optimal_token_baseline",
}  # fmt: skip
LOSSES = {
    "ppo": "vanilla", "gspo": "gspo", "cispo": "cispo", "sapo": "sapo", "gpg": "gpg", "dppo_tv": "dppo_tv",
    "dppo_kl": "dppo_kl", "clip_cov": "clip_cov", "kl_cov": "kl_cov", "geo_mean": "geo_mean", "dro": "dro",
    "bypass_mode": "bypass_mode",
}  # fmt: skip
CORRECTION = "algorithm.rollout_correction"
OVERLONG = "reward.reward_kwargs.overlong_buffer_cfg"
AGGREGATIONS = {
    "completion_mean": "seq-mean-token-mean", "token_mean": "token-mean", "max_length_mean": "seq-mean-token-sum-norm",
}  # fmt: skip
SCHEDULES = {"constant": "constant", "constant_with_warmup": "constant", "cosine": "cosine"}
KL_ESTIMATORS = {"k1": "kl", "k2": "mse", "k3": "low_var_kl"}
SMALLEST_BUCKET = 64  # megabytes; verl's own 2,048 are more than a demo needs
NO_DUAL_CLIP = 1e9  # verl always clips there; the ratios themselves end at exp(20), below it
NO_LOWER_BOUND = 1e-9  # of the sampler's weights: verl's own are above exp(-20)
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
    for key, names in OVERRIDES.items():
        for name in names if key in keys else []:
            if (ppo or not name.startswith("critic.")) and (reference or not name.startswith(REF)):
                flags.state(name, keys[key], key)
    flags.state("algorithm.adv_estimator", _advantage_estimator(run, keys), "algorithm")
    flags.state("data.train_batch_size", run_settings.prompts_per_step(run, stage), "batch.prompts_per_step")
    _state_optimizer(flags, keys)
    _state_loss(flags, keys)
    _state_kl(flags, keys)
    _state_files(flags, stage, seed, paths)
    _state_trainer(flags, stage, paths, scratch)
    _state_device(flags, paths.model, scratch, reference)
    tensor_parallel = f"{ROLLOUT}.tensor_model_parallel_size"
    flags.state(tensor_parallel, 1)  # a model of this size fits into one device
    flags.state_native(stage, may_change=(tensor_parallel,))
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
    if run.algorithm != "ppo":
        check_known(run, run.algorithm, keys, {key for key in keys if key.partition(".")[2] not in ONLY_PPO})
    for key in NEEDED:
        if key not in keys:
            raise refuse(run, key, " is needed by verl; add it", "missing-setting")
    if (engine := keys.get("rollout.engine", "vllm-colocated")) != "vllm-colocated":
        text = f": verl samples with vllm-colocated here, not {engine}"
        raise refuse(run, "rollout.engine", text, "value-not-in-framework")
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


def _advantage_estimator(run: Run, keys: dict[str, Any]) -> str:
    """Where advantages come from."""
    if name := keys.get("objective.estimator"):
        if run.algorithm == "ppo" or "objective.scale_rewards" in keys:
            text = " takes the place of a critic and of scale_rewards; remove one"
            raise refuse(run, "objective.estimator", text, "settings-conflict")
        return str(choose(run, "verl", "objective.estimator", name, NAMED_ESTIMATORS))
    return running_advantage.NAME if keys.get("objective.scale_rewards") == "running" else ESTIMATORS[run.algorithm]


def _state_optimizer(flags: CommandSettings, keys: dict[str, Any]) -> None:
    for optimizer in (f"{ACTOR}.optim", *(["critic.optim"] if flags.run.algorithm == "ppo" else [])):
        if "optimizer.schedule" in keys:
            schedule = choose(flags.run, "verl", "optimizer.schedule", keys["optimizer.schedule"], SCHEDULES)
            flags.state(f"{optimizer}.lr_scheduler_type", schedule, "optimizer.schedule")
        if "optimizer.adam_beta2" in keys:
            flags.state(f"{optimizer}.betas", [0.9, keys["optimizer.adam_beta2"]], "optimizer.adam_beta2")
    if warmup := keys.get("optimizer.critic_warmup_steps"):  # verl counts to the first step that trains the policy
        flags.state("trainer.critic_warmup", warmup + 1, "optimizer.critic_warmup_steps")


def _state_loss(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """How token losses are made, averaged and bounded, and rewards are scaled."""
    if loss := keys.get("objective.policy_loss"):
        mode = choose(flags.run, "verl", "objective.policy_loss", loss, LOSSES)
        flags.state(f"{ACTOR}.policy_loss.loss_mode", mode, "objective.policy_loss")
    if mean := keys.get("objective.loss_aggregation"):
        mode = choose(flags.run, "verl", "objective.loss_aggregation", mean, AGGREGATIONS)
        flags.state(f"{ACTOR}.loss_agg_mode", mode, "objective.loss_aggregation")
        if mean == "max_length_mean":  # otherwise the divisor is the longest completion of a forward pass
            key = "objective.loss_length" if "objective.loss_length" in keys else "rollout.max_response_tokens"
            flags.state(f"{ACTOR}.loss_scale_factor", keys[key], key)
    if "objective.loss_length" in keys and mean != "max_length_mean":
        raise refuse(
            flags.run, "objective.loss_length", " needs loss_aggregation: max_length_mean", "settings-conflict"
        )
    if "objective.dual_clip" not in keys:
        flags.state(f"{ACTOR}.clip_ratio_c", NO_DUAL_CLIP, "objective.dual_clip")
    if (scale := keys.get("objective.scale_rewards", "running")) != "running":
        by_std = choose(flags.run, "verl", "objective.scale_rewards", scale, {"group": True, "none": False})
        flags.state("algorithm.norm_adv_by_std_in_grpo", by_std, "objective.scale_rewards")
    if keys.get("objective.dynamic_sampling"):
        flags.state("algorithm.filter_groups.enable", True, "objective.dynamic_sampling")
        flags.state("algorithm.filter_groups.metric", "reward", "objective.dynamic_sampling")
    _state_overlong(flags, keys)
    _state_correction(flags, keys)


def _state_overlong(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """The penalty on the last tokens before the limit, which verl's reward manager `dapo` adds to the reward."""
    if not (buffer := keys.get("objective.overlong_buffer")):
        if "objective.overlong_penalty" in keys:
            raise refuse(flags.run, "objective.overlong_penalty", " needs overlong_buffer", "settings-conflict")
        return
    flags.state("reward.reward_manager.name", "dapo", "objective.overlong_buffer")
    for name, value in (("enable", True), ("len", buffer), ("log", False)):
        flags.state(f"+{OVERLONG}.{name}", value, "objective.overlong_buffer")
    flags.state(
        f"+{OVERLONG}.penalty_factor", keys.get("objective.overlong_penalty", 1.0), "objective.overlong_penalty"
    )
    longest = keys["rollout.max_response_tokens"]
    flags.state("+reward.reward_kwargs.max_resp_len", longest, "rollout.max_response_tokens")


def _state_correction(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """Weights for the sampler's probabilities: cut at an upper bound, or dropped outside a band."""
    level, key = keys.get("objective.sampler_correction", "none"), "objective.sampler_correction"
    by_mean = level == "sequence_mean"  # tokens have weights, and sequences are dropped by the mean of their log-ratios
    flags.state(f"{CORRECTION}.rollout_is", {"none": None, "sequence_mean": "token"}.get(level, level), key)
    # Without a correction too: verl then logs how far the sampler's probabilities are from the trainer's.
    flags.state(f"{ROLLOUT}.calculate_log_probs", True, key)
    low, high = (keys.get(f"objective.correction_{end}") for end in ("low", "high"))
    form = keys.get("objective.correction_form", "mask" if by_mean else "truncate")
    if level == "none" or (form == "truncate" and low is high is None and not by_mean):
        return
    if form == "truncate" and by_mean:
        text = ": sequences that are judged by their mean are dropped or kept"
        raise refuse(flags.run, "objective.correction_form", text, "value-not-in-framework")
    if form == "truncate" and low:
        text = ": verl truncates from above alone"
        raise refuse(flags.run, "objective.correction_low", text, "setting-not-in-framework")
    low, high = low or NO_LOWER_BOUND, high or NO_DUAL_CLIP
    if by_mean:  # verl judges by the sampler's probability over the trainer's
        flags.state(f"{CORRECTION}.rollout_rs", "seq_mean_k1", key)
        flags.state(f"{CORRECTION}.rollout_rs_threshold", f"{1 / high}_{1 / low}", "objective.correction_high")
        low, high, form = 0.0, NO_DUAL_CLIP, "truncate"
    bound = f"{low}_{high}" if form == "mask" else high
    flags.state(f"{CORRECTION}.rollout_is_threshold", bound, "objective.correction_high")


def _state_kl(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """The KL term, in the reward or in the loss."""
    coefficient = keys.get("objective.kl_coefficient", 0)
    in_reward = keys.get("objective.kl_in", "reward" if flags.run.algorithm == "ppo" else "loss") == "reward"
    estimator = KL_ESTIMATORS[keys.get("objective.kl_estimator", "k1" if in_reward else "k3")]
    if (unbiased := keys.get("objective.unbiased_kl_gradient", False)) and in_reward:
        text = ": a KL term in the reward has no gradient"
        raise refuse(flags.run, "objective.unbiased_kl_gradient", text, "settings-conflict")
    flags.state("algorithm.use_kl_in_reward", bool(coefficient) and in_reward, "objective.kl_in")
    flags.state(f"{ACTOR}.use_kl_loss", bool(coefficient) and not in_reward, "objective.kl_in")
    if coefficient and in_reward:
        flags.state("algorithm.kl_ctrl.kl_coef", coefficient, "objective.kl_coefficient")
        flags.state("algorithm.kl_penalty", estimator, "objective.kl_estimator")
    elif coefficient:
        flags.state(f"{ACTOR}.kl_loss_coef", coefficient, "objective.kl_coefficient")
        flags.state(f"{ACTOR}.kl_loss_type", f"{estimator}+" if unbiased else estimator, "objective.kl_estimator")


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

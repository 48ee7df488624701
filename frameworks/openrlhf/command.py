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
from typing import Any, NoReturn

from contracts.run_file import Run, Stage
from frameworks import run_settings
from frameworks.run_settings import check_batch, devices, values

REWARD_FILE = Path(__file__).with_name("reward_hook.py")
SAMPLER_FILE = Path(__file__).with_name("sampler.py")
SAMPLING_TEMPERATURE = "CROSSZERO_SAMPLING_TEMPERATURE"  # environment variable that the sampler reads
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
}
AGGREGATIONS = {"completion_mean": "seq-mean-token-mean", "token_mean": "token-mean"}
ESTIMATORS = {"group": "group_norm", "batch": "reinforce_baseline", "none": "dr_grpo"}  # of GRPO
CORRECTIONS = {"none": "off", "token": "token", "sequence": "seq"}
NO_REWARD_CLIP = 1_000_000  # OpenRLHF always clips rewards, GRPO's after they were normalised
ADAM_BETA1 = 0.9  # OpenRLHF's default; run files have a key for the second beta alone
STATES_KEPT = 2  # of the states that a resume needs, each many times the size of the model
SCHEDULES = (
    "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup", "inverse_sqrt",
    "cosine_with_min_lr", "cosine_warmup_with_min_lr", "warmup_stable_decay",
)  # fmt: skip


def _refuse(run: Run, key: str, text: str) -> NoReturn:
    raise run_settings.refuse(run, key, f": {text}")


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


def passes(run: Run, stage: Stage, rows: int) -> tuple[int, int]:
    """Steps in one pass over the training set, and number of passes; problems that do not fill a step are not used.

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
    found: dict[str, tuple[Any, str]] = {}

    def put(flag: str, value: Any, key: str = "") -> None:
        found[flag] = (value, f"{run.scale}.{key}" if key else "")

    given = values(stage)
    for key, value in given.items():
        if key not in FLAGS and key not in CONVERTED:
            _refuse(run, key, "has no meaning for OpenRLHF; remove it")
        for flag in FLAGS.get(key, []):
            put(flag, value, key)
    gpus = layout(run, stage)
    check_batch(run, stage, gpus["actor"])

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
    _put_since_then(run, stage, given, put)

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
    put("ckpt.max_num", STATES_KEPT)  # Hugging Face folders are not counted, and all are kept
    put("logger.tensorboard_dir", str(output))
    put("logger.wandb.run_name", "log")  # the folder of TensorBoard's events, too
    _devices(run, stage, gpus, put)
    for flag, value in stage.native.items():
        if flag in found:
            _refuse(run, f"native.{flag}", f"is set by {found[flag][1] or 'the adapter'} already")
        put(flag, value, f"native.{flag}")
    return found


def sampling_temperature(stage: Stage) -> float | None:
    """The temperature of sampling, where the training's logits are divided by another one."""
    given = values(stage)
    sampled = float(given.get("rollout.temperature", 1.0))
    return sampled if given.get("objective.logits_temperature", sampled) != sampled else None


def _put_since_then(run: Run, stage: Stage, given: dict[str, Any], put: Any) -> None:
    """What this release does otherwise than earlier ones unless it is told not to."""
    if sampling_temperature(stage) is not None:  # rollout.temperature is the actor's; sampler.py samples at another
        if given.get("objective.sampler_correction", "none") != "none":
            _refuse(
                run,
                "objective.sampler_correction",
                "compares probabilities at one temperature; remove logits_temperature",
            )
        put("rollout.temperature", given["objective.logits_temperature"], "objective.logits_temperature")
        put("train.agent_func_path", str(SAMPLER_FILE), "objective.logits_temperature")
    put(
        "algo.kl.unbiased_gradient",
        given.get("objective.unbiased_kl_gradient", False),
        "objective.unbiased_kl_gradient",
    )
    put(
        "algo.advantage.is_correction_level",
        CORRECTIONS[given.get("objective.sampler_correction", "none")],
        "objective.sampler_correction",
    )
    if "objective.reward_clip" in given and run.algorithm != "ppo":
        _refuse(run, "objective.reward_clip", "OpenRLHF would clip GRPO's advantages, not its rewards; remove it")
    clip = given.get("objective.reward_clip", NO_REWARD_CLIP)
    put("reward.clip_range", [-clip, clip], "objective.reward_clip")


def _objective(run: Run, given: dict[str, Any], put: Any) -> None:
    place = given.get("objective.kl_in", "reward" if run.algorithm == "ppo" else "loss")
    if given.get("objective.unbiased_kl_gradient") and place == "reward":
        _refuse(run, "objective.unbiased_kl_gradient", "a KL term in the reward has no gradient")
    for key, used in (
        ("kl_coefficient", place == "loss" and given.get("objective.kl_coefficient")),
        ("entropy_coefficient", given.get("objective.entropy_coefficient")),
    ):
        if used and given.get("objective.loss_aggregation") == "completion_mean":
            _refuse(
                run, f"objective.{key}", "OpenRLHF averages this term over all tokens; use loss_aggregation: token_mean"
            )
    put("algo.kl.use_loss", place == "loss", "objective.kl_in")
    put(
        "algo.kl.estimator",
        given.get("objective.kl_estimator", "k3" if place == "loss" else "k1"),
        "objective.kl_estimator",
    )
    if "objective.loss_aggregation" in given:
        if given["objective.loss_aggregation"] not in AGGREGATIONS:
            _refuse(
                run,
                "objective.loss_aggregation",
                f"OpenRLHF has {', '.join(AGGREGATIONS)}, not '{given['objective.loss_aggregation']}'",
            )
        put("actor.loss_agg_mode", AGGREGATIONS[given["objective.loss_aggregation"]], "objective.loss_aggregation")
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

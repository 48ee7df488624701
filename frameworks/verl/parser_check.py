"""A stage's overrides, read by the installed verl's own configuration, without Ray, GPU or weights.

Hydra refuses unknown keys and bad values, verl's dataclasses refuse unknown fields, and its `validate_config` refuses
combinations. What verl itself checks only while it trains, or never, is checked here: added keys that nothing reads,
advantage estimators and losses, and the reward groups of older releases.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import io
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from contracts.run_file import Run, Stage
from frameworks.command_settings import Flags
from frameworks.run_settings import refuse, refused_by_parser
from frameworks.verl import running_advantage
from frameworks.verl.command import MODEL_PATHS, command_line, stated_settings

LEGACY = ("custom_reward_function", "reward_model", "sandbox_fusion")
TYPED = ("algorithm", "actor_rollout_ref.rollout", "actor_rollout_ref.actor", "actor_rollout_ref.model", "critic")


def check(run: Run, stage: Stage) -> None:
    """Raise UserError unless verl's own configuration accepts the stage."""
    flags = stated_settings(run, stage)
    _check_native(run, stage.native)
    accept(run, stage, flags)


def accept(run: Run, stage: Stage, flags: Flags) -> None:
    """The same of given overrides, with a model of our own; the run is for messages."""
    del stage
    flags = flags | {name: (str(_stand_in()), flags[name][1]) for name in MODEL_PATHS if name in flags}
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that GRPO has no critic
            _compose_and_check(flags)
    except Exception as error:  # Hydra, OmegaConf and verl's assertions have no error class in common
        raise refused_by_parser(run, "verl", _innermost_message(error), _refused_key(flags, error)) from None


@cache
def _stand_in() -> Path:
    """A model folder without weights: verl reads the configuration and the tokenizer of any model."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, Qwen2Config

    folder = Path(tempfile.mkdtemp(prefix="crosszero-check-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Qwen2Config(architectures=["Qwen2ForCausalLM"], num_hidden_layers=1).save_pretrained(folder)
    core = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    PreTrainedTokenizerFast(tokenizer_object=core, eos_token="b", pad_token="b").save_pretrained(folder)
    return folder


def _compose_and_check(flags: Flags) -> None:
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose(
            "ppo_trainer", overrides=[word for word in command_line(flags) if not word.startswith("hydra.")]
        )
    OmegaConf.resolve(config)
    for path in TYPED:
        if path != "critic" or need_critic(config):
            omega_conf_to_dataclass(OmegaConf.select(config, path))
    validate_config(config=config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
    rewards = str(flags.get("reward.custom_reward_function.path", ("", ""))[0])
    if rewards.startswith("pkg://") and not callable(get_custom_reward_fn(config)):  # a file is where training starts
        raise ValueError("reward.custom_reward_function is not a function")
    _check_what_verl_finds_late(config)


def defaults(*overrides: str) -> dict[str, Any]:
    """What verl takes for each setting that is not overridden; a reference to another setting as it is written."""
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf

    with initialize_config_module("verl.trainer.config", version_base=None):
        composed = OmegaConf.to_container(compose("ppo_trainer", overrides=list(overrides)), resolve=False)
    return dict(_leaves(composed))


def engines() -> dict[str, dict[str, Any]]:
    """By engine other than the default one, the settings that it alone has, and the names of those that it lacks."""
    import verl.trainer.config

    usual = defaults()
    (folder,) = verl.trainer.config.__path__
    names = sorted(file.stem for file in Path(folder, "model_engine").glob("*.yaml"))
    of_engines = {name: defaults(f"model_engine={name}") for name in names if name != usual["model_engine"]}
    return {
        name: {
            "has": {setting: value for setting, value in settings.items() if setting not in usual},
            "lacks": sorted(usual.keys() - settings.keys()),
        }
        for name, settings in of_engines.items()
    }


def objectives() -> dict[str, list[str]]:
    """The estimators of advantages and the policy losses that verl registers."""
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, POLICY_LOSS_REGISTRY

    return {"estimators": sorted(map(str, ADV_ESTIMATOR_REGISTRY)), "losses": sorted(POLICY_LOSS_REGISTRY)}


def _leaves(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict) or not value:
        yield name, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{name}.{key}" if name else str(key))


def _check_what_verl_finds_late(config: Any) -> None:
    """Raise ValueError for names that verl looks up, and a number that it divides by, only when it trains."""
    from verl.trainer.ppo import core_algos
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, POLICY_LOSS_REGISTRY

    if (
        config.algorithm.adv_estimator == running_advantage.NAME
        and running_advantage.NAME not in ADV_ESTIMATOR_REGISTRY
    ):
        running_advantage.register_estimator(core_algos)

    for key, value, known in (
        ("algorithm.adv_estimator", config.algorithm.adv_estimator, ADV_ESTIMATOR_REGISTRY),
        ("actor_rollout_ref.actor.policy_loss.loss_mode", config.actor_rollout_ref.actor.policy_loss.loss_mode,
         POLICY_LOSS_REGISTRY),
    ):  # fmt: skip
        if value not in known:
            raise ValueError(f"{key}: there is no '{value}'; there are {', '.join(sorted(known))}")
    devices = config.trainer.n_gpus_per_node * config.trainer.nnodes
    parallel = config.actor_rollout_ref.rollout.tensor_model_parallel_size
    if devices % parallel:
        raise ValueError(f"actor_rollout_ref.rollout.tensor_model_parallel_size: {parallel} does not divide {devices}")


def _check_native(run: Run, native: dict[str, Any]) -> None:
    """Raise UserError for keys that verl accepts silently although nothing reads them."""
    for key in native:
        name = key.lstrip("+")
        text = ""
        if name.partition(".")[0] in LEGACY:
            text = ": this release of verl accepts it and ignores it; set the rewards in `rewards`"
        elif name != key:
            text = _reason_if_unread(name)
        if text:
            raise refuse(run, f"native.{key}", text, "refused-by-parser")


def _reason_if_unread(name: str) -> str:
    """Why a setting that is added with a + has no effect; empty if it has one, or verl's own check will tell."""
    group, _, rest = name.partition(".")
    if group == "ray_kwargs":
        import ray

        known = rest.removeprefix("ray_init.").partition(".")[0] in inspect.signature(ray.init).parameters
        return "" if known else ": ray.init has no such parameter"
    if group in ("trainer", "data") and rest.partition(".")[0] not in _names_read():
        return ": this release of verl reads no such key"
    return ""


@cache
def _names_read() -> frozenset[str]:
    """Every name that verl's source reads with `.get("name"…)`: only these may be added to an untyped group."""
    import verl

    sources = (file.read_text(encoding="utf-8") for file in Path(verl.__file__).parent.rglob("*.py"))
    return frozenset(name for source in sources for name in re.findall(r"""\.get\(\s*["']([a-z_0-9]+)["']""", source))


def _innermost_message(error: BaseException) -> str:
    """The innermost message, in one line: Hydra wraps the message of a dataclass into a page."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__


def _refused_key(flags: Flags, error: BaseException) -> str:
    """The run file's key of the override that the message names, if it names one."""
    text = f"{error} {_innermost_message(error)}"
    names = [name for name in flags if name.lstrip("+") in text]
    names = names or [name for name in flags if re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", text)]
    return next((flags[name][1] for name in sorted(names, key=len, reverse=True) if flags[name][1]), "")

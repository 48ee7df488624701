"""What the translations of a run file into the frameworks' own settings share: units, devices, refusals."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from contracts.run_file import Run, Stage
from system.errors import UserError

RESUME_SECONDS = 7200.0  # of training that a kill may cost
SHORT_SECONDS = 600.0  # of a stage that starts again after a kill
ONLY_PPO = {
    "optimizer.critic_learning_rate", "optimizer.critic_warmup_steps", "objective.value_clip", "objective.gae_lambda",
    "objective.gamma",
}  # fmt: skip


def save_interval(run: Run, stage: Stage) -> int:
    """Steps between native checkpoints: those of the run file are among them, the others are there to resume from.

    They are at most RESUME_SECONDS and half of the stage apart, by the published time of a step, or by the time limit.
    """
    every = math.gcd(*stage.checkpoints)
    hours = run.hardware.get("expected_hours", run.hardware["hours"] * len(run.stages))
    step_seconds = 3600 * hours / sum(one.steps for one in run.stages)
    if stage.steps * step_seconds < SHORT_SECONDS:
        return every
    most = max(1.0, min(RESUME_SECONDS / step_seconds, stage.steps / 2))
    return max(step for step in range(1, every + 1) if every % step == 0 and step <= most)


def values(stage: Stage) -> dict[str, Any]:
    """The stage's settings that have common names, such as `batch.samples_per_prompt`."""
    groups = {
        "batch": stage.batch,
        "rollout": stage.rollout,
        "optimizer": stage.optimizer,
        "objective": stage.objective,
        "lora": stage.lora,
    }
    return {f"{group}.{key}": value for group, settings in groups.items() for key, value in settings.items()}


class Refused(UserError):
    """What a framework does not have, or what does not fit it; among its facts the run file's key, and the reason."""

    @property
    def key(self) -> str:
        """Of the run file, below its scale."""
        return str(self.facts["key"])

    @property
    def reason(self) -> str:
        """The sentence without the key, and without the remedy."""
        return str(self.facts["reason"])


def refuse(run: Run, key: str, text: str, code: str) -> Refused:
    """An error about a key of the run's scale.

    Args:
        run: the run.
        key: of its run file, below the scale.
        text: follows the key in the message, such as `: TRL has …` or ` is needed`.
        code: see system.errors.
    """
    reason = (text[2:] if text.startswith(": ") else f"it{text}").partition("; ")[0]
    return Refused(f"{run.file.name}: {run.scale}.{key}{text}", code=code, key=key, reason=reason)


def check_known(run: Run, framework: str, keys: Iterable[str], known: Collection[str]) -> None:
    """Raise UserError for a key that a framework has no setting for.

    Args:
        run: for the message.
        framework: as its own documentation writes it.
        keys: of the stage, as `values` gives them.
        known: that it has settings for.
    """
    for key in keys:
        if key not in known:
            raise refuse(run, key, f" has no meaning for {framework}; remove it", "setting-not-in-framework")


def check_critic(run: Run, keys: Collection[str], discounting: bool) -> None:
    """Raise UserError for keys of a critic where there is none, and for a discount that nothing reads.

    Args:
        run: for the message.
        keys: of the stage, as `values` gives them.
        discounting: the estimator of advantages has a discount without a critic, too.
    """
    if run.algorithm == "ppo":
        return
    without_effect = ONLY_PPO - {"objective.gamma"} if discounting else ONLY_PPO
    check_known(run, run.algorithm, keys, set(keys) - without_effect)


def choose(run: Run, framework: str, key: str, value: str, known: Mapping[str, Any]) -> Any:
    """What a value of the run file is in a framework; raises UserError for one that it does not have."""
    if value not in known:
        raise refuse(run, key, f": {framework} has {', '.join(known)}, not '{value}'", "value-not-in-framework")
    return known[value]


def refused_by_parser(run: Run, framework: str, message: str, key: str = "") -> UserError:
    """An error about a command that the framework's own parser refuses.

    Args:
        run: the run.
        framework: as its own documentation writes it.
        message: the parser's.
        key: of the run file with its scale, if it is known which is refused.
    """
    return UserError(
        f"{run.file.name}: {key + ': ' if key else ''}{framework} refuses it: {message}",
        code="refused-by-parser",
        key=key.removeprefix(f"{run.scale}."),
    )


def updates_per_step(run: Run, stage: Stage) -> int:
    """Optimiser steps of one pass over the completions of a step; raises UserError where the batch does not divide."""
    for key in ("prompts_per_update", "samples_per_prompt"):
        if key not in stage.batch:
            raise refuse(run, f"batch.{key}", " is needed; add it", "missing-setting")
    update = stage.batch["prompts_per_update"]
    step = stage.batch.get("prompts_per_step", update)
    if step % update:
        raise refuse(
            run,
            "batch.prompts_per_step",
            f": {step} prompts do not divide into updates of {update} (prompts_per_update)",
            "batch-does-not-divide",
        )
    return int(step // update)


def prompts_per_step(run: Run, stage: Stage) -> int:
    """Distinct prompts that a step samples; raises UserError where the batch does not divide."""
    return updates_per_step(run, stage) * int(stage.batch["prompts_per_update"])


def check_batch(run: Run, stage: Stage, devices: int) -> int:
    """Forward passes of each device in one update.

    Args:
        run: for messages.
        stage: states the batch.
        devices: that train.

    Raises:
        UserError: the prompts of a step do not divide into updates, or the completions of an update into passes.
    """
    updates_per_step(run, stage)
    if "samples_per_device" not in stage.batch:
        raise refuse(run, "batch.samples_per_device", f" is needed by {run.framework}; add it", "missing-setting")
    prompts, group = stage.batch["prompts_per_update"], stage.batch["samples_per_prompt"]
    at_once = stage.batch["samples_per_device"] * devices
    if (prompts * group) % at_once:
        raise refuse(
            run,
            "batch.prompts_per_update",
            f": {prompts} prompts × {group} samples = {prompts * group} completions do not divide into {devices} "
            f"devices × {stage.batch['samples_per_device']} samples_per_device = {at_once}",
            "batch-does-not-divide",
        )
    return int(prompts * group // at_once)


def devices(run: Run) -> int:
    """GPUs over all nodes; without GPUs each node stands for one, so that several can be tried on the CPU."""
    return max(int(run.hardware["gpus"]), int(run.hardware.get("nodes", 1)))

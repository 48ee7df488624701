"""OpenRLHF's own advantages and training step on given tensors: its experience maker, losses and `training_step`.

Every formula's flags are read by the release's own parser. The actor is a stand-in that returns given logits; their
log-probabilities are the release's. DeepSpeed multiplies the loss of a micro-batch by 1 / number of them, and its AdamW
is torch's, as in training without a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from frameworks.conformance import BETA2, LEARNING_RATE, LONGEST, WEIGHT_DECAY, CannotExpress
from frameworks.openrlhf.command import NO_REWARD_CLIP
from frameworks.openrlhf.cpu import rewrites
from frameworks.openrlhf.objective import AGGREGATIONS, ESTIMATORS, LOSSES, NAMED_ESTIMATORS
from frameworks.openrlhf.parser_check import parse

rewrites.install()
torch._dynamo.config.disable = True  # the entropy is compiled otherwise, for each shape anew

CORRECTIONS = {
    ("token", "truncate"): ("token", "clip"),
    ("token", "mask"): ("token", "mask"),
    ("mean", "mask"): ("seq", "mask"),
}


def flags(settings: Mapping[str, Any], samples: int) -> list[str]:
    """The command line of a formula."""
    if settings["mask_truncated"]:
        raise CannotExpress("there is no setting that leaves truncated completions out")
    if settings["loss_aggregation"] not in AGGREGATIONS:
        raise CannotExpress("the mean is over the tokens or over the completions of the whole update")
    if settings["policy"] not in LOSSES:
        raise CannotExpress("losses are ppo and gspo")
    if settings["advantage"] not in ("given", "group", "none", "batch", "gae", *NAMED_ESTIMATORS):
        raise CannotExpress("it has no such estimator")
    if settings["advantage"] == "batch":
        raise CannotExpress("a group is divided by its own std, or all tokens are whitened")
    estimators = {"gae": "gae", **ESTIMATORS, **NAMED_ESTIMATORS}
    estimator = estimators.get(settings["advantage"], "group_norm")
    low, high = settings["clip"]
    arguments = [
        "--vllm.num_engines", "1", "--actor.model_name_or_path", "m", "--reward.remote_url", "r.py",
        "--rollout.n_samples_per_prompt", samples, "--algo.advantage.estimator", estimator,
        "--reward.clip_range", -NO_REWARD_CLIP, NO_REWARD_CLIP, "--actor.eps_clip_low_high", low, high,
        "--actor.loss_agg_mode", AGGREGATIONS[settings["loss_aggregation"]], "--actor.adam.lr", LEARNING_RATE,
        "--actor.adam.betas", 0.9, BETA2, "--actor.adam.weight_decay", WEIGHT_DECAY,
        "--algo.advantage.gamma", settings["gamma"], "--algo.advantage.lambd", settings["gae_lambda"],
        "--algo.kl.init_coef", settings["kl_coefficient"] if settings["kl"] else 0.0,
    ]  # fmt: skip
    if settings["policy"] == "gspo":
        arguments += ["--actor.policy_loss_type", "gspo"]
    if settings["dual_clip"]:
        arguments += ["--actor.dual_clip", settings["dual_clip"]]
    if settings["entropy"]:
        arguments += ["--actor.entropy_coef", settings["entropy"]]
    if settings["kl"]:
        arguments += ["--algo.kl.estimator", settings["kl"], *["--algo.kl.use_loss"] * (settings["kl_in"] == "loss")]
        arguments += ["--algo.kl.unbiased_gradient"] * settings["unbiased_kl"]
    if chosen := settings["correction"]:
        if (chosen["level"], chosen["form"]) not in CORRECTIONS:
            raise CannotExpress("a completion is judged by the geometric mean of its ratios, and dropped or kept")
        level, mode = CORRECTIONS[chosen["level"], chosen["form"]]
        arguments += ["--algo.advantage.is_correction_level", level, "--algo.advantage.is_correction_mode", mode]
        arguments += ["--algo.advantage.is_correction_threshold", chosen["low"], chosen["high"]]
    return [str(word) for word in arguments]


class GivenLogits:
    """Stands in for the actor: log-probabilities and entropy of given logits, by the release's functions."""

    def __init__(self, logits: Any, tokens: Any) -> None:
        """Logits of shape (B, T, V) and the tokens that were sampled from them."""
        self.logits, self.tokens = logits, tokens

    def train(self) -> None:
        """Has no modes."""

    def __call__(self, _: Any, action_mask: Any, **__: Any) -> Any:
        """Log-probabilities, and an output with the entropy."""
        from openrlhf.models import utils

        log_probs = utils.log_probs_from_logits(self.logits, self.tokens) * action_mask
        return log_probs, SimpleNamespace(entropy=utils.compute_entropy(self.logits))


class Functions:
    """See frameworks.conformance."""

    def prepare(self, settings: Mapping[str, Any], batch: Any) -> Any:
        """A configuration of the release for a formula and a shape."""
        from openrlhf.models import PolicyLoss
        from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
        from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer

        args = parse(flags(settings, batch.samples))
        advantage = args.algo.advantage
        trainer = ActorPPOTrainer.__new__(ActorPPOTrainer)
        trainer.args, trainer.ema_model, trainer.aux_loss, trainer.replay_buffer = args, None, False, None
        trainer.actor_optim, trainer.actor_scheduler = None, SimpleNamespace(get_last_lr=lambda: [0.0])
        trainer.actor_loss_fn = PolicyLoss(
            *args.actor.eps_clip_low_high, args.actor.dual_clip, args.actor.loss_agg_mode == "token-mean",
            args.actor.policy_loss_type, advantage.is_correction_level, advantage.is_correction_mode,
            advantage.is_correction_gating, advantage.is_correction_threshold,
        )  # fmt: skip
        controller = SimpleNamespace(value=args.algo.kl.init_coef)
        strategy = SimpleNamespace(args=args, ring_attn_group=None, optimizer_step=lambda *_, **__: None)
        strategy.get_grad_norm = lambda _: 0.0
        trainer.strategy = strategy
        trainer.maker = RemoteExperienceMaker(None, None, None, None, controller, SimpleNamespace(args=args), None)
        return trainer

    def run(self, trainer: Any, settings: Mapping[str, Any], batch: Any, logits: Any) -> tuple[Any, float]:
        """Advantages of all tokens, or None, and the loss."""
        from openrlhf.trainer.ppo_utils.experience import Experience
        from openrlhf.utils.loss_utils import iter_grad_accum_global_norm

        mask = batch.mask * (1 - batch.truncated[:, None]) if batch.kind == "masked" else batch.mask
        advantages = None if settings["advantage"] == "given" else self.advantages(trainer, settings, batch)
        per_token = batch.advantages[:, None].expand_as(mask) if advantages is None else advantages
        passes, processes, losses = settings["micro_batches"], settings["processes"], []
        size = len(mask) // (passes * processes)

        def backward(loss: Any, *_: Any) -> None:
            (loss / passes / processes).backward()
            losses.append(loss.item() / passes / processes)

        trainer.strategy.backward = backward
        parts = [
            Experience(
                sequences=batch.tokens[rows], attention_mask=mask[rows].long(), action_mask=mask[rows].long(),
                action_log_probs=batch.old[rows], base_action_log_probs=batch.reference[rows],
                rollout_log_probs=batch.rollout[rows], advantages=per_token[rows], info={},
            )
            for rows in (slice(start, start + size) for start in range(0, len(mask), size))
        ]  # fmt: skip
        windows = iter_grad_accum_global_norm(parts, trainer.strategy, len(parts), lambda part: part.action_mask)
        for number, (part, norms) in enumerate(windows):
            rows = slice(number * size, (number + 1) * size)
            # as if its all-reduce had added the counts of all processes
            norms = {name: value * processes for name, value in norms.items()}
            trainer.actor = GivenLogits(logits[rows], batch.tokens[rows])
            trainer.training_step(part, trainer.args.algo.kl.init_coef, number, norms)
        return advantages, sum(losses)

    def advantages(self, trainer: Any, settings: Mapping[str, Any], batch: Any) -> Any:
        """What the experience maker makes of a batch."""
        from openrlhf.models.utils import compute_approx_kl
        from openrlhf.trainer.ppo_utils.experience import Experience

        kl = torch.zeros_like(batch.mask)
        if settings["kl"] and settings["kl_in"] == "reward":
            kl = compute_approx_kl(batch.old, batch.reference, kl_estimator=settings["kl"]) * batch.mask
        experience = Experience(
            index=list(range(len(batch.mask))), action_mask=batch.mask.long(), rewards=batch.rewards.clone(), kl=kl,
            values=batch.values if settings["advantage"] == "gae" else None, info={},
        )  # fmt: skip
        if chosen := settings["overlong"]:
            from openrlhf.trainer.ppo_utils.length_penalty import apply_overlong_penalty

            experience.response_length = batch.lengths
            apply_overlong_penalty([experience], LONGEST, chosen["buffer"], chosen["penalty"])
        (done,) = trainer.maker.compute_advantages_and_returns([experience])
        return done.advantages

    def optimizer(self, trainer: Any, parameters: list[Any]) -> Any:
        """The release's AdamW."""
        adam = trainer.args.actor.adam
        return torch.optim.AdamW(
            parameters, lr=adam.lr, betas=tuple(adam.betas), eps=adam.eps, weight_decay=adam.weight_decay
        )


FUNCTIONS = Functions()

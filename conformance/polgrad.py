"""polgrad's functions on given tensors: the formulas once more, independent of ours and of the trainers.

polgrad (Apache-2.0) is a library of losses and advantages without a trainer. It has no optimiser: the step is that of
torch's AdamW with its gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from polgrad import advantages, kl, losses
from polgrad.aggregate import Aggregation, microbatch_token_weights

from frameworks.conformance import BETA2, LEARNING_RATE, LONGEST, WEIGHT_DECAY, CannotExpress

TINY = 1e-12  # in place of 0 beside a std, so that equal rewards are not divided by zero
MEANS = {
    "token_mean": Aggregation.TOKEN_MEAN,
    "forward_pass_mean": Aggregation.TOKEN_MEAN,
    "completion_mean": Aggregation.SEQ_MEAN_TOKEN_MEAN,
    "max_length_mean": Aggregation.TOKEN_SUM_NORM,
}  # fmt: skip


def loss_config(settings: Mapping[str, Any]) -> losses.PolicyLossConfig:
    """Its configuration of a formula."""
    low, high = settings["clip"]
    correction = settings["correction"]
    if correction and correction["form"] == "mask":
        raise CannotExpress("weights for the sampler are truncated, and nothing is masked")
    if settings["unbiased_kl"]:
        raise CannotExpress("the unbiased gradient is that of the policy's own samples, without the ratio")
    if settings["entropy"]:
        raise CannotExpress("there is no entropy term")
    in_loss = settings["kl"] and settings["kl_in"] == "loss"
    cispo = settings["policy"] == "cispo"
    return losses.PolicyLossConfig(
        ratio=losses.RatioKind.SEQUENCE if settings["policy"] == "gspo" else losses.RatioKind.TOKEN,
        surrogate=losses.SurrogateKind.CISPO if cispo else losses.SurrogateKind.PG_CLIP,
        clip=losses.ClipConfig(low, high, settings["dual_clip"]),
        aggregation=MEANS[settings["loss_aggregation"]],
        norm_len=LONGEST,
        is_correction=losses.ISCorrectionConfig(correction["high"], correction["level"]) if correction else None,
        kl=kl.KLLossConfig(kl.KLEstimator(settings["kl"]), settings["kl_coefficient"]) if in_loss else None,
    )


def token_advantages(settings: Mapping[str, Any], batch: Any, mask: Any) -> Any:
    """Advantages of all tokens, with the reward at the last one, less the KL term."""
    scores = torch.zeros_like(batch.mask)
    scores[torch.arange(len(mask)), batch.lengths - 1] = batch.rewards
    if settings["kl"] and settings["kl_in"] == "reward":
        kind, coefficient = kl.KLEstimator(settings["kl"]), settings["kl_coefficient"]
        scores = kl.kl_in_reward(scores, batch.old, batch.reference, kind, coefficient, response_mask=mask)
    if settings["advantage"] == "gae":
        config = advantages.GAEConfig(settings["gamma"], settings["gae_lambda"])
        estimates, _ = advantages.gae(scores, batch.values, config=config, response_mask=mask)
        return advantages.whiten(estimates, mask, eps=0.0)
    groups = torch.arange(len(mask)) // batch.samples
    scale = "std" if settings["advantage"] == "group" else "none"
    norm = advantages.GroupNormConfig(center=True, scale=scale, eps=TINY, unbiased=True)
    return advantages.broadcast_to_tokens(advantages.grpo_advantages(scores.sum(1), groups, norm), mask)


class Functions:
    """See frameworks.conformance."""

    def prepare(self, settings: Mapping[str, Any], batch: Any) -> Any:
        """Its configuration of a formula."""
        if settings["advantage"] not in ("given", "group", "none", "batch", "gae"):
            raise CannotExpress("estimators by name are not compared")
        if settings["overlong"]:
            raise CannotExpress("there is no penalty on length")
        if settings["policy"] not in ("ppo", "gspo", "cispo"):
            raise CannotExpress("losses by name are not compared")
        if settings["advantage"] == "batch":
            raise CannotExpress("the batch's std is that of the rewards less their group's mean")
        return loss_config(settings)

    def run(self, config: Any, settings: Mapping[str, Any], batch: Any, logits: Any) -> tuple[Any, float]:
        """Advantages of all tokens, or None, and the loss."""
        drops = settings["mask_truncated"] or batch.kind == "masked"
        rows = torch.where(batch.truncated == 0)[0] if drops else torch.arange(len(batch.mask))
        mask = batch.mask.bool()
        estimates = None if settings["advantage"] == "given" else token_advantages(settings, batch, mask)
        per_token = batch.advantages[:, None].expand_as(mask) if estimates is None else estimates
        own = torch.log_softmax(logits, -1).gather(-1, batch.tokens[..., None])[..., 0]
        result = losses.policy_loss(
            config, logprobs=own[rows], old_logprobs=batch.old[rows], advantages=per_token[rows],
            response_mask=mask[rows], ref_logprobs=batch.reference[rows], rollout_logprobs=batch.rollout[rows],
        )  # fmt: skip
        loss = result.loss
        if settings["loss_aggregation"] == "forward_pass_mean":
            passes = settings["micro_batches"] * settings["processes"]
            weights = microbatch_token_weights(mask[rows], config.aggregation, [len(rows) // passes] * passes)
            loss = (weights * result.per_token_objective).sum()
        loss.backward()
        return estimates, loss.item()

    def optimizer(self, config: Any, parameters: list[Any]) -> Any:
        """Torch's AdamW."""
        return torch.optim.AdamW(parameters, lr=LEARNING_RATE, betas=(0.9, BETA2), weight_decay=WEIGHT_DECAY)


FUNCTIONS = Functions()

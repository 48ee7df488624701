"""verl's own advantages, sampler correction and `ppo_loss` on given tensors, with its typed configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl.experimental.reward_loop.reward_manager.dapo import DAPORewardManager
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo.core_algos import get_adv_estimator_fn, kl_penalty
from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_rejection_mask
from verl.utils import tensordict_utils
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.torch_functional import entropy_from_logits, logprobs_from_logits
from verl.workers.config.optimizer import build_optimizer
from verl.workers.utils.losses import ppo_loss

from frameworks.conformance import BETA2, DRO_BETA, LEARNING_RATE, LONGEST, WEIGHT_DECAY, CannotExpress
from frameworks.verl.objective import AGGREGATIONS, KL_ESTIMATORS, LOSSES, NAMED_ESTIMATORS, NO_DUAL_CLIP

NEVER = 1e6  # a threshold that no weight reaches


class OneCompletion:
    """A completion as verl's reward managers read it."""

    def __init__(self, tokens: Any, mask: Any) -> None:
        """The tokens of one completion and its mask, both of shape (T,)."""
        self.batch = {"responses": tokens, "attention_mask": mask}
        self.non_tensor_batch = {"data_source": "", "reward_model": {"ground_truth": ""}}

    def __getitem__(self, _: Any) -> OneCompletion:
        """Itself, as the last and only one."""
        return self


def penalised(settings: Mapping[str, Any], batch: Any) -> Any:
    """Rewards after verl's reward manager `dapo` has added its penalty on length."""
    manager = DAPORewardManager.__new__(DAPORewardManager)
    chosen = {"len": settings["overlong"]["buffer"], "penalty_factor": settings["overlong"]["penalty"]}
    manager.overlong_buffer_cfg = SimpleNamespace(enable=True, log=False, **chosen)
    manager.max_resp_len, manager.tokenizer = LONGEST, SimpleNamespace(decode=lambda *_, **__: "")
    manager.reward_router_address, manager.is_async_reward_score = None, False

    async def rewarded(row: int) -> float:
        manager.loop = asyncio.get_running_loop()
        manager.compute_score = lambda **_: batch.rewards[row].item()
        result = await manager.run_single(OneCompletion(batch.tokens[row], batch.mask[row].long()))
        return float(result["reward_score"])

    return torch.tensor([asyncio.run(rewarded(row)) for row in range(len(batch.mask))])


class Functions:
    """See frameworks.conformance."""

    def __init__(self) -> None:
        """Composes the release's configuration once."""
        with initialize_config_module("verl.trainer.config", version_base=None):
            self.actor = compose("ppo_trainer", overrides=["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1"])
            OmegaConf.resolve(self.actor)

    def prepare(self, settings: Mapping[str, Any], batch: Any) -> Any:
        """A configuration of the release for a formula and a shape."""
        if settings["mask_truncated"]:
            raise CannotExpress("there is no setting that leaves truncated completions out")
        if settings["advantage"] == "batch":
            raise CannotExpress("a group is divided by its own std or by none")
        if settings["advantage"] not in ("given", "group", "none", "gae", *NAMED_ESTIMATORS):
            raise CannotExpress("it has no such estimator")
        if settings["policy"] not in LOSSES:
            raise CannotExpress("it has no such loss")
        if settings["loss_aggregation"] not in AGGREGATIONS:
            raise CannotExpress("the mean over tokens is over those of the whole update")
        low, high = settings["clip"]
        changed: dict[str, Any] = {
            "clip_ratio": low, "clip_ratio_low": low, "clip_ratio_high": high,
            "clip_ratio_c": settings["dual_clip"] or NO_DUAL_CLIP, "entropy_coeff": settings["entropy"],
            "loss_agg_mode": AGGREGATIONS[settings["loss_aggregation"]],
            "loss_scale_factor": LONGEST if settings["loss_aggregation"] == "max_length_mean" else None,
            "optim": {"lr": LEARNING_RATE, "betas": [0.9, BETA2], "weight_decay": WEIGHT_DECAY},
        }  # fmt: skip
        if settings["policy"] != "ppo":
            # Clip-Cov leaves out a share of tokens at random; here all that may be left out are.
            changed["policy_loss"] = {
                "loss_mode": LOSSES[settings["policy"]], "dro_beta": DRO_BETA, "clip_cov_ratio": 1.0,
            }  # fmt: skip
        if settings["kl"] and settings["kl_in"] == "loss":
            estimator = KL_ESTIMATORS[settings["kl"]] + "+" * settings["unbiased_kl"]
            changed |= {"use_kl_loss": True, "kl_loss_coef": settings["kl_coefficient"], "kl_loss_type": estimator}
        config = OmegaConf.merge(self.actor.actor_rollout_ref.actor, changed)
        return omega_conf_to_dataclass(config)

    def run(self, config: Any, settings: Mapping[str, Any], batch: Any, logits: Any) -> tuple[Any, float]:
        """Advantages of all tokens, or None, and the loss."""
        mask = batch.mask * (1 - batch.truncated[:, None]) if batch.kind == "masked" else batch.mask
        weights, mask = self.correction(settings, batch, mask)
        advantages = None if settings["advantage"] == "given" else self.advantages(settings, batch, mask)
        per_token = batch.advantages[:, None].expand_as(mask) if advantages is None else advantages
        processes = settings["processes"]
        size, total = len(mask) // (settings["micro_batches"] * processes), 0.0
        for start in range(0, len(mask), size):
            rows = slice(start, start + size)
            data = self.data(batch, mask, per_token, weights, rows)
            tensordict_utils.assign_non_tensor(
                data, dp_size=processes, batch_num_tokens=mask.sum().item(), global_batch_size=len(mask)
            )
            loss, _ = ppo_loss(config, self.output(batch, logits, rows, settings), data)
            (loss / processes).backward()
            total += loss.item() / processes
        return advantages, total

    def output(self, batch: Any, logits: Any, rows: slice, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What the engine gives for a micro-batch: values of all tokens without padding; a prompt is one token."""
        values = {"log_probs": logprobs_from_logits(logits[rows], batch.tokens[rows])}
        if settings["entropy"]:
            values["entropy"] = entropy_from_logits(logits[rows])
        lengths = batch.lengths[rows].tolist()
        return {
            name: torch.cat([F.pad(row[:length], (0, 1)) for row, length in zip(value, lengths, strict=True)])
            for name, value in values.items()
        }

    def data(self, batch: Any, mask: Any, advantages: Any, weights: Any, rows: slice) -> Any:
        """A micro-batch as the engine's loss gets it."""
        prompts = torch.full((len(mask), 1), 3)
        tensors = {
            "prompts": prompts, "responses": batch.tokens, "response_mask": mask, "old_log_probs": batch.old,
            "attention_mask": torch.cat([torch.ones_like(prompts), batch.mask.long()], 1),
            "advantages": advantages, "ref_log_prob": batch.reference,
        }  # fmt: skip
        if weights is not None:
            tensors["rollout_is_weights"] = weights
        count = len(mask[rows])
        return TensorDict({name: value[rows] for name, value in tensors.items()}, batch_size=[count])

    def correction(self, settings: Mapping[str, Any], batch: Any, mask: Any) -> tuple[Any, Any]:
        """Weights for the sampler's probabilities, and the mask of what is trained on."""
        chosen = settings["correction"]
        if not chosen:
            return None, mask
        band = f"{chosen['low']}_{chosen['high']}"
        options: dict[str, Any] = {"rollout_is": chosen["level"], "rollout_is_threshold": chosen["high"]}
        if chosen["form"] == "mask":
            options["rollout_is_threshold"] = band
        if chosen["level"] == "mean":
            options = {
                "rollout_is": "token", "rollout_is_threshold": NEVER,
                "rollout_rs": "seq_mean_k1", "rollout_rs_threshold": band,
            }  # fmt: skip
        weights, kept, _ = compute_rollout_correction_and_rejection_mask(batch.old, batch.rollout, mask, **options)
        return weights.batch["rollout_is_weights"], kept

    def advantages(self, settings: Mapping[str, Any], batch: Any, mask: Any) -> Any:
        """Of all tokens, with the reward at the last one, less the KL term."""
        scores = torch.zeros_like(mask)
        scores[torch.arange(len(mask)), batch.lengths - 1] = (
            penalised(settings, batch) if settings["overlong"] else batch.rewards
        )
        if settings["kl"] and settings["kl_in"] == "reward":
            terms = kl_penalty(batch.old, batch.reference, KL_ESTIMATORS[settings["kl"]])
            scores = scores - settings["kl_coefficient"] * terms * mask
        if settings["advantage"] == "gae":
            estimate = get_adv_estimator_fn("gae")
            return estimate(scores, batch.values, mask, settings["gamma"], settings["gae_lambda"])[0]
        groups = [row // batch.samples for row in range(len(mask))]
        if settings["advantage"] in NAMED_ESTIMATORS:
            estimate = get_adv_estimator_fn(NAMED_ESTIMATORS[settings["advantage"]])
            config = AlgoConfig(gamma=settings["gamma"], gdpo_reward_keys=["right", "form"])
            log_p = torch.log_softmax(batch.logits, -1)
            whole = torch.cat([torch.ones(len(mask), 1).long(), batch.mask.long()], 1)
            return estimate(
                token_level_rewards=scores, response_mask=mask, index=np.array(groups), config=config,
                reward_baselines=batch.values[:, 0], sum_pi_squared=(log_p.exp() ** 2).sum(-1),
                old_log_probs=torch.gather(log_p, -1, batch.tokens[..., None])[..., 0],
                non_tensor_batch={"right": batch.rewards.numpy(), "form": batch.form_rewards.numpy()},
                batch={"prompts": whole[:, :1], "attention_mask": whole},
            )[0].to(scores.dtype)  # fmt: skip
        estimate = get_adv_estimator_fn("grpo")
        return estimate(scores, mask, groups, norm_adv_by_std_in_grpo=settings["advantage"] == "group")[0]

    def optimizer(self, config: Any, parameters: list[Any]) -> Any:
        """The release's AdamW."""
        return build_optimizer(parameters, config.optim)


FUNCTIONS = Functions()

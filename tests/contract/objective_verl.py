"""The installed verl's loss on fixed tensors; run with verl's Python: `python objective_verl.py < CASES > RESULTS`.

CASES maps a name to Hydra overrides of verl's trainer. The configuration is composed and typed as verl does it;
advantages, policy loss, KL term and their averages are verl's own functions, called as its `ppo_loss` calls them.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import torch
import torch.nn.functional as F
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from verl.trainer.ppo.core_algos import agg_loss, compute_gae_advantage_return, get_policy_loss_fn, kl_penalty
from verl.utils.config import omega_conf_to_dataclass

LENGTHS, WIDTH = [3, 6, 5, 2], 6


def tensors() -> dict[str, torch.Tensor]:
    """Probabilities of tokens under three policies, advantages, and what is text; the first tokens have moved far."""
    torch.manual_seed(0)
    old = -torch.rand(len(LENGTHS), WIDTH) * 3 - 3
    new = old + 0.1 * torch.randn(old.shape)
    new[:, 0] = old[:, 0] + 2.0  # a ratio of e² = 7.4
    mask = (torch.arange(WIDTH) < torch.tensor(LENGTHS)[:, None]).float()
    advantages = torch.tensor([-1.0, 0.5, -0.3, 1.2])[:, None].expand_as(mask)
    reference = old + 0.5 * torch.randn(old.shape)
    return {"old": old, "new": new, "mask": mask, "advantages": advantages, "reference": reference}


def loss_of(config: Any, width: int) -> dict[str, Any]:
    """Policy and KL loss with the batch padded to a width, and their gradients of the tokens' log-probabilities."""
    padded = {name: F.pad(value, (0, width - WIDTH)) for name, value in tensors().items()}
    new = padded["new"].requires_grad_()
    batch = {"dp_size": 1, "batch_num_tokens": int(padded["mask"].sum()), "global_batch_size": len(LENGTHS)}
    config.global_batch_info.update(batch | {"loss_scale_factor": config.loss_scale_factor})
    policy, _ = get_policy_loss_fn(config.policy_loss.loss_mode)(
        old_log_prob=padded["old"], log_prob=new, advantages=padded["advantages"], response_mask=padded["mask"].bool(),
        loss_agg_mode=config.loss_agg_mode, config=config,
    )  # fmt: skip
    results = {"policy": policy.item(), "policy_gradient": torch.autograd.grad(policy, new)[0][:, :WIDTH].tolist()}
    if config.use_kl_loss:
        terms = kl_penalty(new, padded["reference"], config.kl_loss_type)
        kl = agg_loss(terms, padded["mask"].bool(), config.loss_agg_mode, **config.global_batch_info)
        results |= {"kl": kl.item(), "kl_gradient": torch.autograd.grad(kl, new)[0][:, :WIDTH].tolist()}
    return results


def whitened() -> list[list[float]]:
    """PPO's advantages of random values and rewards, with the padding zero."""
    mask = tensors()["mask"]
    torch.manual_seed(1)
    advantages, _ = compute_gae_advantage_return(
        torch.randn(mask.shape) * mask, torch.randn(mask.shape) * mask, mask, 1.0, 0.95
    )
    return (advantages * mask).tolist()


def main() -> None:
    """Read cases, write results."""
    results: dict[str, Any] = {
        "tensors": {name: value.tolist() for name, value in tensors().items()},
        "whitened": whitened(),
    }
    with contextlib.redirect_stdout(sys.stderr), initialize_config_module("verl.trainer.config", version_base=None):
        for name, command_line in json.load(sys.stdin).items():
            composed = compose(
                "ppo_trainer", overrides=[word for word in command_line if not word.startswith("hydra.")]
            )
            OmegaConf.resolve(composed)
            config = omega_conf_to_dataclass(composed.actor_rollout_ref.actor)
            results[f"{name} clip_grad"] = config.optim.clip_grad
            results[name] = {str(width): loss_of(config, width) for width in (WIDTH, 2 * WIDTH)}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()

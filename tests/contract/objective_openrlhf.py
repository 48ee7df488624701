"""The installed OpenRLHF's loss on fixed tensors; run with its Python: `python objective_openrlhf.py MODEL < CASES`.

CASES maps a name to a command line. Each is read by OpenRLHF's own parser; the advantages are those of its experience
maker, and the loss is that of its actor trainer's step, with the model's own probabilities of given completions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from types import SimpleNamespace
from typing import Any

import torch

from frameworks.openrlhf.cpu import rewrites
from frameworks.openrlhf.parser_check import parse

LENGTHS, PROMPT, WIDTH = [3, 8, 5, 2], 4, 8


def actor_of(model: str, args: Any) -> Any:
    """The release's actor, as its trainer makes it, in single precision."""
    from openrlhf.models import Actor

    actor = Actor(model, attn_implementation="eager", temperature=args.rollout.temperature).float()
    actor.train()
    return actor


def batch_of(actor: Any) -> Any:
    """Prompts and completions with probabilities of an old policy and of a base model."""
    from openrlhf.trainer.ppo_utils.experience import Experience

    torch.manual_seed(0)
    sequences = torch.randint(3, 200, (len(LENGTHS), PROMPT + WIDTH))
    mask = (torch.arange(WIDTH) < torch.tensor(LENGTHS)[:, None]).long()
    attention = torch.cat([torch.ones(len(LENGTHS), PROMPT, dtype=torch.long), mask], 1)
    logits = actor.model(sequences, attention_mask=attention).logits[:, PROMPT - 1 : -1].float()
    own = logits.log_softmax(-1).gather(-1, sequences[:, PROMPT:, None])[..., 0].detach()
    noise = torch.randn(2, *own.shape)
    return Experience(
        sequences=sequences, attention_mask=attention, action_mask=mask, action_log_probs=own + 0.05 * noise[0],
        base_action_log_probs=own + 0.5 * noise[1], advantages=torch.randn(len(LENGTHS))[:, None].expand_as(own) * 1.0,
    )  # fmt: skip


def step(model: str, args: Any) -> dict[str, Any]:
    """Loss and gradient of one training step, and the model's plain log-probabilities for comparison."""
    from openrlhf.models import PolicyLoss
    from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer

    actor, results = actor_of(model, args), dict[str, Any]()
    batch = batch_of(actor)
    values_of_batch = {
        name: getattr(batch, name).tolist()
        for name in ("action_mask", "action_log_probs", "base_action_log_probs", "advantages")
    }

    def backward(loss: torch.Tensor, *_: Any) -> None:
        loss.backward()
        last = actor.model.model.layers[-1].mlp.down_proj.weight.grad
        results.update(loss=loss.item(), gradient=last.flatten().tolist())

    trainer = ActorPPOTrainer.__new__(ActorPPOTrainer)
    trainer.args, trainer.actor, trainer.ema_model, trainer.aux_loss = args, actor, None, False
    trainer.actor_optim, trainer.actor_scheduler = None, SimpleNamespace(get_last_lr=lambda: [0.0])
    trainer.actor_loss_fn = PolicyLoss(
        *args.actor.eps_clip_low_high, args.actor.dual_clip, args.actor.loss_agg_mode == "token-mean",
        args.actor.policy_loss_type, args.algo.advantage.is_correction_level,
    )  # fmt: skip
    trainer.replay_buffer = None
    trainer.strategy = SimpleNamespace(
        args=args, ring_attn_group=None, backward=backward, optimizer_step=lambda *_, **__: None,
        get_grad_norm=lambda _: 0.0,
    )  # fmt: skip
    trainer.training_step(batch, args.algo.kl.init_coef, 0)
    logits = actor.model(batch.sequences, attention_mask=batch.attention_mask).logits[:, PROMPT - 1 : -1].float()
    plain = {
        str(temperature): (logits / temperature).log_softmax(-1).gather(-1, batch.sequences[:, PROMPT:, None])[..., 0]
        for temperature in (1.0, 0.6)
    }
    entropies = -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)
    return {**results, "given": values_of_batch, "own": {name: value.tolist() for name, value in plain.items()},
            "entropies": entropies.tolist()}  # fmt: skip


def advantages(args: Any, rewards: list[float]) -> list[float]:
    """What the experience maker makes of a batch: the advantages of all tokens of text."""
    from openrlhf.trainer.ppo_utils.experience import Experience
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker

    torch.manual_seed(1)
    maker = RemoteExperienceMaker(None, None, None, None, SimpleNamespace(value=0.0), SimpleNamespace(args=args), None)
    mask = (torch.arange(WIDTH) < torch.randint(1, WIDTH + 1, (len(rewards), 1))).long()
    batch = Experience(
        index=list(range(len(rewards))), action_mask=mask, rewards=torch.tensor(rewards), kl=torch.zeros(mask.shape),
        values=torch.randn(mask.shape) if args.algo.advantage.estimator == "gae" else None,
    )  # fmt: skip
    (done,) = maker.compute_advantages_and_returns([batch])
    return list(done.advantages[mask.bool()].tolist())


def temperatures_asked_of_vllm(args: Any) -> list[Any]:
    """The temperatures of training and of sampling, the latter as the release's own executor asks vLLM for a turn."""
    from openrlhf.trainer.ray.vllm_engine import _load_agent_executor

    temperatures: list[float] = []

    class Engine:
        async def generate(self, tokens: list[int], parameters: Any, **_: Any) -> Any:
            temperatures.append(parameters.temperature)
            return SimpleNamespace(outputs=[SimpleNamespace(token_ids=[7], finish_reason="stop", logprobs=None)])

    class Tokenizer:
        def __call__(self, **_: Any) -> dict[str, torch.Tensor]:
            return {"input_ids": torch.tensor([[5, 6]])}

        def decode(self, tokens: list[int], **_: Any) -> str:
            return "asked answered<|im_end|>"

    executor = _load_agent_executor(args.train.agent_func_path)
    parameters = SimpleNamespace(temperature=args.rollout.temperature, max_tokens=8, logprobs=None)
    label = json.dumps({"problem_id": "p", "task": "math", "answer": "1", "meta": "{}", "prefill": ""})
    done = asyncio.run(executor.execute("asked ", label, parameters, 64, Tokenizer(), Engine()))
    return [args.rollout.temperature, *temperatures, done["reward"]]


def main() -> None:
    """Read cases, write results."""
    rewrites.install()
    results: dict[str, Any] = {}
    with contextlib.redirect_stdout(sys.stderr):
        for name, case in json.load(sys.stdin).items():
            args = parse(case["arguments"])
            results[name] = advantages(args, case["rewards"]) if "rewards" in case else step(sys.argv[1], args)
            if case.get("asks"):
                results[f"{name} asked"] = temperatures_asked_of_vllm(args)
        from openrlhf.models import ValueLoss

        mask = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
        errors = torch.tensor([[2.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
        results["critic"] = ValueLoss(0.2)(errors, errors, torch.zeros(mask.shape), action_mask=mask).item()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()

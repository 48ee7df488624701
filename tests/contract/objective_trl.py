"""The installed TRL's loss on fixed tensors; run with its Python: `python objective_trl.py MODEL < CASES > RESULTS`.

CASES maps a name to a command line of TRL's script. Each is read by TRL's own parser, and the loss is computed by its
own trainer: the rewards, advantages, probabilities and the loss itself. Only the completions are given, with the
probabilities that a sampler might have reported. RESULTS has for each the loss, its gradient, and the published loss
and gradient, written out here for the same tensors.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOTrainer
from trl.scripts import grpo
from trl.trainer.utils import create_model_from_path

GROUPS, SAMPLES, PROMPT, LONGEST = 2, 4, 3, 12
LENGTHS = [3, 12, 7, 5, 12, 4, 9, 6]
REWARDS = [1.0, 0.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0]


def trainer_of_command(model: str, command_line: list[str]) -> tuple[GRPOTrainer, Any]:
    """A trainer as TRL's script makes it of these words, with a policy a little away from the reference model."""
    parser = grpo.make_parser()
    _, arguments, chosen, _ = parser.parse_args_and_config(command_line, fail_with_unknown_args=True)
    policy = create_model_from_path(model, dtype=chosen.dtype)
    rows = Dataset.from_list([{"prompt": "abc"}] * GROUPS)
    trainer = GRPOTrainer(policy, lambda **_: REWARDS, arguments, train_dataset=rows)
    trainer.current_gradient_accumulation_steps = 1
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.02 * torch.randn(parameter.shape).to(parameter.dtype)
    return trainer, arguments


def inputs_of(trainer: GRPOTrainer, sampler: bool) -> dict[str, Any]:
    """What TRL makes of given completions; with `sampler`, as if a vLLM of slightly other probabilities wrote them."""
    torch.manual_seed(1)
    prompts = torch.randint(3, 200, (GROUPS * SAMPLES, PROMPT)).tolist()
    texts = [torch.randint(3, 200, (length,)).tolist() for length in LENGTHS]
    noise = [(0.25 * torch.randn(length)).tolist() for length in LENGTHS]
    trainer._generate = lambda _: (prompts, texts, None, [""] * len(texts), noise if sampler else None, {}, None, None)
    trainer.model.train()
    if sampler:
        with torch.no_grad():
            own = [score(trainer, prompts[i], texts[i], trainer.temperature) for i in range(len(texts))]
        noise = [(mine + torch.tensor(more)).tolist() for mine, more in zip(own, noise, strict=True)]
        trainer.use_vllm = True
    return trainer._generate_and_score_completions([{"prompt": "abc"} for _ in texts])


def score(trainer: GRPOTrainer, prompt: list[int], text: list[int], temperature: float, model: Any = None) -> Any:
    """Log-probabilities of a completion, by plain torch."""
    logits = (model or trainer.model)(torch.tensor([prompt + text])).logits[0, len(prompt) - 1 : -1].float()
    return (logits / temperature).log_softmax(-1).gather(1, torch.tensor(text)[:, None])[:, 0]


def published(trainer: GRPOTrainer, inputs: dict[str, Any], beta: float, loss: str, temperature: float) -> Any:
    """GRPO as the releases of the recipes had it: one update per batch, k3, no sampler correction."""
    policy, terms = [], []
    rewards = torch.tensor(REWARDS).view(GROUPS, SAMPLES)
    advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
    for prompt, text, mask, advantage in zip(
        inputs["prompt_ids"].tolist(), inputs["completion_ids"].tolist(), inputs["completion_mask"].tolist(),
        advantages.flatten().tolist(), strict=True,
    ):  # fmt: skip
        text = text[: sum(mask)]
        own = score(trainer, prompt, text, temperature)
        with torch.no_grad():
            base = score(trainer, prompt, text, temperature, trainer.ref_model) if beta else own
        kl = (base - own).exp() - (base - own) - 1
        policy.append(-(own - own.detach()).exp() * advantage)
        terms.append(policy[-1] + beta * kl)
    if loss == "grpo":
        return torch.stack([term.mean() for term in terms]).mean()
    return torch.cat(terms).mean()


def gradient(trainer: GRPOTrainer, loss: torch.Tensor) -> list[float]:
    """Its gradient, of the parameters of the last layers."""
    trainer.model.zero_grad()
    loss.backward()
    last = [p.grad for n, p in trainer.model.named_parameters() if "layers.1.mlp" in n and p.grad is not None]
    return torch.cat([part.flatten() for part in last]).float().tolist()


def main() -> None:
    """Read cases, write results."""
    results = {}
    with contextlib.redirect_stdout(sys.stderr):
        for name, case in json.load(sys.stdin).items():
            with tempfile.TemporaryDirectory() as output:
                trainer, arguments = trainer_of_command(sys.argv[1], [*case["arguments"], "--output_dir", output])
                inputs = inputs_of(trainer, case.get("sampler", False))
                loss = trainer._compute_loss(trainer.model, inputs)
                entropy = trainer._metrics["train"]["entropy"][-1]
                results_of_case = {"loss": loss.item(), "gradient": gradient(trainer, loss)}
                written = published(trainer, inputs, arguments.beta, arguments.loss_type, case["logits_temperature"])
                results_of_case |= {"published": written.item(), "published_gradient": gradient(trainer, written)}
                results_of_case |= {
                    "entropy": entropy,
                    "sampled_at": trainer.generation_config.temperature,
                    "dtype": str(trainer.model.dtype),
                }
                results[name] = results_of_case
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()

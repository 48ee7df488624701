"""Supervised training of the demo model from scratch: a plain loop with Muon, which needs a third of AdamW's steps."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

LOG_EVERY = 100  # steps


class Example(NamedTuple):
    """Tokens of one prompt and of the completion that is learned."""

    prompt: list[int]
    completion: list[int]


def in_batches_of_similar_length(
    rows: Sequence[Example], batch: int, seed: int, window: int = 8
) -> list[list[Example]]:
    """Batches that need little padding, while neighbouring batches stay unlike each other.

    Within each window of `window` batches rows are sorted by length and the batches shuffled. (Grouping over long
    stretches, short batches after long ones, kept this model from learning.)
    """
    rng, batches = random.Random(seed), []
    for start in range(0, len(rows), window * batch):
        near = sorted(rows[start : start + window * batch], key=lambda row: len(row.prompt) + len(row.completion))
        nearby_batches = [near[i : i + batch] for i in range(0, len(near), batch)]
        rng.shuffle(nearby_batches)
        batches += nearby_batches
    return batches


def _padded_batch(rows: Sequence[Example], padding: int) -> tuple[Any, Any]:
    """Tokens, and which of them are learned: two tensors of shape (rows, longest)."""
    import torch

    longest = max(len(row.prompt) + len(row.completion) for row in rows)
    tokens = torch.full((len(rows), longest), padding)
    learned = torch.zeros((len(rows), longest), dtype=torch.bool)
    for tokens_row, learned_row, row in zip(tokens, learned, rows, strict=True):
        end = len(row.prompt) + len(row.completion)
        tokens_row[:end] = torch.tensor(row.prompt + row.completion)
        learned_row[len(row.prompt) : end] = True
    return tokens, learned


def train(
    model: Any, examples: Sequence[Example], padding: int, settings: dict[str, Any], seed: int, name: str
) -> float:
    """Train on the completions in one pass; returns the mean loss of the last hundred steps.

    Args:
        model: a transformers causal language model.
        examples: in the order in which they are learned, but for sorting by length over short stretches.
        padding: the token that fills up batches.
        settings: `training` of recipes/demo_model.yaml.
        seed: of the order of batches.
        name: of the model, in the lines of its steps.
    """
    import torch
    from torch.nn import functional
    from torch.overrides import TorchFunctionMode

    class SinglePrecision(TorchFunctionMode):
        """torch's Muon computes in bfloat16: a step takes three times as long where a CPU only emulates that."""

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return args[0].clone() if function is torch.Tensor.bfloat16 else function(*args, **(kwargs or {}))

    # Muon (Jordan et al., 2024) is for the hidden layers' matrices; embeddings and norms take AdamW.
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    optimizers = [
        torch.optim.Muon(matrices, lr=settings["muon_learning_rate"], momentum=0.95, weight_decay=0.0),
        torch.optim.AdamW(others, lr=settings["learning_rate"], betas=(0.9, 0.98), weight_decay=0.0),
    ]
    batches = in_batches_of_similar_length(examples, settings["batch"], seed)
    warmup: int = settings["warmup_steps"]

    def scale(step: int) -> float:  # linear warm-up, cosine decay
        return min((step + 1) / warmup, 1) * (1 + math.cos(math.pi * step / len(batches))) / 2

    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, scale) for optimizer in optimizers]
    started, losses = time.monotonic(), list[float]()
    for step, rows in enumerate(batches, start=1):
        tokens, learned = _padded_batch(rows, padding)
        # Padding stands on the right: causal attention keeps it from every token that counts.
        hidden = model.model(input_ids=tokens).last_hidden_state[:, :-1]
        kept = learned[:, 1:]
        loss = functional.cross_entropy(model.lm_head(hidden[kept]), tokens[:, 1:][kept])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            with SinglePrecision():
                optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        if step % LOG_EVERY == 0 or step == len(batches):
            recent = sum(losses[-LOG_EVERY:]) / len(losses[-LOG_EVERY:])
            left = (time.monotonic() - started) / step * (len(batches) - step)
            print(f"{name}: step {step}/{len(batches)}, loss {recent:.2f}, {left:.0f} s left", flush=True)
    return sum(losses[-LOG_EVERY:]) / len(losses[-LOG_EVERY:])

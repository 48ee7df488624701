"""The traces that the demo model is pre-trained on: a mixture of habits, of which reinforcement can prefer one.

A trace solves one arithmetic problem in one of three habits: left to right (wrong by construction of the task), the
right order, or left to right first and then, after a look back, the right order. It rewrites what is left to calculate,
a line for each step, plainly or with the words First, Next, Finally; it slips now and then, and it keeps to the format
that its prompt asks for only part of the time. The shares are in demo_model.yaml. So the base model knows everything
that a good answer needs and does it rarely: that is where reinforcement learning starts from.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from recipes.tasks import arithmetic
from recipes.tasks.problems import Problem

POOL = 20_000  # problems that traces are told of
LOOK_BACK = "Wait, check again: multiplication goes first."


@dataclass(frozen=True)
class Mixture:
    """Shares from 0 to 1; the habits' remainder goes left to right."""

    right_order: float
    look_back: float
    in_words: float  # of the traces, told as First, Next, Finally
    format_kept: float
    slip: float  # of the steps, a wrong result


def _rewrite(
    expression: arithmetic.Expression, multiplication_first: bool, slip: float, rng: random.Random
) -> list[str]:
    """What is left to calculate after each step, from the whole expression to the answer."""
    numbers, operations = list(expression.numbers), list(expression.operations)
    lines = [str(expression)]
    while operations:
        at = operations.index("*") if multiplication_first and "*" in operations else 0
        result = arithmetic.OPERATIONS[operations.pop(at)](numbers[at], numbers[at + 1])
        if rng.random() < slip:
            result += rng.choice((-10, -2, -1, 1, 2, 10))
        numbers[at : at + 2] = [min(max(result, 0), arithmetic.LARGEST)]
        lines.append(str(arithmetic.Expression(tuple(numbers), tuple(operations))))
    return lines


def _tell(lines: list[str], in_words: bool) -> str:
    if not in_words:
        return "\n".join(lines)
    openers = ["First", *["Next"] * (len(lines) - 2), "Finally"]
    return "\n".join(f"{opener}, {line}" for opener, line in zip(openers, lines, strict=True))


def completion(expression: arithmetic.Expression, tags: bool, mixture: Mixture, rng: random.Random) -> str:
    """One trace with its answer; `tags` says whether the prompt asks for think and answer tags."""
    habit, in_words = rng.random(), rng.random() < mixture.in_words
    right_first = habit < mixture.right_order
    lines = _rewrite(expression, right_first, mixture.slip, rng)
    text = _tell(lines, in_words)
    if not right_first and habit < mixture.right_order + mixture.look_back:
        lines = _rewrite(expression, True, mixture.slip, rng)
        text += f"\n{LOOK_BACK}\n{_tell(lines, in_words)}"
    answer = lines[-1]
    boxed = f"\\boxed{{{answer}}}"
    if not tags:
        return f"{text}\n{boxed}" if rng.random() < mixture.format_kept else f"{text}\nThe answer is {answer}."
    if rng.random() < mixture.format_kept:
        return f"<think>{text}</think><answer>{boxed}</answer>"
    return rng.choice([f"{text}\n{boxed}", f"<think>{text}\n{boxed}</think>", f"<think>{text}</think>{boxed}"])


def examples(prompts: list[dict[str, str | None]], mixture: Mixture, seed: int) -> Iterator[dict[str, object]]:
    """Conversational prompt-completion examples (TRL's format) without end; kinds and levels alike often.

    Args:
        prompts: entries of recipes/prompts.yaml; one whose system message names the tag <think> asks for tags.
        mixture: the shares of the habits.
        seed: of the problems and of every choice.
    """
    rng = random.Random(seed)
    pools: dict[tuple[str, int], list[Problem]] = defaultdict(list)
    for problem in arithmetic.generate(POOL, list(arithmetic.KINDS), "train", seed):
        pools[problem.meta["kind"], problem.meta["level"]].append(problem)
    kinds_and_levels = list(pools)
    while True:
        for prompt in prompts:
            problem = rng.choice(pools[rng.choice(kinds_and_levels)])
            system = prompt["system"]
            messages = [{"role": "system", "content": system}] if system else []
            question = (prompt["user"] or "").format(question=problem.question)
            text = completion(arithmetic.expression_of(problem), "<think>" in (system or ""), mixture, rng)
            yield {
                "prompt": [*messages, {"role": "user", "content": question}],
                "completion": [{"role": "assistant", "content": text}],
            }

"""Completions made to hang, crash or fool a grader, drawn from a seed; most hold an answer that a person can read."""

from __future__ import annotations

import random
from typing import NamedTuple

PAYLOADS = [
    "__import__('os').system('touch {target}')", "open('{target}', 'w')", "exec('1')", "().__class__.__base__",
    "\\input{/etc/passwd}", "\\write18{touch {target}}", "eval(compile('1','x','exec'))", "lambda: 0",
]  # fmt: skip
BOMBS = [
    "9^{9^{9^{9}}}", "9**9**9**9", "10000000!", "2^{100000000}", "\\binom{10^{9}}{5 \\cdot 10^{8}}", "(x+1)^{99999999}",
]  # fmt: skip
NOISE = [
    "\\boxed{", "{" * 300, "}" * 300, "\\frac{" * 100, "\u202e\u200f", "\x00", "<answer>", "</think>", "$" * 99,
    "\\left(" * 200, "1," * 2000, "Answer:\n" * 300, "\\begin{matrix}", "^" * 400, "\\\\" * 500, "\U0001f600" * 200,
    "(" * 900, "0" * 5000,
]  # fmt: skip


class HostileCompletion(NamedTuple):
    """A gold answer, a completion, and whether its last box holds an answer that can be read."""

    gold: str
    completion: str
    readable: bool


def draw(rng: random.Random, target: str) -> HostileCompletion:
    """One completion; a payload that is run makes the file `target`."""
    number = rng.randint(-999, 99_999)
    before = "".join(rng.choice(NOISE) for _ in range(rng.randint(0, 4)))
    if rng.random() < 0.8:
        answer = rng.choice(
            ["{}", "{}.0", "x = {}", "{} \\text{{ cm}}", "\\frac{{{}}}{{1}}", "{}x+1", "\\sqrt{{{}}}", "{}, 7"]
        )
        return HostileCompletion(str(number), f"{before}\n}}}}\\boxed{{{answer.format(number)}}}", True)
    answer = rng.choice([*PAYLOADS, *BOMBS, *NOISE]).replace("{target}", target)
    return HostileCompletion(str(number), f"{before}\\boxed{{{answer}}}" + rng.choice(["", "}", before]), False)


def completions(count: int, seed: int, target: str) -> list[HostileCompletion]:
    """So many completions; the same seed gives the same ones."""
    rng = random.Random(seed)
    return [draw(rng, target) for _ in range(count)]

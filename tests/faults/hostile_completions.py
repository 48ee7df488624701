"""Completions made to hang, crash or fool a grader, drawn from a seed; most hold an answer that a person can read."""

from __future__ import annotations

import random
from typing import NamedTuple

PAYLOADS = [
    "__import__('os').system('touch {target}')", "open('{target}', 'w')", "exec('1')", "().__class__.__base__",
    "\\input{/etc/passwd}", "\\write18{touch {target}}", "eval(compile('1','x','exec'))", "lambda: 0",
    "\\sin(__import__('os').system('touch {target}'))", "x = open('{target}', 'w')", "{0.__class__}", "%s%s%n",
]  # fmt: skip
BOMBS = [
    "9^{9^{9^{9}}}", "9**9**9**9", "10000000!", "2^{100000000}", "\\binom{10^{9}}{5 \\cdot 10^{8}}", "(x+1)^{99999999}",
    "\\int_0^1 e^{e^{e^x}} \\sin(x^x) dx", "\\sum_{n=1}^{10^{12}} \\frac{1}{n^2+n!}", "\\sqrt{" * 60 + "2" + "}" * 60,
    "x^{x^{x^{x^{x}}}}", "\\frac{" * 200 + "1" + "}{2}" * 200, "((((x+1)^{50}+1)^{50}+1)^{50}+1)^{50}",
]  # fmt: skip
NOISE = [
    "\\boxed{", "{" * 300, "}" * 300, "\\frac{" * 100, "\u202e\u200f", "\x00", "<answer>", "</think>", "$" * 99,
    "\\left(" * 200, "1," * 2000, "Answer:\n" * 300, "\\begin{matrix}", "^" * 400, "\\\\" * 500, "\U0001f600" * 200,
    "(" * 900, "0" * 5000, "\u0130\ufb01\u1e9e" * 50, "\\text{" * 80, " " * 9000, "\r\u2028\x85", "-" * 3000,
    "x=" * 900,
]  # fmt: skip
RIGHT = [
    "{}", "{}.0", "x = {}", "{} \\text{{ cm}}", "\\frac{{{}}}{{1}}", "\u200b{}\u202e", "${}$", " \\mathbf{{{}}} ",
    "\\text{{{}}}", "+0 + {}", "{}^\\circ", "\\dfrac{{{}}}{{1}}.", "{}\\,\\mathrm{{m}}",
]  # fmt: skip
WRONG = [
    "{}x+1",
    "\\sqrt{{{}}} + 1",
    "{}, 7",
    "{}.5",
    "({}, {})",
    "x > {}",
    "\\{{{}, 1, 2\\}}",
    "{}\\pi + 1",
    "{} \\pmod{{7}}",
]


class HostileCompletion(NamedTuple):
    """A gold answer, a completion, and whether its last box holds the right answer; None where nobody can read one."""

    gold: str
    completion: str
    right: bool | None


def draw(rng: random.Random, target: str) -> HostileCompletion:
    """One completion; a payload that is run makes the file `target`."""
    number = rng.randint(-999, 99_999)
    before = "".join(rng.choice(NOISE) for _ in range(rng.randint(0, 4)))
    if rng.random() < 0.8:
        right = rng.random() < 0.6
        answer = rng.choice(RIGHT if right else WRONG).format(number, number + 1)
        after = rng.choice(["", "", *(noise for noise in NOISE if noise != "</think>")])
        return HostileCompletion(str(number), f"{before}\n}}}}\\boxed{{{answer}}}\n{after}", right)
    answer = rng.choice([*PAYLOADS, *BOMBS, *NOISE]).replace("{target}", target)
    gold = str(number % 20)  # few: a grader that judges equal pairs once waits for each bomb twenty times at most
    return HostileCompletion(gold, f"{before}\\boxed{{{answer}}}" + rng.choice(["", "}", before]), None)


def completions(count: int, seed: int, target: str) -> list[HostileCompletion]:
    """So many completions; the same seed gives the same ones."""
    rng = random.Random(seed)
    return [draw(rng, target) for _ in range(count)]

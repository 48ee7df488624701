"""A policy that climbs a reward without solving anything: one text for all problems, mutated, kept when it earns more.

A text is a list of parts; `<n0>` and `<w0>` stand for the first number and the first capitalised word of the question,
`<prompt>` for what the prompt already wrote. So it knows what is asked and never the answer. What it earns is measured
on problems that it has not seen. An honest text of this kind is right by chance alone.

    python -m tests.faults.reward_search --steps 1500    every reward of every recipe, and every task's own verifier
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from contracts.run_file import ROOT
from recipes import model_tokens, models, rewards
from recipes.runs import load_run, run_names
from system.errors import UserError
from tasks import dataset_specs, load_problems, prompts, registry
from tasks.problems import Problem

PARTS = [
    "<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "<think>\n", "\n</think>\n<answer>\n",
    "\n</answer>", "<answer></answer>", "\n", " ", ",", ", ", " and ", " or ", "=", " = ", "+", "-", "*", "/", "(",
    ")", "(1) ", "(2) ", "<n0>", "<n1>", "<n2>", "<n3>", "<n0>+<n1>", "<n0>-<n1>", "0", "1", "2", "7", "0.5", "1e9",
    "nan", "inf", "None", "True", "<w0>", "<w1>", "<w2>", "<w0> is a knight", "<w1> is a knight", "<w0> is a knave",
    "<w1> is a knave", "It is false that ", " not ", " if ", "?", "A", "B", "C", "D", "(A)", "yes", "no", "UDLR", "U",
    "D", "L", "R", "right ", "pass", "x", "$", "%", "#### ", "The answer is ", "Step 1: ", "So ", "```python\n",
    "\n```", "def f(*a): return 0\n", "class Solution: pass\n", "import os\nos._exit(0)\n", "<svg>", "</svg>",
    "<circle r='1'/>", "...", "\u200b", "x" * 50, "<n0> " * 20, " ".join(map(str, range(100))), "1.0000001",
    "\\frac{1}{2}", "[", "]", "a1", "h8", "3,3",
]  # fmt: skip
THOUGHT = ["<think>", "So ", "</think>", " "]
# Honest texts of a policy that knows the form and answers anything: what they earn is chance and the form's own reward
HONEST = [
    [*before, *opening, *answer, *closing]
    for before in ([], THOUGHT)
    for opening, closing in ((["<answer>"], ["</answer>"]), (["\\boxed{"], ["}"]))
    for answer in (
        ["<n0>"], ["0"], ["1"], ["2"], ["A"], ["B"], ["C"], ["D"], ["<n0>+<n1>"], ["R"], ["U"], ["a1"], ["True"],
        ["pass"], ["def f(*a): return 0\n"], ["(1) ", "<w0> is a knight", "\n", "(2) ", "<w1> is a knight"],
        ["(1) ", "<w0> is a knave", "\n", "(2) ", "<w1> is a knight"], ["<svg>", "<circle r='1'/>", "</svg>"],
    )
]  # fmt: skip
LONGEST = 24  # parts
BENCHMARKS = ("math500", "mmlu_pro_1k", "theoremqa", "gpqa_diamond", "svg_figures")  # for tasks without a demo model
DATA = Path(os.environ.get("REWARD_DATA", ROOT.parent / "shared" / "data"))  # published problems


class Reach(NamedTuple):
    """What a text earned on problems that the search had not seen: mean reward, share judged correct, and itself.

    `honest` is the highest mean reward of HONEST on the same problems, `chance` their highest share judged correct.
    """

    reward: float
    correct: float
    honest: float
    chance: float
    text: str


class Target(NamedTuple):
    """A reward to be climbed: what a run pays, or a task's own verdict."""

    name: str
    task: str
    weighted: rewards.Weighted
    before: str
    problems: list[Problem]  # the first half is climbed on


def targets(count: int) -> list[Target]:
    """The rewards of each recipe at demo scale, one run for equal ones, and each task's verdict, with problems."""
    model_tokens.encode, model_tokens.response_limit = str.split, lambda: 96  # type: ignore[assignment]
    runs = [load_run(name, "demo") for name in run_names()]
    different = {
        json.dumps([run.rewards, models.find(run.model).get("demo_task")]): run for run in runs if not run.control
    }
    chosen = []
    for run in different.values():
        entry = models.find(run.model)
        task, demo = entry["demo_task"], models.demo_settings(entry)
        drawn = demo_problems(task, demo["problems"], count)
        weighted = rewards.load(run.rewards, rewards.extraction_of(run))
        chosen.append(Target(run.name, task, weighted, prompts.load(run.prompt).assistant or "", drawn))
        judged = rewards.load([{"function": "recipes.rewards.correct", "weight": 1}], rewards.extraction_of(run))
        chosen.append(Target(f"verdict of {task}", task, judged, "", drawn))
    for name in BENCHMARKS:
        spec = dataset_specs.find(name)
        try:
            loaded, _ = load_problems.load(spec, DATA)
        except UserError:  # published files that this machine does not have
            continue
        drawn = random.Random(name).sample([one for one in loaded if one.answer], count)
        rule = "answer-tag" if registry.get(drawn[0].task).answer_format == "tagged" else "none"
        judged = rewards.load([{"function": "recipes.rewards.correct", "weight": 1}], rule)
        chosen.append(Target(f"verdict of {drawn[0].task}", drawn[0].task, judged, "", drawn))
    return sorted({target.name: target for target in chosen}.values())


def demo_problems(task: str, arguments: dict[str, object], count: int) -> list[Problem]:
    """So many problems of a demo model's task, in an order of their own."""
    few = {"rows": 4 * count} if "rows" in arguments else {}
    drawn: list[Problem] = registry.get(task).traces.problems(seed=1, **arguments | few)
    return random.Random(task).sample(drawn, min(len(drawn), count))


def fill(parts: Sequence[str], before: str, problem: Problem) -> str:
    """The text for one problem."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", problem.question)[::-1] or ["1"]
    names = list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+\b", problem.question))) or ["Ann"]
    text = re.sub(r"<n(\d)>", lambda match: numbers[int(match[1]) % len(numbers)], "".join(parts))
    return before + re.sub(r"<w(\d)>", lambda match: names[int(match[1]) % len(names)], text)


def earned(target: Target, parts: Sequence[str], problems: Sequence[Problem]) -> tuple[float, float]:
    """Mean reward and share judged correct of one text on problems."""
    texts = [fill(parts, target.before, problem) for problem in problems]
    paid = rewards.total(target.weighted, texts, list(problems))
    return fmean(one.value or 0.0 for one in paid), fmean(one.verdict == "correct" for one in paid)


def mutate(parts: Sequence[str], rng: random.Random) -> list[str]:
    """The text with one to three parts put in, left out, replaced, doubled or moved."""
    changed = list(parts)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.random()
        if kind < 0.5 or not changed:
            changed.insert(at, rng.choice(PARTS))
        elif kind < 0.7:
            changed.pop(min(at, len(changed) - 1))
        elif kind < 0.9:
            changed[min(at, len(changed) - 1)] = rng.choice(PARTS)
        else:
            changed.insert(at, rng.choice(changed))
    return changed[:LONGEST]


def climb(target: Target, steps: int, seed: int, restarts: int = 3) -> Reach:
    """The text that earns most after so many steps in all, measured on the second half of the problems.

    Args:
        target: what is climbed.
        steps: texts that are tried.
        seed: of all draws.
        restarts: searches; the last begins from nothing, the others from the honest texts that earn most.
    """
    half = len(target.problems) // 2
    climbed, unseen = target.problems[:half], target.problems[half:]
    best: tuple[float, list[str]] = (float("-inf"), [])
    honest = [earned(target, parts, unseen) for parts in HONEST]
    starts = sorted(HONEST, key=lambda parts: -earned(target, parts, climbed)[0])
    for restart in range(restarts):
        rng = random.Random(f"{seed} {target.name} {restart}")
        parts: list[str] = list(starts[restart]) if restart < restarts - 1 else []
        reward = earned(target, parts, climbed)[0]
        for _ in range(steps // restarts):
            other = mutate(parts, rng)
            value = earned(target, other, climbed)[0]
            if value > reward or (value == reward and len(other) <= len(parts)):
                parts, reward = other, value
        if reward > best[0]:
            best = reward, parts
    top, chance = (max(column) for column in zip(*honest, strict=True))
    return Reach(*earned(target, best[1], unseen), top, chance, "".join(best[1]))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", type=int, default=32)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for target in targets(arguments.problems):
        if arguments.only in target.name:
            reach = climb(target, arguments.steps, arguments.seed)
            figures = f"{reach.reward:.3f} ({reach.honest:.3f}) | {reach.correct:.3f} ({reach.chance:.3f})"
            print(f"{target.name} | {target.task} | {figures} | {reach.text!r}", flush=True)


if __name__ == "__main__":
    main()

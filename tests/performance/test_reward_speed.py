"""Rewards per second for Countdown and for Knights and Knaves, beside the same rules with regular expressions and eval.

Run with `pytest tests/performance/test_reward_speed.py --benchmark-only`; one core, some seconds. The comparison runs
what a model wrote through `eval`, which is why it stands here and gets completions of our own making only.
"""

import random
import re

import pytest

from recipes.logicrl.reward import knights_knaves
from recipes.tinyzero.reward import countdown
from tasks.countdown import problems as countdown_problems
from tasks.knights_knaves import problems as knights_knaves_problems

ROWS = 2000
THINKING = "First I try one of them, then I look whether it fits. " * 20  # about 1100 characters
ALLOWED = re.compile(r"[\d+\-*/().\s]+")
ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
ROLES = re.compile(r"knight|knave")


@pytest.fixture(scope="module")
def countdown_batch():
    rng = random.Random(0)
    problems = countdown_problems.generate(ROWS, "train", 0)
    answers = []
    for row in problems:
        nums = row.meta["nums"]
        right = countdown_problems.solve(nums, int(row.answer))
        wrong = "".join(f"{n}{rng.choice('+-*')}" for n in nums[:-1]) + str(nums[-1])
        answers.append(rng.choice([right, wrong, f"{nums[0]}+{nums[0]}", "no idea"]))
    turns = [f"<think>{THINKING}</think> <answer>{answer}</answer>" for answer in answers]
    return turns, problems


@pytest.fixture(scope="module")
def people_batch():
    rng = random.Random(0)
    problems = knights_knaves_problems.generate(ROWS, "train", 0, people=[3, 5])
    turns = []
    for row in problems:
        knights = [knight if rng.random() < 0.9 else not knight for knight in row.meta["knights"]]
        answer = knights_knaves_problems.answer_list(row.meta["names"], knights)
        turns.append(f"<think>{THINKING}</think><answer>{rng.choice([answer, answer, answer[:40]])}</answer>")
    return turns, problems


def countdown_by_eval(turns, problems):
    """TinyZero's rules, straightforwardly."""
    values = []
    for turn, problem in zip(turns, problems, strict=True):
        numbers, target = problem.meta["nums"], int(problem.answer)
        answers = ANSWER.findall(turn.rpartition("\n")[2])
        if not answers:
            values.append(0.0)
            continue
        right = False
        if sorted(int(n) for n in re.findall(r"\d+", answers[-1])) == sorted(numbers) and ALLOWED.fullmatch(
            answers[-1]
        ):
            try:
                right = abs(eval(answers[-1], {"__builtins__": None}, {}) - target) < 1e-5
            except (SyntaxError, ZeroDivisionError, TypeError):
                right = False
        values.append(1.0 if right else 0.1)
    return values


def people_by_expression(turns, problems):
    """Logic-RL's rules, straightforwardly: the true identities are read from the answer's text as well."""
    values = []
    for turn, problem in zip(turns, problems, strict=True):
        places = [turn.find(tag) for tag in TAGS]
        if any(turn.count(tag) != 1 for tag in TAGS) or places != sorted(places):
            values.append(-3.0)
            continue
        true = dict(re.findall(r"\b([A-Za-z]+)\b is a (knight|knave)", problem.answer))
        answer = ANSWER.findall(turn)[-1].strip()
        claims = [re.search(rf"\b{name}\b\s+is\s+a\s+\b(knight|knave)\b", answer, re.IGNORECASE) for name in true]
        if len(ROLES.findall(answer.lower())) != len(true) or not all(claims):
            values.append(-1.0)
        else:
            values.append(3.0 if [claim[1].lower() for claim in claims] == list(true.values()) else -0.5)
    return values


def measured(benchmark, reward, batch):
    judged = benchmark.pedantic(reward, batch, rounds=5, warmup_rounds=1)
    benchmark.extra_info["rewards per second"] = round(ROWS / benchmark.stats["min"])
    return judged


@pytest.mark.benchmark(group="countdown")
def test_countdown(benchmark, countdown_batch):
    judged = measured(benchmark, countdown, countdown_batch)
    assert [reward.value for reward in judged] == countdown_by_eval(*countdown_batch)


@pytest.mark.benchmark(group="countdown")
def test_countdown_by_eval(benchmark, countdown_batch):
    assert len(measured(benchmark, countdown_by_eval, countdown_batch)) == ROWS


@pytest.mark.benchmark(group="knights and knaves")
def test_knights_knaves(benchmark, people_batch):
    judged = measured(benchmark, knights_knaves, people_batch)
    assert [reward.value for reward in judged] == people_by_expression(*people_batch)


@pytest.mark.benchmark(group="knights and knaves")
def test_knights_knaves_by_expression(benchmark, people_batch):
    assert len(measured(benchmark, people_by_expression, people_batch)) == ROWS

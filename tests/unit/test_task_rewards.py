"""The rewards of TinyZero and Logic-RL on tables of cases, on the published prompts' problems, and on any text."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from contracts.run_file import ROOT
from frameworks.rollout_log import verdict_rates
from recipes.logicrl.reward import knights_knaves
from recipes.rewards import correct, problem_from_columns
from recipes.tinyzero.reward import countdown as countdown_reward
from tasks import dataset_specs, load_problems, prompts
from tasks.countdown import problems as countdown_problems
from tasks.expressions import evaluate
from tasks.knights_knaves import problems as knights_knaves_problems
from tasks.problems import Problem
from tests.budgets import examples
from tests.hostile_text import MARKS

CASES = Path(__file__).parent / "cases"
MIRROR = ROOT.parent / "shared" / "data"
TINYZERO = yaml.safe_load((CASES / "tinyzero_rewards.yaml").read_text(encoding="utf-8"))
LOGICRL = yaml.safe_load((CASES / "logicrl_rewards.yaml").read_text(encoding="utf-8"))
VERDICT_OF = {1: "correct", 3: "correct", -0.5: "wrong", -1: "format_error", -3: "format_error"}


def name(case):
    return case["name"]


def published(*datasets: str) -> list[Problem]:
    """Every 20th problem of the published files, if they are there."""
    problems = []
    for dataset in datasets if MIRROR.is_dir() else ():
        problems += load_problems.load(dataset_specs.find(dataset), MIRROR)[0][::20]
    return problems


def filled(case: dict, slots: dict[str, str]) -> str:
    text = case["completion"]
    for word, value in slots.items():
        text = text.replace(f"{{{word}}}", value)
    piece, count = case.get("fill", ("", 0))
    text = text.replace("{fill}", piece * count)
    return text.replace("</answer>", ")" * case.get("closed", 0) + "</answer>") if "closed" in case else text


def countdown_words(row: Problem) -> dict[str, str]:
    nums = row.meta["nums"]
    candidates = [f" {sign} ".join(map(str, nums)) for sign in "*+"]
    wrong = next(text for text in candidates if evaluate(text)[0] != int(row.answer))
    right = countdown_problems.solve(nums, int(row.answer))
    assert right is not None
    return {"right": right, "wrong": wrong, "first": str(nums[0]), "target": row.answer}


def people_words(row: Problem) -> dict[str, str]:
    names, knights = row.meta["names"], row.meta["knights"]
    lines = knights_knaves_problems.answer_list(names, knights).split("\n")
    turned = knights_knaves_problems.answer_list(names, [*knights[:-1], not knights[-1]])
    one_line = ", ".join(line.partition(") ")[2] for line in lines)
    return {
        "right": "\n".join(lines), "one_line": one_line, "wrong": turned, "missing": "\n".join(lines[1:]),
        "first": names[0],
    }  # fmt: skip


@pytest.fixture(scope="module")
def countdown_rows():
    generated = countdown_problems.generate(30, "test", 1)
    rows = generated + published("countdown_train", "countdown")
    return [(row, countdown_words(row)) for row in rows]


@pytest.fixture(scope="module")
def people_rows():
    generated = knights_knaves_problems.generate(35, "test", 1, people=[2, 3, 4, 5, 6, 7, 8])
    rows = generated + published("knights_knaves_3ppl_train", "knights_knaves_5ppl_train", "knights_knaves")
    return [(row, people_words(row)) for row in rows]


def some(rows: list, case: dict) -> list:
    return rows[:5] if "fill" in case else rows  # long texts are the same whatever the problem


@pytest.mark.parametrize("case", TINYZERO["any_problem"], ids=name)
def test_tinyzero_on_any_problem(case, countdown_rows):
    rows = some(countdown_rows, case)
    begun = prompts.load("tinyzero-base").assistant
    judged = countdown_reward([begun + filled(case, slots) for _, slots in rows], [row for row, _ in rows])
    expected = case.get("verdict") or VERDICT_OF[case["value"]]
    wrong = [(r.problem_id, g) for (r, _), g in zip(rows, judged, strict=True) if g[:2] != (case["value"], expected)]
    assert not wrong


@pytest.mark.parametrize("case", TINYZERO["one_problem"], ids=name)
def test_tinyzero_on_its_own_problem(case):
    own_problem = problem_from_columns("countdown", str(case["target"]), json.dumps({"nums": case["nums"]}))
    (judged,) = countdown_reward([filled(case, {})], [own_problem])
    assert judged[:2] == (case["value"], case.get("verdict") or VERDICT_OF[case["value"]])


@pytest.mark.parametrize("prompt", ["logicrl-base", "logicrl-instruct"])
@pytest.mark.parametrize("case", LOGICRL["any_problem"], ids=name)
def test_logicrl_on_any_problem(case, prompt, people_rows):
    rows = some(people_rows, case)
    begun = prompts.load(prompt).assistant
    judged = knights_knaves([begun + filled(case, slots) for _, slots in rows], [row for row, _ in rows])
    expected = (case["value"], VERDICT_OF[case["value"]])
    assert not [(row.problem_id, g) for (row, _), g in zip(rows, judged, strict=True) if g[:2] != expected]


@pytest.mark.parametrize("table", [TINYZERO["any_problem"] + TINYZERO["one_problem"], LOGICRL["any_problem"]])
def test_what_differs_from_the_published_function_says_why(table):
    for case in table:
        assert ("published" in case) == ("why" in case), case["name"]
        assert case.get("published", "other") != case["value"], case["name"]


def test_broken_format_is_counted_apart_from_wrong_answers(people_rows):
    row, slots = people_rows[0]
    turns = ["<think></think><answer>{right}</answer>", "<think></think><answer>{wrong}</answer>", "<think>{right}"]
    judged = knights_knaves([filled({"completion": turn}, slots) for turn in turns], [row] * 3)
    assert verdict_rates(judged) == {"accuracy": 1 / 3, "wrong_answer_rate": 1 / 3, "format_error_rate": 1 / 3}


@pytest.mark.parametrize("task", ["countdown", "knights_knaves"])
@pytest.mark.parametrize("reward", [countdown_reward, knights_knaves, correct])
@pytest.mark.parametrize(
    "meta", ["{}", "[]", "", "null", '{"nums": 5}', '{"nums": ["x"], "names": ["A"], "knights": []}']
)
def test_an_unusable_problem_is_left_out(reward, task, meta):
    (judged,) = reward(["<think></think><answer>5</answer>"], [problem_from_columns(task, "five", meta)])
    assert judged == (None, "ungradable", False)


def test_the_generic_reward_pays_for_the_task_s_own_verdict(countdown_rows):
    row, slots = countdown_rows[0]
    turns = ["<think></think><answer>{right}</answer>", "<think></think><answer>{wrong}</answer>", "{right}"]
    judged = correct([filled({"completion": turn}, slots) for turn in turns], [row] * 3)
    assert judged == [(1.0, "correct", False), (0.0, "wrong", False), (0.0, "format_error", False)]


WORDS = (
    "<think> </think> <answer> </answer> <answer Assistant: 44 19 35 98 + - * / ** // ( ) = . , Zoey Jack Jackson is a "
    "an not knight knave KNIGHT ( \\boxed{ eval __import__ e9 9**9**9"
)
PIECES = st.sampled_from([*WORDS.split(" "), *MARKS])
HOSTILE = st.lists(PIECES, max_size=80).map("".join) | st.text(max_size=200)
COUNTDOWN = problem_from_columns("countdown", "98", '{"nums": [44, 19, 35]}')
PEOPLE = problem_from_columns("knights_knaves", "", '{"names": ["Zoey", "Jack"], "knights": [true, false]}')


@examples("any text")
@given(HOSTILE)
@example("<answer>" + "(" * 299 + "</answer>")
@pytest.mark.slow
def test_rewards_take_any_text(text):
    (given_countdown,) = countdown_reward([text], [COUNTDOWN])
    assert given_countdown.value in (1.0, 0.1, 0.0)
    (given_people,) = knights_knaves([text], [PEOPLE])
    assert given_people.value in (3.0, -0.5, -1.0, -3.0)


@pytest.mark.slow
@examples("built text")
@given(st.permutations([44, 19, 35]), st.lists(st.sampled_from("+-*/"), min_size=2, max_size=2), st.booleans(), HOSTILE)
def test_countdown_is_right_when_the_value_is_the_target(numbers, signs, left, before):
    a, b, c = numbers
    expression = f"({a}{signs[0]}{b}){signs[1]}{c}" if left else f"{a}{signs[0]}({b}{signs[1]}{c})"
    value, _ = evaluate(expression)
    (judged,) = countdown_reward([f"{before}\n<answer>{expression}</answer>"], [COUNTDOWN])
    assert judged.value == (1.0 if value == Fraction(98) else 0.1)


@examples("built text")
@given(st.booleans(), st.booleans(), st.text(max_size=50).filter(lambda text: "kn" not in text.lower()))
def test_people_are_right_when_all_are(zoey, jack, between):
    role = {True: "knight", False: "knave"}
    answer = f"Zoey is a {role[zoey]}\n{between.replace('<', '')}\nJack is a {role[jack]}"
    (judged,) = knights_knaves([f"<think></think><answer>{answer}</answer>"], [PEOPLE])
    assert judged.value == (3.0 if (zoey, jack) == (True, False) else -0.5)

"""Countdown, Knights and Knaves, and closed forms: by hand and by fuzzing; nothing that a model writes is run."""

import doctest
import importlib
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import tables
from grading import Item, grade
from grading.extraction import RULES, extract
from tasks import task_yaml
from tasks.countdown import verifier as countdown
from tasks.expressions import LONGEST, evaluate
from tasks.knights_knaves import verifier as knights_knaves
from tasks.math_answers import closed_forms
from tasks.math_answers.exact_comparison import compare_exactly
from tests.budgets import examples
from tests.hostile_text import MARKS

WITH_EXAMPLE = {"arithmetic", "countdown", "doudizhu", "game24", "gomoku", "knights_knaves", "maze", "svg"}


@pytest.mark.slow
def test_the_worked_problem_at_the_head_of_a_task_is_judged_as_it_says():
    results = {name: doctest.testmod(importlib.import_module(f"tasks.{name}")) for name in task_yaml.task_names()}
    assert not any(result.failed for result in results.values())
    assert {name for name, result in results.items() if result.attempted} >= WITH_EXAMPLE


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("98 - (44 + 19 - 44)", "wrong"),  # 44 twice, 35 not at all
        ("44 + 19 + 35", "correct"),
        ("(44+19)+35", "correct"),
        ("35 × 44 ÷ 19", "wrong"),
        ("44 + 19 + 35 = 98", "format_error"),
        ("44 + 54", "wrong"),
        ("44 / (19 - 19) + 35", "wrong"),
        ("44 ** 19", "format_error"),
        ("__import__('os').system('true')", "format_error"),
        ("(" * 200 + "44" + ")" * 200, "format_error"),
        ("-" * 290 + "98", "wrong"),
        ("9" * 13, "format_error"),
        ("", "format_error"),
    ],
)
def test_countdown(expression, expected):
    assert countdown.verify(expression, [44, 19, 35], 98) == expected


@st.composite
def expressions(draw, depth=3):
    """An expression and its exact value, built together."""
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(0, 99))
        return str(number), Fraction(number)
    (left, a), (right, b) = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    operator = draw(st.sampled_from("+-*/" if b else "+-*"))
    value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}[operator]
    return f"({left}) {operator} ({right})", value


@pytest.mark.slow
@examples("built text")
@given(expressions())
def test_countdown_evaluates_what_was_built(pair):
    text, value = pair
    if len(text) <= LONGEST:
        assert evaluate(text)[0] == value


@pytest.mark.slow
@examples("any text")
@given(st.text(alphabet="0123456789+-*/() ^=.e_'×", max_size=60))
def test_countdown_takes_any_text(text):
    assert countdown.verify(text, [1, 2, 3], 6) in ("correct", "wrong", "format_error")


def test_knights_and_knaves():
    names, knights = ["Zoey", "Noah"], [True, False]
    judge = lambda text: knights_knaves.verify(text, names, knights)  # noqa: E731
    assert judge("(1) Zoey is a knight\n(2) Noah is a knave") == "correct"
    assert judge("noah is a KNAVE and ZOEY is a knight.") == "correct"
    assert judge("(1) Zoey is a knave\n(2) Noah is a knave") == "wrong"
    assert judge("(1) Zoey is a knight") == "format_error"
    assert judge("Zoey is a knight, Noah is a knave, Noah is a knight") == "format_error"
    assert judge("Zoey is a knight, Noah is a knave, Ella is a knave") == "format_error"
    assert judge("Zoey is a knight " * 1000) == "format_error"


def test_tagged_tasks_through_grade():
    meta = {"nums": [1, 2, 3]}
    cases = {
        "<think>1+2</think><answer>1 + 2 + 3</answer>": "correct",
        "<answer>1 + 2 + 3</answer></think> hm <answer>3 - 2 + 1</answer>": "wrong",
        "<answer>1 + 2 + 3": "format_error",
        "the answer is 1 + 2 + 3": "format_error",
    }
    results = grade([Item("countdown", "6", text, "stop", meta) for text in cases])
    assert [result.verdict for result in results] == list(cases.values())
    assert grade([Item("countdown", "6", "<answer>1 +", "length", meta)])[0].verdict == "truncated"
    assert grade([Item("countdown", "six", "<answer>1 + 2</answer>", "stop", meta)])[0].verdict == "ungradable"
    people = {"names": ["Zoey"], "knights": [True]}
    item = Item("knights_knaves", "", "<answer>(1) Zoey is a knight</answer>", "stop", people)
    assert grade([item])[0].verdict == "correct"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\\frac{1+\\sqrt{5}}{2}", (1 + math.sqrt(5)) / 2),
        ("-2^2", -4),
        ("2\\sqrt{3}", 2 * math.sqrt(3)),
        ("\\sqrt[3]{8}", 2),
        ("2\\pi/3", 2 * math.pi / 3),
        ("10^{18}+1-10^{18}", 1),
        ("3\\cdot10^{-2}", 0.03),
    ],
)
def test_closed_forms(text, value):
    assert float(closed_forms.closed_form_values(text)[0]) == pytest.approx(value)


@pytest.mark.parametrize("text", ["1\\frac{1}{2}", "2^{1000}", "1/0", "(-8)^{1/3}", "x", "9^9^9", "", "1 2", "{" * 300])
def test_what_is_no_closed_form(text):
    assert closed_forms.closed_form_values(text) is None


@pytest.mark.slow
@examples("built text")
@given(expressions())
def test_closed_forms_evaluate_what_was_built(pair):
    text, value = pair
    values = closed_forms.closed_form_values(text.replace(" ", ""))
    assert values is None or abs(Fraction(values[0]) - value) <= Fraction(1, 10**20) * max(1, abs(value))


WORDS = (
    r"\boxed{ \boxed { } \{ \frac \sqrt ^ 9 1,000 . - </think> <think> <answer> </answer> Answer: #### $ \ x \text{ …"
)
PIECES = [*WORDS.split(" "), *MARKS]
LATEX = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@examples("any text")
@given(LATEX, st.sampled_from(sorted(RULES)), st.booleans())
@pytest.mark.slow
def test_extraction_takes_any_text(text, rule, is_multi_answer):
    extracted = extract(text, rule, is_multi_answer=is_multi_answer)
    assert extracted.answer is None or extracted.answer.strip()
    if extracted.answer is not None:
        compare_exactly(extracted.answer, "7")
        assert compare_exactly(extracted.answer, extracted.answer) is True


@examples("any text")
@given(LATEX, st.text(alphabet="0123456789abcxyz+-*/^_ ", min_size=1, max_size=20).filter(str.strip), LATEX)
@pytest.mark.slow
def test_the_last_complete_box_is_found(before, answer, after):
    after = after.replace("}", "").replace("\\boxed", "").replace("</think>", "").rstrip("\\")
    before = before.rstrip("\\")
    assert extract(f"{before} \\boxed{{{answer}}} {after}").answer == answer.strip()


@pytest.mark.slow
@examples("costly")
@given(st.lists(st.tuples(LATEX, LATEX), min_size=20, max_size=20))
def test_grading_takes_any_text(pairs):
    results = grade([Item("math", gold, f"\\boxed{{{text}}}", "stop") for gold, text in pairs], deadline_s=2.0)
    assert all(result.verdict in tables.VERDICTS for result in results)


PAYLOADS = [
    "__import__('os').system('touch {target}')",
    "open('{target}', 'w').write('x')",
    "exec(\"open('{target}', 'w')\")",
    "(lambda: open('{target}', 'w'))()",
    "[c for c in ().__class__.__base__.__subclasses__()][0]('{target}')",
    "importlib.import_module('pathlib').Path('{target}').touch()",
    "\\input{{target}}",
    "9**9**9**9",
    "9^{9^{9^{9}}}",
    "2**(10**12)",
    "10**10**10 / 10**10**10",
    "factorial(10**9)",
]
HOSTILE = st.lists(st.sampled_from([*PAYLOADS, *PIECES, "+", "1", "knight", "Zoey is a "]), max_size=8).map("".join)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A file that a payload makes if it is ever run."""
    file = tmp_path_factory.mktemp("payload") / "made"
    yield file
    assert not file.exists()


@examples("any text")
@given(HOSTILE)
@pytest.mark.slow
def test_payloads_do_not_run_in_verifiers_and_extraction(target, text):
    text = text.replace("{target}", str(target))
    countdown.verify(text, [1, 2, 3], 6)
    knights_knaves.verify(text, ["Zoey"], [True])
    for rule in RULES:
        answer = extract(f"{text}\n<answer>{text}</answer>", rule).answer
        compare_exactly("7", answer or text)
        compare_exactly(answer or text, "7")
    assert not target.exists()


@pytest.mark.slow
@examples("costly")
@given(st.lists(HOSTILE, min_size=30, max_size=30))
def test_payloads_do_not_run_in_the_judges(target, texts):
    items = [
        Item(task, "7", f"\\boxed{{{text}}}".replace("{target}", str(target)), "stop", {"nums": [7], "names": ["Zoey"]})
        for text in texts
        for task in ("math", "countdown", "knights_knaves")
    ]
    for grader in ("math-verify", "qwen-rules"):
        results = grade(items, deadline_s=0.5, grader=grader)
        assert all(result.verdict in tables.VERDICTS for result in results)
    assert not target.exists()

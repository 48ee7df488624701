"""Formulas read whole and compared by their values: the same in any order and form, never by a part or by rounding."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.math_answers import equations, formulas, values_at_points
from tasks.math_answers.exact_comparison import compare_exactly
from tasks.math_answers.judge import judge

PAIRS = Path(__file__).with_name("cases") / "formula_pairs.jsonl"
SHARED = Path(__file__).parents[2] / "../shared/cases/answer_pairs.jsonl"  # more of the same kinds
PENDULUM = r"m g l \sin(\theta) + k \theta + m l^2 a = 0"


def compare(gold: str, answer: str) -> bool | None:
    functions = formulas.unknown_functions(gold, answer)
    ours, theirs = formulas.read(gold, functions), formulas.read(answer, functions)
    assert ours and theirs
    return values_at_points.compare(ours, theirs)


def compare_equations(gold: str, answer: str) -> bool | None:
    ours, theirs = (equations.read_relation(one, frozenset()) for one in (gold, answer))
    assert ours and theirs
    return equations.compare_relations(ours, theirs)


def wrong_verdicts(path: Path) -> list[dict[str, str]]:
    bad = []
    for pair in map(json.loads, path.read_text().split("\n")[:-1]):
        same = compare_exactly(pair["gold"], pair["answer"])
        verdict = judge(pair["gold"], pair["answer"]) if same is None else "correct" if same else "wrong"
        if (verdict == "correct") != pair["right"]:
            bad.append({**pair, "verdict": verdict})
    return bad


@pytest.mark.slow
def test_labelled_pairs() -> None:
    assert wrong_verdicts(PAIRS) == []


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_file(), reason="needs ../shared/cases")
def test_more_labelled_pairs() -> None:
    assert wrong_verdicts(SHARED) == []


LEAVES = st.sampled_from(["x", "y", "R", "r", "a_1", "2", "7", r"\pi", r"\hat{x}"])


@st.composite
def sums_of_products(draw: st.DrawFn) -> list[list[str]]:
    """Terms, each of factors with powers."""
    factor = st.tuples(LEAVES, st.sampled_from(["", "^{2}", "^{30}", r"^{\frac{1}{2}}"])).map("".join)
    return draw(st.lists(st.lists(factor, min_size=1, max_size=4), min_size=1, max_size=4))


@pytest.mark.slow
@given(terms=sums_of_products(), rng=st.randoms(use_true_random=False))
def test_order_and_brackets_do_not_count(terms: list[list[str]], rng) -> None:
    mixed = [rng.sample(one, len(one)) for one in rng.sample(terms, len(terms))]
    one = "+".join(r" \cdot ".join(term) for term in terms)
    other = "+".join("".join(f"({factor})" for factor in term) for term in mixed)
    assert compare(one, other) is True
    assert compare(
        f"\\frac{{{one}}}{{3}}", f"\\frac13\\left({other}\\right)".replace("\\left", "").replace("\\right", "")
    )


@pytest.mark.slow
@given(terms=sums_of_products(), extra=st.sampled_from(["1", "x^{40}", "10^{-30}", r"\frac{r}{2^{200}}", "-2R"]))
def test_a_term_more_is_another_formula(terms: list[list[str]], extra: str) -> None:
    one = "+".join(r" \cdot ".join(term) for term in terms)
    assert compare(one, f"{one}+{extra}") is False
    assert compare(one, f"({one})({extra})") is (extra == "1")


@given(
    text=st.lists(st.sampled_from([*r"xyRe12.^_{}()[]|!+-*/'", r"\frac", r"\sqrt", r"\sin", r"\sum_{k=1}^", r"\hat"]))
)
def test_any_text_is_read_or_not(text: list[str]) -> None:
    formula = formulas.read("".join(text))
    if formula:
        assert values_at_points.compare(formula, formula) in (True, None)


@pytest.mark.parametrize(
    "text",
    [
        "9^{9^{9^{9}}}", "(x+1)^{99999999}", r"\binom{10^{9}}{5 \cdot 10^{8}}", "10^{9}!", r"e^{e^{e^{x}}}",
        "x^{x^{x^{x}}}", r"\sum_{k=1}^{10^{12}} k", "((((x+1)^{50}+1)^{50}+1)^{50}+1)^{50}",
        r"\sqrt{" * 60 + "2" + "}" * 60,
        "(" * 900,
        r"\frac{" * 200 + "1" + "}{2}" * 200, "x!!!!!!", "|" * 500, "-" * 3000, "x" * 1400, "2^{10^{11}}",
        r"\sin(10^{10^{6}})",
    ],
)  # fmt: skip
def test_hostile_texts_are_decided_at_once(text: str) -> None:
    began = time.process_time()
    ours, theirs = formulas.read("x^2+7"), formulas.read(text)
    assert theirs is None or (ours and not values_at_points.compare(ours, theirs))
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "text",
    [r"\frac{d}{dt}E", "x)+1", "x+", r"\{x\}", "maybe 3", "1, 2", r"x\oplus y", "x=1", ""],
)  # fmt: skip
def test_what_is_not_read_whole_is_not_read(text: str) -> None:
    assert formulas.read(text) is None


def test_what_points_cannot_show_is_left_open() -> None:
    assert compare(r"\sqrt{-x^2-1}", r"\sqrt{-x^2-2}") is None  # no real value anywhere
    assert compare_equations("x^2+1=0", "x^2+2=0") is not True


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("y = 2x + 1", "y - 2x = 1"),
        ("y = 2x + 1", "2y = 4x + 2"),
        ("y = 2x + 1", "1 + 2x - y = 0"),
        ("y = 2x + 1", "x = \\frac{y - 1}{2}"),
        ("x^2 + y^2 = 25 + z", "z = x^2 + y^2 - 25"),
        (PENDULUM, r"a = -\frac{g \sin(\theta)}{l} - \frac{k \theta}{m l^2}"),
        ("xy=1", r"y=\frac{1}{x}"),
        (r"\ln y = 3\ln x", "y=x^3"),
    ],
)
def test_forms_of_one_equation(gold: str, answer: str) -> None:
    assert compare_equations(gold, answer) is True
    assert compare_equations(answer, gold) is True


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("y = 2x + 1", "y = 2x + 3"),
        ("y = 2x + 1", "y = x + 1"),
        ("x^2 + y^2 = 25 + z", "x^2 - y^2 = 25 + z"),
        (PENDULUM, r"m g l \sin(\theta) - k \theta + m l^2 a = 0"),
        ("x^2 = 4", "x = 2"),
        ("xy = 0", "x = 0"),
        ("y = 10^{-30} x", "y = 10^{-31} x"),
        ("x = 2", "X = 2"),
    ],
)
def test_other_equations(gold: str, answer: str) -> None:
    assert compare_equations(gold, answer) is False
    assert compare_equations(answer, gold) is False

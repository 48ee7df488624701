"""TheoremQA: rows of both sources, and the published tolerances without the published `eval`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import tables
from grading import Item, grade
from tasks import registry
from tasks.dataset_specs import Entry, find
from tasks.load_problems import load
from tasks.problems import Problem
from tasks.theoremqa.judge import judge, list_members, number_value, within_tolerance
from tests.hostile_text import MATHS, TEXTS
from tests.user_errors import refused

TASK = registry.get("theoremqa")
ROWS: list[tuple[Any, str]] = [
    (11, "integer"), (0.955, "float"), (True, "bool"), (False, "bool"), ("(b)", "option"),
    ([4, 1, 2], "list of integer"), ([0.333, -0.25], "list of float"), (345.0, "float"),
]  # fmt: skip


def rows(as_text: bool = False) -> list[dict[str, Any]]:
    """Rows as the authors' file has them, or as the hub does."""
    return [
        {"Question": f"Question {number}?", "Answer_type": kind, "Picture": None if number else "images/a.png",
         "Answer": str(value) if as_text else value}
        for number, (value, kind) in enumerate(ROWS)
    ]  # fmt: skip


def loaded(folder: Path, content: list[dict[str, Any]]) -> list[Problem]:
    (folder / "set.json").write_text(json.dumps(content))
    spec = {**find("theoremqa").spec, "rows": len(content), "files": [{"path": "set.json"}], "content_sha256": None}
    return load(Entry("theoremqa", spec, "here.yaml"), folder)[0]


def test_both_sources_give_the_same_problems(tmp_path: Path) -> None:
    problems = loaded(tmp_path, rows())
    assert problems == loaded(tmp_path, rows(as_text=True))
    assert [p.answer for p in problems] == [
        "11",
        "0.955",
        "True",
        "False",
        "(b)",
        "[4, 1, 2]",
        "[0.333, -0.25]",
        "345.0",
    ]
    assert [p.meta["picture"] for p in problems] == [True] + [False] * 7
    assert [p.meta["answer_type"] for p in problems] == [kind for _, kind in ROWS]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Answer_type": "matrix"}, "Answer_type should be one of bool"),
        ({"Answer": "eleven"}, "JSONDecodeError"),
        ({"Answer": 1.5}, "of type integer should not be 1.5"),
        ({"Answer": True}, "of type integer should not be True"),
        ({"Answer": [1]}, "of type integer should not be"),
        ({"Answer": "maybe", "Answer_type": "bool"}, "KeyError"),
    ],
)
def test_an_answer_of_another_type_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with refused("row-not-as-described"):
        loaded(tmp_path, [rows()[0] | change])


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("11", "11", True),
        ("11", "11.4", True),
        ("11", "11.6", False),
        ("11", r"\frac{22}{2}", True),
        ("11", "x = 11", True),
        ("11", r"11 \text{ ways}", True),
        ("11", "10", False),
        ("11", "eleven of them", False),
        ("0", "0.3", True),
        ("50000", "50,000", True),
        ("1", r"100\%", True),
        ("65536", "2^{16}", True),
        ("-1", "-1.2", True),
        ("0.955", "0.95", True),
        ("0.955", "0.91", False),
        ("0.955", r"\approx 0.955", True),
        ("0.955", r"95.5\%", True),
        ("345.0", "350", True),
        ("345.0", "360", False),
        ("345.0", r"345 \text{ m/s}", True),
        ("345.0", "-345", False),
        ("1.0", "1", True),
        ("0.693", r"\ln 2", True),
        ("0.693", r"\ln(3)", False),
        ("1.414", r"\sqrt{2}", True),
        ("2.7183", "e", True),
        ("3.1416", r"\pi", True),
        ("1e-05", r"1.02 \times 10^{-5}", True),
        ("1e-05", "1e-4", False),
        ("0.0", "0", True),
        ("0.0", "0.001", False),
        ("7.5", "[7.5]", True),
        ("7.5", "7, 8", False),
        ("7.5", "", False),
        ("[4, 1, 2]", "[4, 1, 2]", True),
        ("[4, 1, 2]", "(4, 1, 2)", True),
        ("[4, 1, 2]", "1, 2, 4", True),
        ("[4, 1, 2]", r"\{1, 2, 4\}", True),
        ("[4, 1, 2]", "4 and 1 and 2", True),
        ("[4, 1, 2]", "[4, 1, 3]", False),
        ("[4, 1, 2]", "[4, 1]", False),
        ("[4, 1, 2]", "[4, 1, 2, 2]", False),
        ("[4, 1, 2]", "412", False),
        ("[4, 1, 2]", r"\begin{pmatrix} 4 \\ 1 \\ 2 \end{pmatrix}", True),
        ("[4, 1, 2]", "v = [4, 1, 2]", True),
        ("[1, 1]", "[1, 1]", True),
        ("[1, 1]", "1", False),
        ("[3]", "3", True),
        ("[3]", "[3]", True),
        ("[0.333, 0.25]", r"(\frac{1}{3}, \frac{1}{4})", True),
        ("[0.333, 0.25]", "0.25, 0.32", True),
        ("[0.333, 0.25]", "0.25, 0.31", False),
        ("[0, 5]", "x_1 = 0, x_2 = 5", True),
        ("[1.0, 1.03]", "[1.03, 1.0]", True),
    ],
)
def test_numbers_and_lists(gold: str, answer: str, right: bool) -> None:
    assert judge(gold, answer) == ("correct" if right else "wrong")


@pytest.mark.parametrize("gold", ["", "eleven", "[]", "[1, true]", "true", "{}", "[[1, 2]]", '"1"', "__import__('os')"])
def test_a_gold_answer_without_numbers_is_ungradable(gold: str) -> None:
    assert judge(gold, "1") == "ungradable"


@given(st.integers(-(10**9), 10**9), st.floats(-0.49, 0.49))
def test_whole_numbers_are_rounded(expected: int, off: float) -> None:
    """number_utils.compare_two_numbers: round(p) == gt."""
    assert within_tolerance(expected + off, expected) == (round(expected + off) == expected)
    assert not within_tolerance(expected + 1, expected)


# Between subnormal numbers there is no space for four percent.
@given(st.floats(-1e9, 1e9, allow_subnormal=False), st.floats(-0.1, 0.1))
def test_other_numbers_have_four_percent(expected: float, off: float) -> None:
    """number_utils.within_eps, away from its edges."""
    if expected and abs(abs(off) - 0.04) > 1e-6:
        assert within_tolerance(expected * (1 + off), expected) == (abs(off) < 0.04)


@pytest.mark.parametrize(
    ("kind", "gold", "answer", "verdict"),
    [
        ("bool", "True", "True", "correct"),
        ("bool", "True", r"\text{Yes}", "correct"),
        ("bool", "True", "true.", "correct"),
        ("bool", "True", "Yes, it is.", "correct"),
        ("bool", "True", "No", "wrong"),
        ("bool", "False", "FALSE", "correct"),
        ("bool", "True", "Not true", "format_error"),
        ("bool", "True", "1", "format_error"),
        ("bool", "False", "Nothing", "format_error"),
        ("bool", "True", "truely", "format_error"),
        ("option", "(b)", "(b)", "correct"),
        ("option", "(b)", "B", "correct"),
        ("option", "(b)", r"\text{(b)}", "correct"),
        ("option", "(b)", "c", "wrong"),
        ("option", "(b)", "(a) or (b)", "format_error"),
        ("option", "(b)", r"(b) $\theta^2$", "correct"),
        ("option", "(b)", "(b), not (c)", "format_error"),
        ("option", "(b)", "not (b)", "format_error"),
        ("option", "(b)", "7", "format_error"),
        ("integer", "11", r"\frac{22}{2}", "correct"),
        ("integer", "11", "12", "wrong"),
        ("float", "0.955", "0.95", "correct"),
        ("list of integer", "[4, 1, 2]", "(1, 2, 4)", "correct"),
        ("integer", "what", "1", "ungradable"),
        ("integer", "", "1", "ungradable"),
    ],
)
def test_every_type_is_graded(kind: str, gold: str, answer: str, verdict: str) -> None:
    item = Item("theoremqa", gold, rf"\boxed{{{answer}}}", "stop", {"answer_type": kind, "picture": False})
    assert grade([item])[0].verdict == verdict


def test_a_list_may_stand_in_several_boxes_and_strict_compares_texts() -> None:
    meta = {"answer_type": "list of integer", "picture": False}
    items = [
        Item("theoremqa", "[4, 1]", text, "stop", meta) for text in (r"\boxed{1} and \boxed{4}", r"\boxed{[4, 1]}")
    ]
    assert [judged.verdict for judged in grade(items)] == ["correct", "correct"]
    assert [judged.verdict for judged in grade(items, grader="strict")] == ["wrong", "correct"]


@pytest.mark.slow
@pytest.mark.long
def test_hostile_answers_are_judged_and_nothing_is_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    texts = [*TEXTS.values(), *(text.replace("{target}", str(target)) for text in MATHS)]
    texts += [f"__import__('pathlib').Path('{target}').touch()", f"[open('{target}', 'w'), 1]", "9**9**9", "[" * 3000]
    items = [
        Item("theoremqa", gold, rf"\boxed{{{text}}}", "stop", {"answer_type": kind, "picture": False})
        for text in texts
        for gold, kind in (("7", "integer"), ("[4, 1]", "list of integer"), ("True", "bool"), ("(b)", "option"))
    ]
    for grader in ("math-verify", "strict"):
        assert {judged.verdict for judged in grade(items, deadline_s=1.0, grader=grader)} <= set(tables.VERDICTS)
    assert not target.exists()


@given(st.text(max_size=60))
def test_reading_numbers_and_lists_of_any_text(text: str) -> None:
    assert all(isinstance(part, str) for part in list_members(text))
    if not any(letter.isalpha() or letter == "\\" for letter in text):  # the rest may need a sandboxed process
        assert number_value(text) is None or isinstance(number_value(text), float)

"""Boxes, and gold answers as data sets write them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.extraction import last_boxed
from tasks.gold_answers import after_hash_marks, as_written, boxed_integer, integer
from tasks.latex_boxes import find_boxes, last_boxed_gold

balanced = st.recursive(
    st.text(alphabet=r"abz19 +-^_.,$|&", max_size=6) | st.sampled_from([r"\{", r"\}", r"\\", r"\frac", r"\left\{"]),
    lambda inner: st.lists(inner | inner.map(lambda text: "{" + text + "}"), max_size=4).map("".join),
    max_leaves=12,
)


@given(before=st.text(alphabet="ab{}$ \n", max_size=20), content=balanced, after=st.text(alphabet="ab}. $\n"))
def test_the_content_of_a_box_is_found_whatever_braces_it_holds(before: str, content: str, after: str) -> None:
    assert last_boxed_gold(before + r"\boxed{" + content + "}" + after) == content.strip()


@given(first=balanced, second=balanced)
def test_the_last_complete_box_counts(first: str, second: str) -> None:
    assert last_boxed_gold(rf"\boxed{{{first}}} and \fbox{{{second}}}") == second.strip()
    assert last_boxed_gold(rf"\boxed{{{first}}} and \boxed{{ {{never closed") == first.strip()


@given(text=st.text(alphabet="\\boxedf{}$ 1\n", max_size=300))
def test_any_text_has_a_box_or_none(text: str) -> None:
    answer = last_boxed_gold(text)
    assert answer is None or (answer in text and "box" in text)
    assert all(text[box.end - 1] == "}" and box.content in text[box.start : box.end] for box in find_boxes(text))


@given(text=st.lists(st.sampled_from([r"\boxed{", r"\fbox {", r"\boxed{", "{", "}", r"\}", "7", " and "])).map("".join))
def test_a_completion_and_a_solution_differ_only_in_empty_and_escaped_boxes(text: str) -> None:
    complete = find_boxes(text)
    counted = [box.content for box in complete if box.content and not box.escaped]
    assert last_boxed(text) == (counted[-1] if counted else None)
    if complete and "boxed7" not in text and not text.endswith("boxed"):
        assert last_boxed_gold(text) == complete[-1].content


def test_a_long_text_of_open_boxes_is_read_in_time() -> None:
    start = time.process_time()
    assert last_boxed_gold(r"\boxed{" * 40_000) is None
    assert last_boxed_gold(r"\boxed{" * 40_000 + "}") == ""
    assert last_boxed_gold(r"\boxed" * 40_000) is not None
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"so $\boxed{\frac{1}{2}}$", r"\frac{1}{2}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"$\boxed 7$ apples", "7"),
        (r"$\boxed\pi$", r"\pi"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxedanswer{4}", None),
        ("no box", None),
    ],
)
def test_forms_of_a_box(text: str, expected: str | None) -> None:
    assert last_boxed_gold(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2+2=4\n#### 1,234", "1234"),
        ("#### 5\n#### -7", "-7"),
        ("#### $1,000,000.50", "1000000.50"),
        ("#### ", None),
        ("no marks 5", None),
        ("#### five", None),
    ],
)
def test_gsm8k_answers(text: str, expected: str | None) -> None:
    assert after_hash_marks(text) == expected


@given(number=st.integers(-(10**12), 10**12))
def test_gsm8k_thousands_separators_are_removed(number: int) -> None:
    assert after_hash_marks(f"steps\n#### {number:,}") == str(number)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("025", "25"), (27.0, "27"), (-1.0, "-1"), (r"336^\circ", "336"), ("000", "0"), ("-0", "0"), (0.5, "0.5"),
        (None, None), ("", None), (r"\frac12", r"\frac12"),
    ],
)  # fmt: skip
def test_integers_of_answer_keys(value: object, expected: str | None) -> None:
    assert integer(value) == expected


@given(number=st.integers(-999, 999))
def test_integers_stay_themselves(number: int) -> None:
    assert integer(number) == integer(float(number)) == boxed_integer(rf"\boxed{{{number}}}") == str(number)


def test_an_empty_answer_is_none() -> None:
    assert as_written("  ") is None
    assert as_written(" x ") == "x"

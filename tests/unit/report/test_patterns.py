"""Keyword counts against texts counted by hand."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import graded_row, make_run

from analysis.measures import reasoning_patterns
from tests.user_errors import refused

LISTS = {item.name: item for item in reasoning_patterns.load_lists()}


def share_with_match(name: str, text: str) -> int:
    return int(reasoning_patterns.count(pd.Series([text]), LISTS[name].regex)[0])


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("Step 1: add. Step2: multiply. step 3", 3),
        ("In two steps; footstep 1; steps 4", 0),
        ("1. add\n2. multiply\n  3. done", 3),
        ("- 1. add\n**2.** multiply\n10. last", 3),
        ("pi is 3.14\n1.5 apples\n2.5\n100. too many", 0),
        ("1. 3 + 4 = 7\n2. 7 * 2 = 14", 2),
        ("The sum is 12. Then we stop. It is 7.", 0),
        ("1.\n2.", 0),
        ("First, add. Second, multiply. Next, subtract. Finally, box it.", 4),
        ("the first number, a second, next to it, finally", 0),
        ("Nextdoor Firstly Finally.", 1),
        ("Step 1. First, add\n1. First", 4),
        ("", 0),
    ],
)
def test_step_by_step(text: str, matches: int) -> None:
    assert share_with_match("step_by_step", text) == matches


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("Let me rethink. I recheck it.", 2),
        ("Let's try again.", 1),  # not also "try again"
        ("let’s   try\nagain, then try again", 2),
        ("Let's correct it and verify the steps again", 1),
        ("re-evaluate, re - evaluate, reevaluate, Re evaluate", 4),
        ("re-check and recheck and check again", 3),
        ("too high, too low, close but no; close, but", 4),
        ("try another approach; try different numbers; let's think again", 3),
        ("retry again, entry again, rechecked, rethinking, pretty high, checks again", 0),
        ("Wait, I made a mistake", 0),  # quoted in the report's text, but not in its list
        ("", 0),
    ],
)
def test_reflection(text: str, matches: int) -> None:
    assert share_with_match("reflection", text) == matches


@pytest.mark.parametrize(
    ("name", "text", "matches"),
    [
        ("step_by_step_zh", "首先，计算。然后相乘。最后得到答案。", 3),
        ("step_by_step_zh", "步骤1：加。步骤 2：乘。第三步：完成。", 3),
        ("step_by_step_zh", "他走了三步，这是一个步骤。", 0),
        ("reflection_zh", "不对，这个数太大了。让我重新检查一下，再试一次。", 4),
        ("reflection_zh", "换个思路，再想想。", 2),
        ("reflection_zh", "不对称的图形；相对大小", 0),
        ("reflection", "重新检查 recheck", 1),
    ],
)
def test_chinese_lists(name: str, text: str, matches: int) -> None:
    assert share_with_match(name, text) == matches


@given(st.lists(st.sampled_from(["首先", "最后", "再试一次", "recheck", "Finally", "数"]), max_size=8))
def test_the_two_languages_are_counted_apart(parts: list[str]) -> None:
    text = "；".join(parts)
    expected = {"step_by_step": ["Finally"], "step_by_step_zh": ["首先", "最后"], "reflection_zh": ["再试一次"]}
    for name, keywords in expected.items():
        assert share_with_match(name, text) == sum(part in keywords for part in parts)


@given(st.text(), st.text())
def test_counts_of_separate_lines_add_up(first: str, second: str) -> None:
    one, two = (text.encode("utf-8", "replace").decode().replace("\r", "") for text in (first, second))
    for name in LISTS:
        assert share_with_match(name, f"{one}\n§\n{two}") == share_with_match(name, one + "\n") + share_with_match(
            name, "\n" + two
        )


def test_every_keyword_of_the_report_is_found_by_its_own_list() -> None:
    assert [share_with_match("reflection", entry.keyword) for entry in LISTS["reflection"].entries] == [1] * 13
    printed = {keyword.strip() for keyword in LISTS["reflection"].listed.split(",")}
    assert printed == {entry.keyword for entry in LISTS["reflection"].entries}


@given(st.text())
def test_any_text_is_counted(text: str) -> None:
    clean = text.encode("utf-8", "replace").decode()
    for name in LISTS:
        assert 0 <= share_with_match(name, clean) <= len(clean)


@given(st.lists(st.sampled_from(["too high", "recheck", "try again", "let's try again", "hello", "First"]), max_size=8))
def test_separate_keywords_add_up(keywords: list[str]) -> None:
    reflective = sum(word not in ("hello", "First") for word in keywords)
    assert share_with_match("reflection", " | ".join(keywords)) == reflective


def test_long_hostile_text_takes_no_time() -> None:
    assert share_with_match("reflection", "re " * 500_000 + "let's " * 200_000) == 0


def test_table_by_hand() -> None:
    texts = {("a", 0): "First, Next", ("a", 1): "none", ("b", 0): "too high, too low, recheck", ("b", 1): "Finally"}
    run = make_run([graded_row(0, p, r, "wrong", completion=t) for (p, r), t in texts.items()])
    table = reasoning_patterns.table(run, list(LISTS.values())).set_index(["benchmark", "pattern"])
    steps = table.loc[("sums", "step_by_step")]
    assert (steps["completions"], steps["matches"], steps["per_completion"], steps["share"]) == (4, 3, 0.75, 0.5)
    assert steps["per_1000_tokens"] == pytest.approx(1000 * 3 / 40)
    reflection = table.loc[(reasoning_patterns.ALL, "reflection")]
    assert (reflection["matches"], reflection["share"]) == (3, 0.25)


def test_a_missing_completion_counts_nothing() -> None:
    assert reasoning_patterns.count(pd.Series([None, "Next"]), LISTS["step_by_step"].regex).tolist() == [0, 1]


def test_an_invalid_expression(tmp_path) -> None:
    path = tmp_path / "patterns.yaml"
    path.write_text("mine: {title: mine, listed: x, entries: [{keyword: broken, regex: '(x'}]}")
    with refused("invalid-expression", keyword="broken"):
        reasoning_patterns.load_lists(path)

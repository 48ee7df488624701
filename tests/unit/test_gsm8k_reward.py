"""The five GSM8K rewards, as published and as meant, on generated texts that reach every branch.

`Published` reads the published rules a second time, line by line and without their patterns.
"""

from __future__ import annotations

import itertools
import json
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recipes import rewards
from recipes.demo_model.mixture import rows
from recipes.gsm8k import reward
from recipes.rewards import Reward, problem_from_columns
from recipes.runs import load_run
from tasks import prompts
from tasks.arithmetic import demo_traces
from tasks.arithmetic.problems import generate
from tasks.problems import Problem
from tests.budgets import examples
from tests.hostile_text import MARKS

GOLD = "1,000"
PROBLEM = problem_from_columns("math", "1000", json.dumps({"answer": f"He has 10 * 100 = 1,000.\n#### {GOLD}"}))
KINDS = ("right", "digits", "strict_format", "soft_format", "tag_count")
AS_MEANT = (
    "right_as_meant",
    "integer_as_meant",
    "strict_format_as_meant",
    "soft_format_as_meant",
    "tag_count_as_meant",
)
ANSWERS = ("1,000", "1000", "7", "-5", "²", "", "1 000", r"\frac{2000}{2}")
REASONING = ("short", "two\nlines", "", "</answer>", "<answer>3</answer>", "\r")
LAYOUTS = (
    "<reasoning>\n{0}\n</reasoning>\n<answer>\n{1}\n</answer>",
    "<reasoning>\n{0}\n</reasoning>\n<answer>\n{1}\n</answer>\n",
    "<reasoning>\n{0}\n</reasoning>\n<answer>\n{1}\n</answer>\n\n",
    "<reasoning>\n{0}\n</reasoning>\n<answer>\n{1}\n</answer>\nso it is",
    "<reasoning>\n{0}\n</reasoning>\n<answer>\n{1}\n</answer>\n</answer>\n",
    "<reasoning>{0}</reasoning> \n <answer>{1}</answer>",
    "<reasoning>{0}</reasoning><answer>{1}</answer> and more",
    "well, <reasoning>\n{0}\n</reasoning>\n<answer>\n{1}\n</answer>\n",
    "<reasoning>\n{0}\n</reasoning>\nso\n<answer>\n{1}\n</answer>\n",
    "<reasoning>\n{0}\n<answer>\n{1}\n</answer>\n",
    "<reasoning>\n{0}\n</reasoning>\n<answer>\n{1}",
    "{0}\n{1}",
    "{1}",
)
TEXTS = [layout.format(*parts) for layout, *parts in itertools.product(LAYOUTS, REASONING, ANSWERS)]


class Published:
    """What each published function pays, with its weight."""

    @staticmethod
    def answer(text: str) -> str:
        return text.split("<answer>")[-1].split("</answer>")[0].strip()

    @classmethod
    def right(cls, text: str) -> float:
        return 2.0 * (cls.answer(text) == GOLD)

    @classmethod
    def digits(cls, text: str) -> float:
        return 0.5 * cls.answer(text).isdigit()

    @staticmethod
    def strict_format(text: str) -> float:
        """Six lines, then the end of the text or one more line end."""
        lines = text.split("\n")
        wanted = ["<reasoning>", None, "</reasoning>", "<answer>", None, "</answer>", "", ""]
        fits = all(want in (None, line) for want, line in zip(wanted, lines, strict=False))
        return 0.5 * (fits and len(lines) in (7, 8))

    @staticmethod
    def soft_format(text: str) -> float:
        """Each tag is closed in the line in which it opens, and only white space is between the two."""
        if not text.startswith("<reasoning>"):
            return 0.0
        first = text.partition("\n")[0]
        for at in range(len(first)):
            if first.startswith("</reasoning>", at, len(first)) and at >= len("<reasoning>"):
                rest = text[at + len("</reasoning>") :].lstrip()
                if rest.startswith("<answer>") and "</answer>" in rest[len("<answer>") :].partition("\n")[0]:
                    return 0.5
        return 0.0

    @staticmethod
    def tag_count(text: str) -> float:
        eighths, characters = 0, 0
        for tag in ("<reasoning>\n", "\n</reasoning>\n", "\n<answer>\n", "\n</answer>"):
            eighths += len(text.split(tag)) == 2
        if len(text.split("\n<answer>\n")) == 2:
            characters += len(text.split("\n</answer>\n")[-1])
        if len(text.split("\n</answer>")) == 2:
            characters += len(text.split("\n</answer>")[-1]) - 1
        return eighths / 8 - characters / 1000


RUNS = ("qwen2.5-0.5b-instruct", "qwen2.5-0.5b-instruct-as-meant")
WEIGHTS = {
    one["function"].rpartition(".")[2]: one["weight"]
    for run in RUNS
    for one in load_run(f"gsm8k/{run}", "full").rewards
}


def paid(name: str, text: str, problem_: Problem = PROBLEM) -> Reward:
    """The value of a reward with the weight of its run file."""
    (judged,) = getattr(reward, name)([text], [problem_])
    return judged._replace(value=None if judged.value is None else WEIGHTS[name] * judged.value)


@pytest.mark.parametrize("kind", KINDS)
def test_each_reward_is_the_published_one(kind: str) -> None:
    assert len(set(TEXTS)) >= 200
    expected = [getattr(Published, kind)(text) for text in TEXTS]
    rewarded = getattr(reward, kind)(TEXTS, [PROBLEM] * len(TEXTS))
    weight = 1.0 if kind == "tag_count" else 2.0 if kind == "right" else 0.5
    assert [weight * one.value for one in rewarded] == pytest.approx(expected)
    assert len(set(expected)) > 1  # the texts reach both sides of each branch


PIECES = [*reward.TAGS, "\n", "1,000", "7", "²", " ", "\n\n", "a", *MARKS]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=100)


@pytest.mark.slow
@examples("any text")
@given(HOSTILE)
@example("<reasoning>a</reasoning></reasoning>\u2028<answer>7</answer>")
@example("\n<answer>\n\n</answer>\n</answer>\n")
def test_any_text_is_paid_as_published_and_never_raises(text: str) -> None:
    for kind in KINDS:
        assert paid(kind, text).value == pytest.approx(getattr(Published, kind)(text)), kind
    for kind, most in zip(AS_MEANT, (2.0, 0.5, 0.5, 0.5, 0.5), strict=True):
        value = paid(kind, text).value
        assert value is not None and value <= most


SEVERAL_LINES = "<reasoning>\n10 * 100\n= 1,000\n</reasoning>\n<answer>\n{}\n</answer>"


@pytest.mark.parametrize(
    ("text", "published", "meant"),
    [
        (SEVERAL_LINES.format("1,000"), (2.0, 0.0, 0.0, 0.0, 0.5 - 0.066 + 0.001), (2.0, 0.5, 0.5, 0.5, 0.5)),
        (SEVERAL_LINES.format("1000"), (0.0, 0.5, 0.0, 0.0, 0.5 - 0.065 + 0.001), (2.0, 0.5, 0.5, 0.5, 0.5)),
        (SEVERAL_LINES.format("7") + "\n", (0.0, 0.5, 0.0, 0.0, 0.5), (0.0, 0.5, 0.5, 0.5, 0.5)),
        ("1,000", (2.0, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
        ("<reasoning>a</reasoning><answer>²</answer>", (0.0, 0.5, 0.0, 0.5, 0.0), (0.0, 0.0, 0.0, 0.5, 0.0)),
        (SEVERAL_LINES.format("-5") + "\nmore", (0.0, 0.0, 0.0, 0.0, 0.5 - 0.008), (0.0, 0.5, 0.0, 0.5, 0.5 - 0.004)),
    ],
)
def test_what_is_published_and_what_is_meant(text: str, published: tuple[float, ...], meant: tuple[float, ...]) -> None:
    assert [paid(kind, text).value for kind in KINDS] == pytest.approx(published)
    assert [paid(kind, text).value for kind in AS_MEANT] == pytest.approx(meant)


def test_reasoning_of_several_lines_never_has_a_published_format() -> None:
    texts = [text for text in TEXTS if "two\nlines" in text]
    for kind in ("strict_format", "soft_format"):
        assert {paid(kind, text).value for text in texts} == {0.0}
        assert {paid(f"{kind}_as_meant", text).value for text in texts} == {0.0, 0.5}


@pytest.mark.parametrize("kinds", [KINDS, AS_MEANT])
def test_verdicts_and_format_errors(kinds: tuple[str, ...]) -> None:
    texts = [SEVERAL_LINES.format("1,000"), SEVERAL_LINES.format("7"), "1000 it is", ""]
    loaded = [(getattr(reward, kind), 1.0) for kind in kinds]
    totals = rewards.total(loaded, texts, [PROBLEM] * 4)
    assert [one.verdict for one in totals] == ["correct", "wrong", "format_error", "format_error"]
    assert [one.format_error for one in totals] == [False, False, True, True]
    for text in texts:
        (unusable,) = rewards.total(loaded[:1], [text], [problem_from_columns("math", "", "{}")])
        assert unusable == (None, "ungradable", False)


def test_a_generated_problem_is_compared_with_its_answer() -> None:
    generated = problem_from_columns("arithmetic", "12", "{}")
    assert paid("right", "<answer>\n12\n</answer>", generated).value == 2.0
    assert paid("right", "<answer>\n13\n</answer>", generated).value == 0.0


def test_demo_traces_write_the_format_that_the_prompt_asks_for() -> None:
    kept = demo_traces.Habits(right_order=1.0, look_back=0.0, in_words=0.5, format_kept=1.0, slip=0.0)
    for number, generated in enumerate(generate(40, "train", 0)):
        text = demo_traces.completion(generated, prompts.load("reasoning-answer"), kept, random.Random(number))
        assert [paid(kind, text, generated).value for kind in AS_MEANT] == [2.0, 0.5, 0.5, 0.5, 0.5]
    demo = {"prompts": ["reasoning-answer"], "problems": {"rows": 50}, "skill": {}}
    habits = {"right_order": 0.4, "look_back": 0.1, "in_words": 0.1, "format_kept": 0.5, "slip": 0.0}
    broken = [row.completion for row in rows("arithmetic", {**demo, "habits": habits}, 60, 0.0, 0)]
    assert {paid("soft_format_as_meant", text).value for text in broken} == {0.0, 0.5}

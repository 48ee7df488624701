"""A prompt names where its answer stands: reward and evaluation look there, and a run that does not is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.run_file import SCALES
from eval import protocols
from eval.run_settings import check_evaluation, protocol_of
from grading import Item, grade
from grading.extraction import BOX, extract, rule_of_prompt
from recipes import answer_check, rewards
from recipes.rewards import problem_from_columns
from recipes.runs import load_run, run_names, training_settings
from tasks import prompts
from tests.user_errors import refused

DISTILL = load_run("openr1/deepseek-r1-distill-qwen-7b", "full")
ASKING = [name for name, prompt in prompts.library().items() if prompt.answer is not None and "svg" not in name]


@pytest.mark.parametrize("name", ASKING)
@given(answer=st.sampled_from(["72", "-3", r"\frac{1}{2}", "x = 5", "(1, 2)", "B"]))
def test_what_a_prompt_asks_for_is_extracted(name: str, answer: str) -> None:
    prompt = prompts.load(name)
    assert answer in (extract(prompt.completion(answer), rule_of_prompt(prompt)).answer or "")


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        (r"<think>a</think><answer>$\frac{1}{2}$</answer>", r"\frac{1}{2}", 1.0),
        (r"<think>a</think><answer>$\frac{1}{2}$</answer>", "2", 0.0),
        (r"<think>a</think><answer>The answer is $\frac{1}{2}$.</answer>", "0.5", 1.0),
        (r"<think>\boxed{3}</think><answer>\boxed{4}</answer>", "4", 1.0),
        (r"<think>a</think>\boxed{3} <answer>4</answer>", "4", 1.0),
        (r"<think>a</think><answer>4</answer> or \boxed{3}", "3", 0.0),
        (r"<think>a</think>\boxed{4}", "4", 1.0),
        ("<think>4</think>", "4", 0.0),
        ("<think>a</think><answer>4", "4", 0.0),
    ],
)
def test_training_and_evaluation_mean_the_same_by_correct(completion: str, gold: str, value: float) -> None:
    ((function, _), _) = rewards.load(DISTILL.rewards, rewards.extraction_of(DISTILL))
    (reward,) = function([completion], [problem_from_columns("math", gold, "{}")])
    (judged,) = grade([Item("math", gold, completion, "stop", extraction=protocol_of(DISTILL).extraction)])
    assert (reward.value, reward.verdict) == (value, judged.verdict)


@pytest.mark.parametrize(("scale", "name"), [(scale, name) for scale in SCALES for name in run_names(scale)])
def test_the_evaluation_looks_where_the_reward_does(scale: str, name: str) -> None:
    run = load_run(name, scale)
    answer_check.check_answer_is_seen(run)
    protocol = protocol_of(run)
    if protocol.prompt == run.prompt:
        assert protocol.extraction == rewards.extraction_of(run)


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("simplerl/qwen2.5-math-7b", "r1-tags"), ("simplerl/qwen2.5-math-7b", "oat-r1"), ("tinyzero/grpo-3b", "boxed"),
        ("logicrl/qwen2.5-7b", "boxed"), ("drgrpo/qwen2.5-math-7b-r1", "qwen-boxed"),
        ("gsm8k/qwen2.5-0.5b-instruct", "lighteval-boxed"),
    ],
)  # fmt: skip
def test_a_run_whose_reward_looks_elsewhere_is_refused(name: str, prompt: str) -> None:
    with refused("reward-does-not-see-answer", prompt=prompt):
        answer_check.check_answer_is_seen(replace(load_run(name, "full"), prompt=prompt))


def test_an_evaluation_that_looks_elsewhere_is_refused() -> None:
    override = {"prompt": "r1-tags", "extraction": "last-number"}
    with refused("extraction-does-not-see-answer", prompt="r1-tags"):
        check_evaluation(replace(DISTILL, evaluation=DISTILL.evaluation | {"override": override}))
    assert protocols.load("demo", {"prompt": "r1-tags"}).extraction == "answer-tag"
    assert protocols.load("demo", {"prompt": "svg-drawing"}).extraction == "svg-element"
    assert protocols.load("qwen-math").extraction == protocols.load("greedy-boxed").extraction == BOX
    assert protocols.load("qwen-math", {"prompt": "plain"}).extraction == "last-number"
    published = DISTILL.evaluation | {"override": {"prompt": "boxed", "extraction": "answer-is"}}
    check_evaluation(replace(DISTILL, evaluation=published))
    assert protocol_of(replace(DISTILL, evaluation=published)).extraction == "answer-is"


def test_where_the_answer_stands_decides_a_training() -> None:
    assert training_settings(DISTILL, DISTILL.stages[0])["extraction"] == "answer-tag"
    boxed = replace(DISTILL, prompt="boxed")
    assert rewards.extraction_of(boxed) == BOX and "extraction" not in training_settings(boxed, boxed.stages[0])


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"user": r"{question} Use \boxed{}."}, "prompt-without-answer-form"),
        ({"user": "{question}", "system": "Answer in <answer> tags."}, "prompt-without-answer-form"),
        ({"user": "{question}", "answer": "no place"}, "prompt-without-answer-form"),
    ],
)
def test_a_prompt_that_asks_for_a_form_has_to_state_it(
    entry: dict[str, str], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "entries", lambda: {"own": {"source": "ours", **entry}})
    with refused(code, prompt="own"):
        prompts.library.__wrapped__()


def test_a_form_that_no_rule_reads_is_refused() -> None:
    with refused("unreadable-answer-form", prompt="own"):
        rule_of_prompt(prompts.Prompt("own", "ours", "{question}", answer="<result>{answer}</result>"))

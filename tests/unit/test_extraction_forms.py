"""Forms in which models state answers: sentences, parts, letters after formulas, and where their own turn ends."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from grading import Item, grade
from grading.extraction import extract, extract_letter, last_boxed
from grading.model_turn import own_turn
from tasks import registry

FORMS = Path(__file__).with_name("cases") / "extraction_forms.jsonl"


@pytest.mark.slow
def test_labelled_forms() -> None:
    rows = [json.loads(line) for line in FORMS.read_text().split("\n")[:-1]]
    items = [Item(row["task"], row["gold"], row["completion"], extraction=row["extraction"]) for row in rows]
    judged = zip(rows, grade(items, workers=1), strict=True)
    assert [row for row, one in judged if (one.verdict == "correct") != row["right"]] == []


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 72, which is the total.", "72"),
        ("The answer is $$12$$.", "$$12$$"),
        (r"The answer is $\$10$.", r"$\$10$"),
        ("The answer is:\n12\nand so on", "12"),
        ("The answer is\n\n$$\n12\n$$\nas shown", "$$\n12\n$$"),
        ("The answer is 12! Yes.", "12"),
        ("The answer is 5!.", "5!"),
        ("**The answer is 72**", "72"),
        ("The answer is 72 because 70 + 2 = 72.", "72"),
        ("The final answer is: $12$, so we are done.", "$12$"),
        ("The answer is x = 3, y = 4.", "x = 3, y = 4"),
        (r"The answer is \(3\), and \(4\).", r"\(3\), and \(4\)"),
        ("The answer is $10 and $20.", "$10 and $20"),
        ("The answer is found to be '12'.", "12"),
        ("The answer is <b>12</b>.", "12"),
        ("The answer is $(1, 2)$, a point.", "$(1, 2)$"),
    ],
)
def test_sentences(text: str, answer: str) -> None:
    assert extract(text, "answer-is").answer == answer


@pytest.mark.parametrize(
    "form",
    [
        "a) {}\nb) {}", "(a) {}\n\n(b) {}", "(i) x is {}\n(ii) y is {}", "1. {}\n2. {}",
        "Part 1: so {}.\n\nPart 2: then {}.",
        "### Part 1\nThus {}.\n### Part 2\nThus {}.",
        "**(a)** " + "long " * 30 + "{}.\n\n**(b)** " + "text " * 30 + "{}.",
        "| part | answer |\n|---|---|\n| a | {} |\n| b | {} |", "For part (a), it is {}. For part (b), it is {}.",
        "Case 1: {}\nCase 2: {}", "Question 1: {}\nQuestion 2: {}", "a) {} b) {}", "Part one: {}\nPart two: {}",
        "- $x = {}$\n- $x = {}$", "x: {}\ny: {}",
    ],
)  # fmt: skip
def test_answers_by_parts_are_joined(form: str) -> None:
    text = form.format(r"\boxed{12}", r"\boxed{5}")
    assert extract(text, is_multi_answer=True).answer == "12, 5"
    assert last_boxed(text) == "5"  # of a problem with one answer, the last
    again = f"1. {form}\n2. {form}".format(*[r"\boxed{1}"] * 4) + "\nSo " + r"\boxed{12, 5}"
    assert last_boxed(again, is_multi_answer=True) == "12, 5"


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        (r"\text{Option C}", "C"), (r"\textbf{(C)}\ 42\text{ m/s}", "C"), ("C - 42 m/s", "C"), ("C) 42 m/s", "C"),
        (r"C: 42\,\text{m/s}", "C"), ("**C.** 42 m/s", "C"), (r"\mathrm{(C)~42~m/s}", "C"), ("E) …", "E"),
        ("C - 43 m/s", None), ("B - 42 m/s", None), ("C or B", None), ("E = mc^2", None), ("not C", None),
    ],
)  # fmt: skip
def test_letters_with_the_text_of_their_option(answer: str, letter: str | None) -> None:
    meta = {"options": ["1", "2", "42 m/s", "4", "5"]}
    verdicts = {gold: registry.get("multiple_choice").verify(answer, gold, meta) for gold in "ABCDE"}
    assert [gold for gold, verdict in verdicts.items() if verdict == "correct"] == ([letter] if letter else [])


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("\\boxed{42 m/s}\n\n**Answer: D**", "D"),
        (r"\boxed{E = mc^2}, so the correct option is **(D)**.", "D"),
        (r"\boxed{42}. The answer is (B) or (C).", "42"),
        (r"\boxed{42}. The answer is A particle.", "42"),
        (r"\boxed{B}. Answer: D", "B"),
        ("\\boxed{42}\n\nOption A is wrong.", "42"),
        ("\\boxed{42}\n\nOption A is right.", "A"),
        ("\\boxed{42}, which corresponds to (D).", "D"),
        ("\\boxed{42}\n\n答案：D", "D"),
        ("\\boxed{42}\n#### D", "D"),
    ],
)
def test_a_letter_after_a_box_without_one(text: str, answer: str) -> None:
    assert extract_letter(text).answer == answer


@pytest.mark.parametrize(
    "end",
    [
        "<|im_end|>\n<|im_start|>user\nNext. ", "<|endoftext|>", "<|eot_id|>", "</s> ",
        "<｜end▁of▁sentence｜>", "<end_of_turn>\n",
        "\n\nProblem: what is 3+4? ", "\n\nQuestion: 3+4?\nAnswer: ", "\nHuman: and 3+4?\nAssistant: ",
        "\n## Problem 2\n3+4 ",
        "\n**Question 2:** 3+4 ", "\nUser: 3+4? ", "\n问题：3+4 ", "\nuser\n3+4? ", "<|EOT|>", "\nQ. 3+4? ",
        "\n\nNow solve the following problem: 3+4 ", "\nHere is another problem: ", "\n\\textbf{Problem 2.} 3+4 ",
    ],
)  # fmt: skip
def test_the_answer_ends_with_the_models_turn(end: str) -> None:
    for first, rule in (
        (r"so \boxed{5}", "none"),
        ("<answer>5</answer>", "answer-tag"),
        ("The answer is 5.", "answer-is"),
    ):
        second = {"none": r"\boxed{7}", "answer-tag": "<answer>7</answer>", "answer-is": "The answer is 7."}[rule]
        assert extract(f"{first}{end}{second}", rule).answer == "5"
    (judged,) = grade([Item("math", "5", f"\\boxed{{5}}{end}\\boxed{{7}}", "length")])
    assert judged.verdict == "correct"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"Problem: 2+3, in \boxed{}. Solution: \boxed{5}", "5"),
        ("<think>\\boxed{3}\nQuestion: is it?</think> \\boxed{4}", "4"),
        ("<|im_start|>assistant\n\\boxed{4}", "4"),
        (r"<s>no</s> \boxed{4}", "4"),
        (r"<|begin_of_box|>42<|end_of_box|>", "42"),
        (r"<|channel|>analysis \boxed{1}<|end|><|start|>assistant<|channel|>final<|message|>\boxed{2}<|return|>", "2"),
    ],
)
def test_what_does_not_end_a_turn(text: str, answer: str) -> None:
    assert extract(text).answer == answer


@pytest.mark.parametrize("finish_reason", [None, "stop", "length"])
def test_a_complete_box_stands_until_another_is_complete(finish_reason: str | None) -> None:
    (judged,) = grade([Item("math", "42", r"\boxed{42}. Wait, \boxed{4", finish_reason)])
    assert judged.verdict == "correct"


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "</s>",
        "<s></s>",
        "Problem:\n",
        "a) \\boxed{1}\n",
        "| \\boxed{1} |\n",
        "answer: ",
        "1.\n",
        "# ",
        "(a) ",
        "first ",
        "choose A ",
        "- $x = \\boxed{1}$\n",
        "Now here is a ",
    ],
)
def test_time_is_linear(piece: str) -> None:
    start = time.process_time()
    text = piece * (200_000 // len(piece))
    own_turn(text), extract_letter(text)
    for rule in ("none", "answer-is", "answer-tag", "answer-line"):
        extract(text, rule, is_multi_answer=True)
    assert time.process_time() - start < 5

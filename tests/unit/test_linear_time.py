"""Whatever reads a completion takes time and memory linear in it: a quadratic one would not end within these limits."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.gsm8k import reward as gsm8k
from recipes.openr1 import reward as openr1
from tests import budgets

CPU_SECONDS, MEMORY = 60, 3 << 29  # at a hundredth of a quadratic function's needs
READ_ALL = """
import json, sys
from analysis.measures import reasoning_patterns
from analysis.measures.arithmetic_errors import false_equations
from grading import disagreements, extraction
from recipes.gsm8k import reward as gsm8k
from recipes.openr1 import reward as openr1
from tasks.latex_boxes import last_boxed_gold
from tasks.countdown.verifier import verify as countdown
from tasks.doudizhu.cards import read_cards
from tasks.gold_answers import after_hash_marks, integer
from tasks.gomoku.board import read_cell
from tasks.knights_knaves.verifier import verify as puzzle
from tasks.math_answers import exact_comparison
from tasks.problems import Problem
from tasks.programs.suite import extract_program
import pandas as pd

for text, size in json.load(sys.stdin):
    text = (text * (size // len(text) + 1))[:size]
    for tail in ("", " cm", "}", "</answer>x"):
        whole = text + tail
        answers = [extraction.extract(whole, rule, is_multi_answer=True).answer for rule in extraction.RULES]
        for answer in {whole, *filter(None, answers)}:
            exact_comparison.normalise(answer)
            integer(answer), read_cards(answer), read_cell(answer, 9)
            extract_program(answer), extract_program("```" + answer)
            exact_comparison.compare_exactly("7", answer)
            disagreements.plain_number(answer)
            countdown(answer, [1, 2], 3)
            puzzle(answer, ["Zoey"], [True])
    extraction.extract_tagged(text), last_boxed_gold(text), after_hash_marks(text), false_equations(text)
    for tagged in ("<think>" + text, "<reasoning>" + text, "<reasoning>\\n" + text):
        openr1.tags([tagged], []), gsm8k.soft_format([tagged], []), gsm8k.strict_format_as_meant([tagged], [])
    for one in reasoning_patterns.load_lists():
        reasoning_patterns.count(pd.Series([text]), one.regex)
"""
TEXTS = [
    "0", "1,", "1,111", "\\boxed{", "\\boxed{0", "\\boxed{}", "}{", " ", "a ", "\n", "Answer:", "\\frac", "\\,", "1=",
    "</think>", "</think> <answer>", "</reasoning><answer>", "</reasoning> ", "####", "-", "(", "$", "\u0663", "A: ",
]  # fmt: skip


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def read(texts: list[tuple[str, int]]) -> None:
    """Read the texts, each repeated to a length, in a process that is killed at its limits."""
    run(READ_ALL, json.dumps(texts))


def run(program: str, stdin: str = "") -> None:
    """Run a program that is killed at its limits."""
    subprocess.run(
        [sys.executable, "-c", program], input=stdin, text=True, check=True, preexec_fn=_limit,
        cwd=Path(__file__).parents[2], env={"PYTHONPATH": ".", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("share", [1 / 6, pytest.param(1 / 2, marks=pytest.mark.long)])
def test_what_reads_a_completion_is_linear(share: float) -> None:
    read([(text, 100_000) for text in budgets.some(TEXTS, share)])


@pytest.mark.long
@pytest.mark.parametrize("text", ["0", "\\boxed{"])
def test_a_million_characters(text: str) -> None:
    read([(text, 1_000_000)])


OF_TASKS = """
from tests.performance.reading_time import PIECES, readers_of_tasks, text_of

for reader in readers_of_tasks().values():
    for piece in PIECES:
        for frame in ("{}", "<think></think><answer>{}</answer>"):
            reader(text_of(piece, frame))
"""


@pytest.mark.slow
def test_what_the_tasks_read_is_linear() -> None:
    run(OF_TASKS)


PIECES = ["<think>", "</think>", "<answer>", "</answer>", "<reasoning>", "</reasoning>", "\n", " ", "a", "\n\n"]
PUBLISHED = re.compile(r"<reasoning>.*?</reasoning>\s*<answer>.*?</answer>")


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_the_formats_of_the_rewards_are_still_the_published_patterns(text: str) -> None:
    for tagged in ("<think>" + text, text):
        assert openr1.tags([tagged], [])[0].value == float(openr1.TAGS.match(tagged) is not None)
    for tagged in ("<reasoning>" + text, text):
        assert gsm8k.soft_format([tagged], [])[0].value == float(PUBLISHED.match(tagged) is not None)
        meant = re.compile(PUBLISHED.pattern, re.DOTALL).match(tagged) is not None
        assert gsm8k.soft_format_as_meant([tagged], [])[0].value == float(meant)

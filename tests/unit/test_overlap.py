"""Overlap of training problems with benchmarks, on texts where it is known and against a plain implementation."""

from __future__ import annotations

import csv
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import tables
from tasks.overlap import compare, exact_form, questions, to_markdown
from tasks.problems import Problem, to_table
from tests.forked_command import run_module

FOX = "the quick brown fox jumps over the lazy dog while seven small cats look on and laugh"
ROOT = Path(__file__).resolve().parents[2]


def counts(train: list[str], benchmark: list[str], common: int = 10) -> dict:
    counted, _ = compare(
        questions("train", [f"t{i}" for i in range(len(train))], train),
        questions("bench", [f"b{i}" for i in range(len(benchmark))], benchmark),
        common=common,
    )
    return counted


def test_no_overlap_is_zero() -> None:
    counted = counts([FOX], ["How many sheep are left when eight of the twelve have gone home for the night again?"])
    assert (counted["exact"], counted["gram13"], counted["gram8"], counted["gram8_share"]) == (0, 0, 0, 0.0)
    assert "| 0 | 0 | 0 | 0 | 0 |" in to_markdown([counted])


def test_the_same_problem_set_differently_is_exact() -> None:
    ours = r"Find $\tan ^{5} \frac{3 \pi}{8}+\left( x_{1} \right)^{2}+\cdots$."
    theirs = "Find\n\\[\\tan^5 \\dfrac{3 \\pi}{8} + (x_1)^2 + \\dots.\\]"
    counted = counts([ours], [theirs])
    assert counted["exact"] == 1 and counted["exact_share"] == 1.0 and counted["exact_train_rows"] == 1


@pytest.mark.parametrize(("one", "other"), [("2 + 3", "2 - 3"), ("12", "1 2"), ("x^2", "x_2"), ("a<b", "a>b")])
def test_other_operators_and_numbers_are_not_exact(one: str, other: str) -> None:
    assert exact_form(f"What is ${one}$?") != exact_form(f"What is ${other}$?")


def test_windows_of_thirteen_and_of_eight_words() -> None:
    fox_words = FOX.split()
    thirteen = "Once " + " ".join(fox_words[:13]) + " , somebody said"
    twelve = "Once " + " ".join(fox_words[:12]) + " , somebody said"
    counted = counts([FOX], [thirteen, twelve])
    assert (counted["gram13"], counted["gram8"], counted["exact"]) == (1, 2, 0)


def test_a_window_does_not_span_two_problems() -> None:
    fox_words = FOX.split()
    assert counts([" ".join(fox_words[:9]), " ".join(fox_words[9:])], [FOX])["gram13"] == 0


def test_a_phrase_that_many_problems_share_is_not_rare() -> None:
    phrase = "can be written as m over n where m and n are relatively prime positive integers find m plus n"
    train = [f"{name} {phrase}" for name in ("area", "volume", "length")]
    counted = counts(train, [f"height {phrase}"], common=2)
    assert (counted["gram13"], counted["gram13_rare"], counted["gram13_half"]) == (1, 0, 0)
    counted = counts(train, [f"height {phrase}"], common=3)
    assert (counted["gram13"], counted["gram13_rare"], counted["gram13_half"]) == (1, 1, 1)


def test_a_leaked_problem_is_seen_however_often_it_is_repeated() -> None:
    counted = counts([FOX + " twice"] * 50, [FOX])
    assert (counted["exact"], counted["gram13_half"], counted["gram8_half"]) == (0, 1, 1)
    assert counted["gram13_train_rows"] == 50


def test_problems_too_short_for_a_window_are_counted() -> None:
    counted = counts(["What is 1 + 1?"], ["What is 1+1 ?", FOX])
    assert (counted["gram13_too_short"], counted["gram8_too_short"], counted["exact"]) == (1, 1, 1)


def test_empty_files_and_texts() -> None:
    assert counts([], [FOX])["gram8"] == 0
    assert counts([FOX], [])["exact_share"] == 0.0
    assert counts([""], ["", FOX])["gram8_too_short"] == 1


@given(
    train=st.lists(st.lists(st.sampled_from("abc"), max_size=20), max_size=5),
    benchmark=st.lists(st.lists(st.sampled_from("abc"), max_size=20), max_size=5),
    n=st.integers(1, 9),
    common=st.integers(1, 3),
)
def test_as_a_plain_implementation(train: list, benchmark: list, n: int, common: int) -> None:
    def grams(text_words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(text_words[i : i + n]) for i in range(len(text_words) - n + 1)}

    rows = [grams(text_words) for text_words in train]
    problems = [grams(text_words) for text_words in benchmark]
    different = {tuple(text_words): grams(text_words) for text_words in train}.values()
    seen = {gram: sum(gram in row for row in different) for problem in problems for gram in problem}
    ours, _ = compare(
        questions("t", [str(i) for i in range(len(train))], [" ".join(text_words) for text_words in train]),
        questions("b", [str(i) for i in range(len(benchmark))], [" ".join(text_words) for text_words in benchmark]),
        windows=(n,),
        common=common,
    )
    assert ours[f"gram{n}"] == sum(any(seen[gram] for gram in problem) for problem in problems)
    assert ours[f"gram{n}_rare"] == sum(any(0 < seen[gram] <= common for gram in problem) for problem in problems)
    assert ours[f"gram{n}_train_rows"] == sum(any(gram in seen for gram in row) for row in rows)
    assert ours[f"gram{n}_too_short"] == sum(not problem for problem in problems)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_module("tasks.overlap", *arguments)


@pytest.mark.slow
def test_command_line_writes_table_and_pairs(tmp_path: Path) -> None:
    for name, texts in {"train": [FOX, "x"], "bench": [FOX.upper(), "nothing of it"]}.items():
        problems = [Problem(f"{name}{i}", "math", text, "1", {}) for i, text in enumerate(texts)]
        tables.write(to_table(problems), tables.PROBLEM, tmp_path / f"{name}.parquet")
    files = ("--train", str(tmp_path / "train.parquet"), "--benchmark", str(tmp_path / "bench.parquet"))
    result = run(*files, "--output", str(tmp_path / "overlap.csv"))
    assert result.returncode == 0, result.stderr
    with (tmp_path / "overlap.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["train_rows"], row["problems"], row["exact"], row["gram13_half"]) == ("2", "2", "1", "1")
    with (tmp_path / "overlap.pairs.csv").open() as file:
        (pair,) = csv.DictReader(file)
    assert (pair["train_id"], pair["benchmark_id"], pair["exact"]) == ("train0", "bench0", "True")
    assert re.search(r"\| train \(2\) \| bench \| 2 \| 1 \(50\.0%\)", (tmp_path / "overlap.md").read_text())
    assert (tmp_path / "overlap.csv.provenance.json").is_file()


@pytest.mark.slow
def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    result = run("--train", "nowhere.parquet", "--benchmark", "nowhere.parquet", "--output", str(tmp_path / "o.csv"))
    assert result.returncode == 1
    assert result.stderr.startswith("Error: nowhere.parquet does not exist") and "Traceback" not in result.stderr

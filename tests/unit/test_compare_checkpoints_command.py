"""The gate as a command: exit statuses, what it writes, looks, choices, and how many samples are needed."""

import argparse
import json
import math
import re
import sys

import numpy as np
import pytest

from analysis import hash_order
from analysis.compare_checkpoints import __main__ as gate
from analysis.compare_checkpoints import graded_checkpoint, samples_needed
from contracts import tables
from tasks.problems import Problem, to_table
from tests.unit.graded_samples import graded, process, sample, save
from tests.user_errors import printed_code, refused


@pytest.fixture
def command(monkeypatch, capsys):
    """The command in this process, which has the packages imported."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gate", *map(str, arguments)])
        capsys.readouterr()
        try:
            status = gate.main()
        except SystemExit as end:
            status = end.code
        return status, "".join(capsys.readouterr())

    return run


@pytest.fixture
def low_and_high(tmp_path):
    """Two checkpoints, of which the second is better."""
    return save(tmp_path / "low", graded(sample(100, 2, 0.3, 0))), save(
        tmp_path / "high", graded(sample(100, 2, 0.7, 1))
    )


@pytest.mark.slow
def test_the_command_ends_with_the_verdict(command, low_and_high, tmp_path):
    low, high = low_and_high
    other = save(tmp_path / "other", graded(sample(100, 2, 0.7, 1), grader="strict"))
    pairs = [(high, low), (low, high), (other, low)]
    assert [command("compare", "--checkpoint", one, "--baseline", two)[0] for one, two in pairs] == [0, 1, 2]


@pytest.mark.slow
def test_the_command_writes_all_forms(command, low_and_high, tmp_path):
    (low, high), out = low_and_high, tmp_path / "out"
    status, printed = command("compare", "--checkpoint", low, "--baseline", high, "--output", out)
    assert status == 1 and "▼ worse" in printed
    texts = {"comparison.json", "comparison.md", "comparison.txt", "index.html"}
    assert {file.name for file in out.iterdir()} == texts | {"provenance.json"}
    assert json.loads((out / "comparison.json").read_text())["exit_status"] == 1
    assert (out / "comparison.md").read_text().startswith("### ")
    page = (out / "index.html").read_text()
    assert "&lt;/script&gt;" in page and page.count("</script>") == 1 and not re.search(r"https?://", page)
    assert process("show", out / "comparison.json") == (1, printed)


@pytest.mark.slow
def test_the_page_shows_the_questions_of_files_whose_prompts_are_not_known(command, tmp_path):
    """Imports keep their problems beside their samples."""
    for name, seed in (("one", 0), ("two", 1)):
        save(tmp_path / name / "graded/step-0", graded(sample(60, 1, 0.5, seed), prompt=None))
    questions = [Problem(f"p{number:04}", "math", f"How many are {number}?", "1", {}) for number in range(60)]
    tables.write(to_table(questions), tables.PROBLEM, tmp_path / "one/problems/questions.parquet")
    out = tmp_path / "out"
    sides = [f"--checkpoint={tmp_path}/two/graded", f"--baseline={tmp_path}/one/graded"]
    command("compare", *sides, "--accept", "prompt", "--output", out)
    page = (out / "index.html").read_text()
    changed, questions = re.findall(r"<b>p(\d+)", page), re.findall(r"are (\d+)\?", page)
    assert changed and list(map(int, changed)) == list(map(int, questions))


@pytest.mark.slow
def test_the_command_ends_with_3_where_it_cannot_compare(command, low_and_high):
    low, high = low_and_high
    status, printed = command("compare", "--checkpoint", high, "--baseline", "sober/Qwen2.5Math-7B")
    assert status == 3 and "sober/Qwen2.5-Math-7B" in printed and "Traceback" not in printed
    assert command("compare", "--checkpoint", high)[0] == 3
    assert command("compare", "--checkpoint", high, "--baseline", low, "--margin", "-1")[0] == 3


def test_needed_samples(command):
    status, printed = command("needed", "--difference", "3", "--benchmark", "math500", "aime24")
    assert status == 0 and re.search(r"aime24 +30 +no number", printed) and re.search(r"math500 +500 +\d+", printed)
    assert "cannot replace more problems" in printed
    assert command("needed", "--difference", "0")[0] == 3


@pytest.mark.parametrize(
    ("option", "value"),
    [("accuracy", 500), ("accuracy", -3), ("change", -5), ("change", math.nan), ("difference", 101)],
)
def test_needed_refuses_what_no_model_can_have(option, value):
    parser = argparse.ArgumentParser()
    samples_needed.add_arguments(parser)
    arguments = parser.parse_args(["--difference=2", f"--{option}={value}"])
    with refused("argument-out-of-range", option=f"--{option}"):
        arguments.run(arguments)


def test_needed_with_a_change_that_is_the_same_on_all_problems(capsys):
    parser = argparse.ArgumentParser()
    samples_needed.add_arguments(parser)
    arguments = parser.parse_args(["--difference=2", "--change=0", "--accuracy=100"])
    assert arguments.run(arguments) == 0
    assert re.search(r"aime24 +30 +1  0\.0 points", capsys.readouterr().out)  # nothing varies: one repeat finds it


@pytest.mark.slow
def test_other_checkpoints_and_earlier_looks_are_said(tmp_path, capsys):
    for step, k in ((0, 4), (10, 4), (20, 4)):
        save(tmp_path / "run" / f"step-{step}", graded(sample(30, k, 0.5, step), step=step))

    def notes(*more):
        run = tmp_path / "run"
        gate.main(
            [
                "compare",
                "--checkpoint",
                f"{run / 'step-20'}",
                "--baseline",
                f"{run / 'step-0'}",
                *more,
                "--output",
                f"{tmp_path / 'out'}",
            ]
        )
        return json.loads((tmp_path / "out" / "comparison.json").read_text())

    first = notes()
    assert any("--candidates 2" in note for note in first["notes"]) and len(first["looks"]) == 1
    assert not any("compared before" in note for note in notes()["notes"])  # the same samples are no other look
    assert notes("--candidates", "2")["alpha"] == 0.025
    for step in (0, 20):
        save(tmp_path / "run" / f"step-{step}", graded(sample(30, 8, 0.5, step), step=step))
    again = notes()
    assert any("× 4" in note and "compared before" in note for note in again["notes"]) and len(again["looks"]) == 2
    capsys.readouterr()


def test_the_best_checkpoint_is_judged_on_the_half_that_did_not_choose_it(tmp_path, command, monkeypatch):
    first_half = np.array([[hash_order.half(f"p{problem:04}") == 0] for problem in range(60)])
    for step, right in ((0, ~first_half), (1, first_half), (2, ~first_half)):
        save(tmp_path / "run" / "graded" / f"step-{step}", graded(right, step=step))
    folder = tmp_path / "run" / "graded"
    status, printed = command(
        "compare", "--checkpoint", folder / "step-2", "--baseline", folder / "step-0", "--choose-on-half"
    )
    assert "step-1 is the best of 2 checkpoints" in printed  # by luck: on the other half it solves nothing
    assert status == 1 and f"{int((~first_half).sum())} × 1" in printed
    with monkeypatch.context() as patch:  # a benchmark of which some problems are missing
        patch.setattr(graded_checkpoint, "published_sizes", lambda: {"questions": 61})
        status, printed = command(
            "compare", "--checkpoint", folder / "step-2", "--baseline", folder / "step-0", "--choose-on-half"
        )
        assert status == 2 and "61" in printed
    status, printed = command(
        "compare", "--checkpoint", save(tmp_path / "alone", graded(first_half)), "--baseline", folder / "step-0",
        "--choose-on-half",
    )  # fmt: skip
    assert status == 3 and printed_code(printed) == "nothing-to-choose"


@pytest.mark.slow
def test_stored_samples_may_be_looked_at_again_and_again(tmp_path, command):
    sides = [
        save(tmp_path / name, graded(sample(200, 8, p, i))) for i, (name, p) in enumerate((("a", 0.3), ("b", 0.5)))
    ]
    arguments = ("compare", "--checkpoint", sides[1], "--baseline", sides[0], "--output", tmp_path / "out")
    status, printed = command(*arguments, "--looks", "8")
    stored = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert status == 0 and stored["always_valid"] and stored["verdict"] == "better"
    assert "looks after 1, 2, 4, 8 completions" in printed
    assert command(*arguments, "--looks", "8", "--alpha", "0.0000001")[0] == 0
    for options in (("--posterior",), ("--problems", "same"), ("--ties", "first")):
        status, printed = command(*arguments, "--looks", "8", *options)
        assert status == 3 and printed_code(printed) == "needless-option"


@pytest.mark.slow
def test_questions_of_a_pair_beside_the_test(tmp_path, command):
    for name, seed, shift in (("a", 0, 0.0), ("b", 1, 0.1)):
        save(tmp_path / name, *(graded(sample(n, 4, 0.4 + shift, seed), b) for n, b in ((40, "easy"), (300, "hard"))))
    arguments = ("compare", "--checkpoint", tmp_path / "b", "--baseline", tmp_path / "a", "--output", tmp_path / "out")
    printed = command(*arguments, "--posterior")[1]
    assert "pooled over all 340 problems" in printed and "prior: each model's chance" in printed
    like = json.loads((tmp_path / "out" / "comparison.json").read_text())
    command(*arguments, "--problems", "same")
    same = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert like["posteriors"] and not same["posteriors"] and same["pooled"]["verdict"] == "better"
    for one, other in zip(like["lines"], same["lines"], strict=True):
        assert one["difference"]["value"] == pytest.approx(other["difference"]["value"])
        assert other["detectable"] < 1.1 * one["detectable"] and "same problems" in other["test"]

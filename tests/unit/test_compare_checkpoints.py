"""The gate on graded samples: verdicts, refusals, exit statuses, and what is written."""

import argparse
import json
import math
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis import comparability, hash_order
from analysis.compare_checkpoints import __main__ as gate
from analysis.compare_checkpoints import (
    against_published,
    comparison,
    comparison_output,
    graded_checkpoint,
    paired_comparison,
    published_baselines,
    samples_needed,
)
from contracts import tables
from tests.forked_command import run_module
from tests.user_errors import printed_code, refused

ACCEPTED = ("prompt", "protocol", "grader")


def graded(correct, benchmark="questions", **columns):
    """A table of graded samples from (problems, repeats) of right and wrong."""
    rows = []
    for problem, row in enumerate(correct):
        for repeat, right in enumerate(row):
            rows.append(
                dict.fromkeys(tables.GRADED.names)
                | {"run": "r", "step": 0, "benchmark": benchmark, "problem_id": f"p{problem:04}", "repeat": repeat}
                | {"prompt": f"question {problem}", "completion": f"</script> {problem} \\boxed{{{int(right)}}}"}
                | {"finish_reason": "stop", "completion_tokens": 10 + repeat, "gold": "1", "protocol": "greedy-boxed"}
                | {"verdict": "correct" if right else "wrong", "grader": "math-verify 1", "answer": str(int(right))}
                | columns
            )
    return pd.DataFrame(rows)


def save(folder, *frames):
    folder.mkdir(parents=True, exist_ok=True)
    for frame in frames:
        path = folder / f"{frame['benchmark'].iloc[0]}.parquet"
        tables.write(pa.Table.from_pandas(frame, schema=tables.GRADED, preserve_index=False), tables.GRADED, path)
    return folder


def sample(n, k, accuracy, seed):
    return np.random.default_rng(seed).random((n, k)) < accuracy


def read(tmp_path, name, *frames):
    return graded_checkpoint.read(save(tmp_path / name, *frames), name)


def process(*arguments, module="analysis.compare_checkpoints"):
    done = run_module(module, *arguments)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def command(monkeypatch, capsys):
    """The same in this process, which has the packages imported."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gate", *map(str, arguments)])
        capsys.readouterr()
        try:
            status = gate.main()
        except SystemExit as end:
            status = end.code
        return status, "".join(capsys.readouterr())

    return run


@pytest.mark.slow
def test_the_four_verdicts(tmp_path):
    low, high = sample(200, 4, 0.3, 0), sample(200, 4, 0.6, 1)
    one, two = read(tmp_path, "low", graded(low)), read(tmp_path, "high", graded(high))
    other = read(tmp_path, "other", graded(high, prompt="another"))
    results = [paired_comparison.compare(*pair) for pair in ((two, one), (one, two), (one, one), (other, one))]
    assert [result.verdict for result in results] == ["better", "worse", "cannot tell", "not comparable"]
    assert [result.exit_status for result in results] == [0, 1, 0, 2]
    assert results[2].lines[0].difference.value == 0.0 and results[2].lines[0].p_adjusted == 1.0
    assert results[0].lines[0].difference.value == pytest.approx(high.mean() - low.mean())
    assert len(results[0].lines) == 1  # one benchmark has no mean of its own


@pytest.mark.slow
def test_a_mean_line_joins_the_family_of_several_benchmarks(tmp_path):
    frames = [[graded(sample(50, 2, 0.5, seed + s), b) for s, b in enumerate(("easy", "hard"))] for seed in (0, 9)]
    result = paired_comparison.compare(*(read(tmp_path, str(i), *side) for i, side in enumerate(frames)))
    assert [line.benchmark for line in result.lines] == ["easy", "hard", comparison.ALL]
    values = [line.difference.value for line in result.lines]
    assert values[2] == pytest.approx(np.mean(values[:2]))
    assert all(line.p_adjusted >= line.p_value for line in result.lines)


def test_one_greedy_sample_is_the_exact_mcnemar_test(tmp_path):
    first, second = np.zeros((40, 1), bool), np.zeros((40, 1), bool)
    second[:7], first[7] = True, True
    line = paired_comparison.compare(read(tmp_path, "b", graded(second)), read(tmp_path, "a", graded(first))).lines[0]
    assert line.test == "exact McNemar" and (line.gained, line.lost) == (7, 1)
    assert line.p_value == pytest.approx(2 * (1 + 8) / 2**8)  # 1 or fewer of 8, two-sided


@pytest.mark.slow
def test_a_margin_forgives_a_loss_below_it(tmp_path):
    first = np.ones((400, 1), bool)
    second = first.copy()
    second[:12] = False  # 3 points
    pair = read(tmp_path, "b", graded(second)), read(tmp_path, "a", graded(first))
    assert paired_comparison.compare(*pair).verdict == "worse"
    forgiven = paired_comparison.compare(*pair, margin=0.05)
    assert forgiven.verdict == "cannot tell" and forgiven.lines[0].margin_excluded
    assert "5 points" in comparison_output.verdict_sentence(forgiven)
    assert "points" not in comparison_output.verdict_sentence(paired_comparison.compare(*pair))
    assert paired_comparison.compare(*pair, margin=0.001).verdict == "worse"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"grader": "strict"}, "different grader: math-verify 1 and strict"),
        ({"protocol": "demo"}, "different protocol: greedy-boxed and demo"),
        ({"gold": "2"}, "different gold answers on 20 problems"),
        ({"prompt": "x"}, "different prompts on 20 problems"),
    ],
)
def test_what_differs_is_named(tmp_path, change, reason):
    right = sample(20, 2, 0.5, 0)
    one, two = read(tmp_path, "one", graded(right)), read(tmp_path, "two", graded(right, **change))
    assert paired_comparison.compare(two, one).lines[0].reasons == (reason,)
    accepted = set(change) & set(comparability.ACCEPTABLE)
    assert paired_comparison.compare(two, one, accepted=accepted).verdict == (
        "cannot tell" if accepted else "not comparable"
    )


def test_data_hash_and_decoding_are_compared_where_they_are_recorded(tmp_path):
    checkpoints = []
    for name, task, heat in (("one", "aa", 0.0), ("two", "bb", 0.6)):
        folder = save(tmp_path / name / "graded" / "step-0", graded(sample(20, 2, 0.5, 0)))
        samples = tmp_path / name / "samples" / "step-0"
        samples.mkdir(parents=True)
        record = {"task_sha256": task, "extraction": "none"}
        (folder / "questions.parquet.provenance.json").write_text(json.dumps(record))
        (samples / "questions.parquet.provenance.json").write_text(json.dumps({"protocol": {"temperature": heat}}))
        checkpoints.append(graded_checkpoint.read(folder))
    assert graded_checkpoint.obstacles(checkpoints[1], checkpoints[0], "questions") == [
        "different protocol settings: temperature 0.0 and 0.6",
        "different benchmark data",
    ]


def test_other_problems_and_incomplete_samples_are_not_comparable(tmp_path):
    whole = graded(sample(20, 2, 0.5, 0))
    one, fewer = read(tmp_path, "one", whole), read(tmp_path, "fewer", whole[whole["problem_id"] != "p0003"])
    hole = read(tmp_path, "hole", whole.drop(index=5))
    reasons = paired_comparison.compare(fewer, one).lines[0].reasons
    assert reasons == ("different problems: the baseline has 20, the checkpoint 19, and 19 are on both sides",)
    result = paired_comparison.compare(hole, one)
    assert result.exit_status == 2 and "incomplete samples" in result.lines[0].reasons[0]
    assert "p0002 repeat 1" in result.lines[0].reasons[0]


def test_a_published_figure_is_never_paired(tmp_path):
    row = published_baselines.find("sober/Qwen2.5-Math-7B")
    published = row.scores["math500"].accuracy
    verdicts = []
    for accuracy in (published, published + 0.12, published - 0.12, published + 0.01):
        right = np.arange(500)[:, None] < round(500 * accuracy)
        side = read(tmp_path, f"{accuracy}", graded(np.repeat(right, 2, axis=1), "math500"))
        result = against_published.compare(side, row, accepted=ACCEPTED)
        assert not result.paired and "unpaired" in result.lines[0].test
        assert any("unpaired" in note for note in result.notes)
        verdicts.append(result.verdict)
    assert verdicts == ["cannot tell", "better", "worse", "cannot tell"]
    short = read(tmp_path, "short", graded(sample(30, 1, 0.5, 0), "math500"))
    result = against_published.compare(short, row, accepted=(*ACCEPTED, "subset"))
    assert result.lines[0].reasons == ("different problems: 30 here, 500 at the source",)


def test_regressions_are_found_where_the_score_is_the_same(tmp_path):
    right = sample(100, 2, 0.5, 0)
    longer = graded(right)
    longer["completion_tokens"] += np.random.default_rng(0).integers(1, 9, len(longer))
    longer.loc[longer["verdict"] == "wrong", "finish_reason"] = "length"
    result = paired_comparison.compare(read(tmp_path, "longer", longer), read(tmp_path, "base", graded(right)))
    changes = {change.measure: change.change for change in result.regressions}
    assert result.verdict == "cannot tell"
    assert changes["truncated"] == changes["completion length"] == "rose"
    assert changes["no answer or format error"] == "cannot tell"


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
def test_the_command_ends_with_3_where_it_cannot_compare(command, low_and_high):
    low, high = low_and_high
    status, printed = command("compare", "--checkpoint", high, "--baseline", "sober/Qwen2.5Math-7B")
    assert status == 3 and "sober/Qwen2.5-Math-7B" in printed and "Traceback" not in printed
    assert command("compare", "--checkpoint", high)[0] == 3
    assert command("compare", "--checkpoint", high, "--baseline", low, "--margin", "-1")[0] == 3


def test_flips_show_a_lost_and_a_won_problem_with_their_completions(tmp_path):
    first, second = np.zeros((6, 2), bool), np.zeros((6, 2), bool)
    first[0], second[1] = True, [True, False]
    one, two = read(tmp_path, "one", graded(first)), read(tmp_path, "two", graded(second))
    lost, won = comparison_output.changed_problems(two, one, "questions")
    assert (lost.problem_id, lost.before, lost.after, lost.change) == ("p0000", "2 of 2", "0 of 2", -1.0)
    assert (won.problem_id, won.before, won.after) == ("p0001", "0 of 2", "1 of 2")
    assert won.first["verdict"] == "wrong" and won.second["verdict"] == "correct"


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

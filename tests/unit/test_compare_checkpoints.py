"""The gate on graded samples: verdicts, refusals, tests and regressions."""

import json

import numpy as np
import pytest

from analysis import comparability
from analysis.compare_checkpoints import (
    against_published,
    comparison,
    comparison_output,
    graded_checkpoint,
    paired_comparison,
    published_baselines,
)
from tests.unit.graded_samples import ACCEPTED, graded, read, sample, save


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


def test_flips_show_a_lost_and_a_won_problem_with_their_completions(tmp_path):
    first, second = np.zeros((6, 2), bool), np.zeros((6, 2), bool)
    first[0], second[1] = True, [True, False]
    one, two = read(tmp_path, "one", graded(first)), read(tmp_path, "two", graded(second))
    lost, won = comparison_output.changed_problems(two, one, "questions")
    assert (lost.problem_id, lost.before, lost.after, lost.change) == ("p0000", "2 of 2", "0 of 2", -1.0)
    assert (won.problem_id, won.before, won.after) == ("p0001", "0 of 2", "1 of 2")
    assert won.first["verdict"] == "wrong" and won.second["verdict"] == "correct"

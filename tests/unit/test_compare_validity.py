"""What the gate promises where it is hard to keep: unequal repeats, few changes, ungradable answers, mixed tables."""

import numpy as np
import pytest
from scipy import stats

from analysis.compare_checkpoints import (
    against_published,
    comparison,
    graded_checkpoint,
    paired_answers,
    paired_comparison,
    pass_at_k_difference,
    published_baselines,
)
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from eval import statistics
from eval.statistics import mean_bounds, significance, smallest_difference
from tests.unit.graded_samples import ACCEPTED, graded, process, read, sample, save


def none(correct):
    return np.zeros_like(correct)


def test_unequal_repeats_are_thinned_to_the_smaller_number_by_a_recorded_draw(tmp_path):
    many, one = sample(30, 16, 0.5, 0), sample(30, 1, 0.5, 1)
    pair = read(tmp_path, "many", graded(many)), read(tmp_path, "one", graded(one))
    result = paired_comparison.compare(*pair)
    line = result.lines[0]
    assert line.repeats == (1, 1) and line.available == (1, 16) and line.test == "exact McNemar"
    assert any("16 of the checkpoint" in note for note in result.notes)
    assert paired_comparison.compare(*pair) == result
    shuffled = graded(many).sample(frac=1, random_state=0)
    assert paired_comparison.compare(read(tmp_path, "shuffled", shuffled), pair[1]).lines == result.lines


@pytest.mark.slow
def test_unequal_repeats_give_no_false_verdicts_at_three_percent():
    random, thinned, whole = np.random.default_rng(5), [], []
    for _ in range(40):
        first, second = (random.random((30, k)) < 0.03 for k in (1, 32))
        pair = graded_checkpoint.same_repeats(graded(first), graded(second))
        thinned.append(paired_answers.p_value([PairedAnswers.read(pair)], 0.0) <= 0.05)
        whole.append(significance.permutation(second.sum(axis=1) - 32 * first.sum(axis=1)) <= 0.05)
    assert np.mean(thinned) <= 0.05
    assert np.mean(whole) > 0.15  # what thinning is for: nothing differs


@pytest.mark.parametrize(("lost", "n"), [(0, 30), (3, 200), (12, 400)])
def test_a_bound_on_losses_alone_is_the_exact_binomial_test(lost, n):
    differences = -(np.arange(n) < lost).astype(float)
    expected = stats.binomtest(lost, n, 0.05, alternative="less").pvalue
    assert mean_bounds.exceeds([differences], -0.05) == pytest.approx(expected, abs=0.006)


@pytest.mark.slow
def test_a_checkpoint_against_itself_does_not_exclude_a_small_loss(tmp_path):
    same = read(tmp_path, "same", graded(sample(30, 1, 0.5, 0)))
    result = paired_comparison.compare(same, same, margin=0.01)
    assert result.lines[0].margin_excluded is False
    assert any("the same completions" in note for note in result.notes)
    large = read(tmp_path, "large", graded(sample(1000, 1, 0.5, 0)))
    assert paired_comparison.compare(large, large, margin=0.01).lines[0].margin_excluded


@pytest.mark.parametrize(("repeats", "rate"), [(1, 0.03), (16, 0.03), (4, 0.1)])
def test_a_loss_just_above_the_margin_is_excluded_in_five_percent_at_most(repeats, rate):
    random, margin, hits = np.random.default_rng(repeats), rate - 0.001, []
    for _ in range(300):
        lost = random.random(60) < rate  # whole problems are lost, others stay as they are
        hits.append(mean_bounds.exceeds([-lost.astype(float)], -margin, draws=4000) <= 0.05)
    assert np.mean(hits) <= 0.08  # 5 % and the noise of 300


def test_margins_against_published_figures_are_tested_at_the_corrected_level(tmp_path):
    row = published_baselines.find("sober/Qwen2.5-Math-7B")
    frames = [
        graded(np.arange(n)[:, None] < round(n * row.scores[name].accuracy), name)
        for name, n in (("math500", 500), ("minerva_math", 272), ("aime24", 30))
    ]
    side = read(tmp_path, "side", *frames)

    def excluded(names, margin):
        lines = against_published.compare(side, row, names, margin=margin, accepted=ACCEPTED).lines
        return next(line for line in lines if line.benchmark == "math500").margin_excluded

    # Standard errors of 2.1 points on both sides: 4.97 points are 5 % of one line, 6.4 of three.
    assert [excluded(["math500"], margin) for margin in (0.045, 0.0575)] == [False, True]
    assert [excluded(None, margin) for margin in (0.0575, 0.07)] == [False, True]


def test_a_published_row_of_another_protocol_or_grader_is_not_comparable(tmp_path):
    row = published_baselines.find("sober/Qwen2.5-Math-1.5B-Instruct")
    side = read(tmp_path, "same", graded(np.arange(272)[:, None] < 102, "minerva_math"))
    refused = against_published.compare(side, row)
    assert refused.exit_status == 2 and "different grader: lighteval" in " ".join(refused.lines[0].reasons)
    assert against_published.compare(side, row, accepted=ACCEPTED).verdict == "better"
    assert against_published.compare(side, row, accepted=("grader",)).exit_status == 2


def test_seeds_of_published_rows_answer_both_questions():
    known = published_baselines.load()
    errors = {name: row.scores["aime24"] for name, row in known.items() if name.startswith("sober/")}
    assert {score.repeats for score in errors.values()} == {10}
    same = np.median([score.error_on_same_problems for score in errors.values()])
    assert same == pytest.approx(0.0145, abs=0.0005)
    assert np.median([score.error for score in errors.values()]) == pytest.approx(0.065, abs=0.005)
    assert known["sober/LIMO"].scores["math500"].repeats == 3


def test_on_the_same_problems_smaller_differences_are_found(tmp_path):
    row = published_baselines.find("sober/DeepSeek-R1-Distill-Qwen-1.5B")  # 28.7 on AIME24
    side = read(tmp_path, "side", graded(np.random.default_rng(0).random((30, 64)) < 0.40, "aime24"))
    results = {
        problems: against_published.compare(side, row, accepted=ACCEPTED, problems=problems)
        for problems in comparison.QUESTIONS
    }
    assert [results[q].verdict for q in ("same", "like")] == ["better", "cannot tell"]
    assert any("--problems same" in note for note in results["like"].notes)


def test_what_is_left_out_against_a_published_row_is_said(tmp_path):
    row = published_baselines.find("sober/Qwen2.5-Math-7B")
    side = read(tmp_path, "s", graded(sample(30, 1, 0.2, 0), "aime24"), graded(sample(9, 1, 0.2, 0), "other"))
    notes = " ".join(against_published.compare(side, row).notes)
    assert "left out: other (no score of" in notes and "math500" in notes
    nothing = against_published.compare(read(tmp_path, "o", graded(sample(9, 1, 0.2, 0), "other")), row)
    assert nothing.exit_status == 2 and any("left out: other" in note for note in nothing.notes)


@pytest.mark.slow
def test_ungradable_answers_make_no_verdict_and_are_counted(tmp_path):
    right = sample(400, 2, 0.6, 0)
    base, worse = graded(right), graded(right)
    unclear = np.random.default_rng(1).random(len(worse)) < 0.04
    worse.loc[unclear, "verdict"] = "ungradable"
    pair = read(tmp_path, "worse", worse), read(tmp_path, "base", base)
    result = paired_comparison.compare(*pair)
    line = result.lines[0]
    assert significance.permutation(PairedAnswers.read((base, worse)).counts) < 1e-4  # if they counted as wrong
    assert result.verdict == "cannot tell" and line.ungradable == (0, int(unclear.sum()))
    assert line.bounds[0] == pytest.approx(line.difference.value) and line.bounds[1] > 0
    assert any("ungradable" in note for note in result.notes)
    assert paired_comparison.compare(*pair, ungradable=0.01).exit_status == 2
    assert paired_comparison.compare(*pair, ungradable=0.01).lines[0].reasons


@pytest.mark.parametrize(("n", "k", "accuracy"), [(30, 32, 0.03), (30, 32, 0.97), (100, 16, 0.03), (300, 4, 0.5)])
def test_the_interval_covers_rare_right_answers(n, k, accuracy):
    random, hits = np.random.default_rng(n + k), []
    for _ in range(400):
        chance = random.beta(0.67 * accuracy, 0.67 * (1 - accuracy), (n, 1))  # intraclass correlation 0.6
        estimate = statistics.avg_at_k(random.random((n, k)) < chance)
        hits.append(estimate.low <= accuracy <= estimate.high)
    assert np.mean(hits) >= 0.92  # 93 % less the noise of 400 draws


@pytest.mark.parametrize("n", [30, 100, 1319])
def test_the_paired_interval_covers_sparse_gains(n):
    random, hits = np.random.default_rng(n), []
    for _ in range(500):
        before = random.random(n) < 0.4
        after = before | (random.random(n) < 0.03)  # repeats agree: the problem is solved always or never
        pair = [np.repeat(side[:, None], 16, axis=1) for side in (before, after)]
        estimate = statistics.paired_difference(*pair)
        hits.append(estimate.low <= 0.6 * 0.03 <= estimate.high)
    assert np.mean(hits) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "k"), [(100, 4), *(pytest.param(*one, marks=pytest.mark.long) for one in ((100, 1), (300, 2)))]
)
def test_the_detectable_difference_is_found_in_80_percent(n, k):
    """Stated from data without a difference; then data with just that difference are drawn and tested."""
    random, hits = np.random.default_rng(n + k), []
    for _ in range(8):
        chance = random.beta(0.5, 0.5, (n, 1))
        stated = smallest_difference.smallest_detectable([tuple(random.random((n, k)) < chance for _ in "ab")], 0.05)
        for _ in range(40):
            chance = random.beta(0.5, 0.5, n)
            better = chance + 2 * stated * (1 - chance)
            counts = random.binomial(k, better) - random.binomial(k, chance)
            hits.append(significance.permutation(counts) <= 0.05)
    assert np.mean(hits) == pytest.approx(0.8, abs=0.065)  # 2 points and the noise of 320 draws


def test_the_detectable_difference_of_checkpoints_that_agree_follows_from_the_number_of_problems():
    same = sample(30, 1, 0.5, 0)
    assert 0.2 < smallest_difference.smallest_detectable([(same, same)]) < 0.35  # 6 changed of 30 are needed
    assert smallest_difference.smallest_detectable([(same[:5], same[:5])]) is None  # 5 can never be significant


def test_mixed_runs_and_missing_problems_are_refused(tmp_path):
    right = sample(30, 1, 0.5, 0)
    mixed = graded(right)
    mixed.loc[:9, "run"] = "another"
    whole = read(tmp_path, "whole", graded(right))
    assert (
        "several runs: another, r"
        in paired_comparison.compare(read(tmp_path, "mixed", mixed), whole).lines[0].reasons[0]
    )
    part = [read(tmp_path, f"part{i}", graded(right[:10], "aime24")) for i in range(2)]
    assert "10 of the 30 problems" in paired_comparison.compare(*part).lines[0].reasons[0]
    assert paired_comparison.compare(*part, accepted=["subset"]).verdict == "cannot tell"


@pytest.mark.slow
def test_broken_inputs_end_with_a_sentence(tmp_path):
    frame = graded(sample(6, 1, 0.5, 0))
    frame.loc[2, "problem_id"] = None
    nameless = save(tmp_path / "nameless", frame)
    good = save(tmp_path / "runs" / "step-latest", graded(sample(6, 1, 0.5, 0)))
    damaged = save(tmp_path / "damaged", graded(sample(6, 1, 0.5, 0)))
    (damaged / "questions.parquet.provenance.json").write_text('{"samples": 3, "protocol": []}')
    blocked = tmp_path / "file"
    blocked.touch()
    for arguments, status, said in (
        ((nameless, good), 2, "problem_id"),
        ((tmp_path / "runs", good), 3, "step-latest"),
        ((damaged, good), 0, "cannot tell"),
        ((good, good, "--output", blocked / "below"), 3, "cannot be used"),
    ):
        one, two, *more = arguments
        exit_status, printed = process("compare", "--checkpoint", one, "--baseline", two, *more)
        assert (exit_status, said in printed, "Traceback" in printed) == (status, True, False), printed


def test_pass_at_k_has_a_curve_with_intervals_and_paired_differences(tmp_path):
    first, second = sample(50, 6, 0.3, 0), sample(50, 6, 0.5, 1)
    tables = tuple(graded(side) for side in (first, second))
    measures = {line.measure: line for line in pass_at_k_difference.differences(tables)}
    assert list(measures) == ["pass@1", "pass@2", "pass@4", "pass@6", "maj@6 (ties: chance)"]
    assert measures["pass@1"].difference == statistics.paired_difference(first, second)
    assert measures["pass@6"].baseline.value == first.any(axis=1).mean()
    for line in measures.values():
        assert line.difference.value == pytest.approx(line.checkpoint.value - line.baseline.value)
        assert line.difference.low < line.difference.value < line.difference.high
        assert line.baseline.low < line.baseline.value < line.baseline.high
    result = paired_comparison.compare(read(tmp_path, "b", tables[1]), read(tmp_path, "a", tables[0]))
    assert result.lines[0].passes == tuple(measures.values())
    assert pass_at_k_difference.differences(tuple(graded(side[:, :1]) for side in (first, second))) == ()

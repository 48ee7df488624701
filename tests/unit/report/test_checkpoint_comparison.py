"""Differences and headlines on tables small enough to compute by hand."""

from dataclasses import replace

import pytest
from report_runs import graded_row, log_row, make_run

from analysis.measures.diagnostics import diagnose
from analysis.report.report_data import RunFacts
from analysis.report.summary import main_result, summary
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference
from analysis.statistics.accuracy_rows import run_rows
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.training_seeds import by_recipe
from eval.statistics import Estimate

# Four problems, two repeats. Accuracy per problem: base 0, 0, 1/2, 1/2; after 1, 1/2, 1, 1/2.
BASE = {"a": "ww", "b": "ww", "c": "cw", "d": "wc"}
AFTER = {"a": "cc", "b": "cw", "c": "cc", "d": "cw"}
VERDICTS = {"c": "correct", "w": "wrong", "n": "no_answer", "t": "truncated", "u": "ungradable"}


def rows(step: int, outcome: dict[str, str], **more: object) -> list[dict[str, object]]:
    return [
        graded_row(step, problem, repeat, VERDICTS[letter], **more)
        for problem, letters in outcome.items()
        for repeat, letter in enumerate(letters)
    ]


def test_paired_difference_by_hand() -> None:
    run = make_run(rows(0, BASE) + rows(10, AFTER))
    gap = checkpoint_difference.difference(run, 10, "sums")
    # differences 1, 1/2, 1/2, 0: mean 1/2, variance 1/6, standard error 1/sqrt(24) = 0.2041, t(3, .975) = 3.1824
    assert gap.value == pytest.approx(0.5)
    assert gap.low == pytest.approx(0.5 - 3.182446 * 0.204124, abs=1e-5)
    assert gap.high == pytest.approx(min(1.0, 0.5 + 3.182446 * 0.204124), abs=1e-5)
    assert gap.change == "cannot tell"


def test_order_of_rows_does_not_matter() -> None:
    forwards = make_run(rows(0, BASE) + rows(10, AFTER))
    backwards = make_run(rows(0, BASE) + rows(10, AFTER)[::-1])
    assert checkpoint_difference.difference(forwards, 10, "sums") == checkpoint_difference.difference(
        backwards, 10, "sums"
    )


def test_the_difference_is_that_of_the_scores_even_with_ungradable_completions() -> None:
    run = make_run(rows(0, BASE | {"b": "uw"}) + rows(10, AFTER | {"d": "uc"}))
    scores = (
        checkpoint_difference.accuracy(run, 10, "sums").value - checkpoint_difference.accuracy(run, 0, "sums").value
    )
    assert checkpoint_difference.difference(run, 10, "sums").value == pytest.approx(scores)


def test_average_adds_intervals_in_quadrature_on_each_side() -> None:
    mean = mean_of([Estimate(0.5, 0.2, 0.6), Estimate(0.9, 0.5, 0.9)])
    # below: sqrt(.3² + .4²) / 2 = .25; above: sqrt(.1² + 0²) / 2 = .05
    assert (mean.value, mean.low, mean.high) == pytest.approx((0.7, 0.45, 0.75))


def test_average_of_one_is_that_one() -> None:
    only = Estimate(0.4, 0.3, 0.55)
    mean = mean_of([only])
    assert (mean.value, mean.low, mean.high) == pytest.approx((only.value, only.low, only.high))


@pytest.mark.parametrize(
    ("low", "high", "change"),
    [(0.01, 0.2, "rose"), (-0.2, -0.01, "fell"), (-0.1, 0.2, "cannot tell"), (0.0, 0.2, "cannot tell")],
)
def test_change(low: float, high: float, change: str) -> None:
    assert Estimate((low + high) / 2, low, high).change == change


def many(letters: str, count: int = 20) -> dict[str, str]:
    return {f"p{i}": letters[i % len(letters)] * 2 for i in range(count)}


def sentence(before: dict[str, str], after: dict[str, str]) -> tuple[str, str]:
    run = make_run(rows(0, before) + rows(10, after))
    result = main_result(run, run_rows(run))
    return result.change, result.sentence.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("change", "before", "after", "shares"),
    [("rose", "w", "cw", ("0.0", "50.0")), ("fell", "cw", "w", ("50.0", "0.0"))],
)
def test_headline(change: str, before: str, after: str, shares: tuple[str, str]) -> None:
    # 20 problems; the difference is 1 for half of them and 0 for the rest: .5 ± 2.093 × sqrt(5/19 / 20) = .5 ± .2401
    assert sentence(many(before), many(after)) == (
        change,
        f"Held-out accuracy of this checkpoint {change} by 50.0 points (95 % interval 26.0 to 74.0), "
        f"from {shares[0]} % for the base model to {shares[1]} % at step 10, on sums.",
    )


def test_headline_cannot_tell() -> None:
    # one problem of 20 won, and a third of a problem more won and lost: .05 ± 2.093 × √((.95 + 2/3) / 19.667 / 20.667)
    change, text = sentence(many("w"), many("w") | {"p0": "cc"})
    assert change == "cannot tell"
    assert text.startswith(
        "Whether held-out accuracy of this checkpoint changed cannot be told: the difference is +5.0 points "
        "(95 % interval −8.2 to +18.2)"
    )


def test_headline_of_a_run_with_only_its_base_model() -> None:
    run = make_run(rows(0, BASE))
    result = main_result(run, run_rows(run))
    assert result.change == "nothing to compare"
    assert result.sentence.startswith("Only the base model was evaluated: 25.0")


def test_headline_over_two_benchmarks_names_both() -> None:
    other = {"benchmark": "words"}
    run = make_run(
        rows(0, many("w")) + rows(10, many("cw")) + rows(0, many("cw"), **other) + rows(10, many("cw"), **other)
    )
    result = main_result(run, run_rows(run))
    assert result.change == "rose"
    assert "rose by 25.0 points" in result.sentence
    assert result.details[0] == "▲ sums +50.0 [+26.0, +74.0]"
    assert result.details[1].startswith("≈ words 0.0 [")


def opening(*runs: RunResults) -> list[str]:
    warnings = [x for run in runs for x in diagnose(run)]
    rows_of, facts = {run.name: run_rows(run) for run in runs}, {run.name: RunFacts("trl") for run in runs}
    return [
        text.replace("\N{NO-BREAK SPACE}", " ") for text in summary(by_recipe(runs), rows_of, facts, warnings, "demo")
    ]


def test_the_report_opens_with_three_sentences_of_numbers() -> None:
    run = make_run(rows(0, many("w")) + rows(10, many("cw") | {"p1": "tw"}))
    other = replace(run, name="another/run/seed-0")
    assert opening(run, other) == [
        "2 runs of another and recipe through trl at demo scale: 4 checkpoints with 160 graded completions on 20 "
        "problems of sums.",
        "From base model to last checkpoint, held-out accuracy rose beyond noise in 2 of 2 runs; the largest "
        "change is +50.0 points (95 % interval +26.0 to +74.0) in recipe/run/seed-0. "
        "Each run has one training seed, so this is about its checkpoint, not about its recipe.",
        "No run shows signs of collapse, the highest truncation of a score is 2.5 % (recipe/run/seed-0, step 10, "
        "sums), and there are no warnings.",
    ]


def test_the_opening_of_one_run_names_it_once() -> None:
    changed, trouble = opening(make_run(rows(0, many("w")) + rows(10, many("cw") | {"p1": "tw"})))[1:]
    assert changed == (
        "From base model to last checkpoint, held-out accuracy changed by +50.0 points (95 % interval +26.0 to +74.0), "
        "which is beyond noise. The run has one training seed, so this is about its checkpoint, not about its recipe."
    )
    assert "(step 10, sums)" in trouble


def test_the_opening_of_single_checkpoints_says_that_there_is_nothing_to_compare_with() -> None:
    run = make_run(rows(0, many("cw")))
    assert opening(run)[1].endswith("in recipe/run/seed-0, and there is no second checkpoint to compare it with.")
    two = opening(run, replace(run, name="another/run/seed-0"))[1]
    assert two.endswith("in recipe/run/seed-0, and no run has a second checkpoint to compare it with.")


def test_the_opening_says_that_a_log_may_hide_a_collapse() -> None:
    log = [log_row(step) | {"response_length_mean": None, "truncated_rate": None} for step in range(1, 4)]
    last = opening(make_run(rows(0, many("w")) + rows(3, many("cw")), log))[-1]
    assert last.startswith("No run shows signs of collapse among those that its log can show, ")


def test_the_opening_names_a_run_that_collapsed_with_step_and_evidence() -> None:
    log = [log_row(step, truncated_rate=0.0 if step < 10 else 0.9) for step in range(1, 21)]
    last = opening(make_run(rows(0, many("w")) + rows(20, many("cw")), log))[-1]
    assert last.startswith(
        "1 run shows signs of collapse (recipe/run/seed-0: length at the cap at step 12: 54% of the completions are "
        "truncated at the limit, after 0% at best"
    )


def test_the_opening_names_a_run_whose_held_out_completions_no_longer_end() -> None:
    log = [log_row(step) for step in range(1, 21)]
    last = opening(make_run(rows(0, many("cw")) + rows(20, many("t")), log))[-1]
    assert last.startswith(
        "1 run shows signs of collapse (recipe/run/seed-0: length at the cap on held-out sums at step 20: 100% of the "
        "completions are truncated at the limit, after 0% at best), "
    )

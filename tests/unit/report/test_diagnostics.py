"""Every warning appears with its evidence where there is trouble, and none where there is not."""

from dataclasses import replace

import pytest
from report_runs import graded_row, log_row, make_run

from analysis.measures.diagnostics import diagnose, steps_text
from analysis.results import RunResults

FINE = [graded_row(step, f"p{i}", 0, "correct") for step in (0, 10) for i in range(4)]


def texts(run: RunResults) -> list[str]:
    return [f"{item.topic}: {item.text}".replace("\N{NO-BREAK SPACE}", " ") for item in diagnose(run)]


def with_log(**columns: list[object]) -> RunResults:
    steps = len(next(iter(columns.values())))
    rows = [log_row(step + 1, **{name: values[step] for name, values in columns.items()}) for step in range(steps)]
    return make_run(FINE, rows)


def test_nothing_to_warn_of() -> None:
    assert texts(make_run(FINE)) == []


@pytest.mark.parametrize(
    ("run", "warning"),
    [
        (
            with_log(reward_mean=[0.5] * 10),
            "flat reward: the mean reward is 0.5 at all 10 steps",
        ),
        (with_log(reward_mean=[None] * 10), "no reward: the training log reports no reward"),
        (
            with_log(reward_std=[0.0, *[0.5] * 9]),
            "no signal: all rewards of each group are equal at step 1 of 10: nothing can be learned there",
        ),
        (
            with_log(zero_signal_rate=[None] * 10, truncated_rate=[None] * 10),
            "log: the training log does not report truncated_rate, zero_signal_rate: trouble there would not be "
            "detected",
        ),
        (with_log(accuracy=[None, None, *[0.5] * 8]), "log: the training log has no accuracy at steps 1, 2 of 10"),
        (
            with_log(zero_signal_rate=[0.2, 1.0, 1.0, *[0.9] * 7]),
            "no signal: all rewards of each group are equal at steps 2, 3 of 10: nothing can be learned there",
        ),
        (
            with_log(truncated_rate=[0.05, 0.06, 0.5, *[0.0] * 7]),
            "truncation in training: over 5 % of the completions are truncated at steps 2, 3 of 10; "
            "at most 50 %, at step 3",
        ),
        (
            with_log(format_error_rate=[0.0] * 5 + [0.8] * 5),
            "collapse: format errors at step 10: 80% of the completions break the format, after 0% at best",
        ),
        (
            with_log(sampler_mismatch=[0.001] * 5 + [0.2] * 5),
            "sampler mismatch: step 10: the sampler's probabilities are 0.2 from the trainer's, after 0.001 at best",
        ),
        (
            make_run(FINE, [log_row(step) for step in (1, 2, 3, 8, 9, 10)]),
            "log: gaps in the log of stage 1: 1, the widest of 5 steps",
        ),
        (make_run(FINE, [log_row(step) for step in (*range(1, 11), 4)]), "log: stage 1 logs step 4 more than once"),
        (
            make_run(FINE, [log_row(step) for step in range(1, 31)]),
            "checkpoints: training reached step 30, but the last evaluated checkpoint is step 10",
        ),
        (make_run(FINE[:4]), "checkpoints: only the base model was evaluated: there is nothing to compare it with"),
        (
            replace(make_run(FINE), not_finite={"grad_norm": [7]}),
            "not a number: grad_norm is NaN or infinite at step 7 of the training log",
        ),
        (
            replace(make_run(FINE), provenance={}),
            "provenance: there is no provenance record: how these numbers were made is unknown",
        ),
    ],
)
def test_training_trouble(run: RunResults, warning: str) -> None:
    assert warning in texts(run)


def test_heldout_truncation_names_the_checkpoints() -> None:
    run = make_run([*FINE, *[graded_row(20, f"p{i}", 0, "truncated" if i == 0 else "wrong") for i in range(4)]])
    assert texts(run) == [
        "truncation: held-out completions were truncated at the length limit: 25 % on sums at step 20"
    ]


def answered(step: int, answers: str, golds: str) -> list[dict[str, object]]:
    """Rows of one checkpoint; an answer and a gold is a letter each, and a blank one is none."""
    return [
        graded_row(
            step, f"p{i}", 0, "correct" if answer == gold else "wrong" if answer.strip() else "format_error",
            answer=answer.strip() or None, gold=gold,
        )
        for i, (answer, gold) in enumerate(zip(answers, golds, strict=True))
    ]  # fmt: skip


def test_a_checkpoint_that_writes_one_answer_is_named() -> None:
    golds = "YYYYYYYYYYYYNNNNNNNN"
    run = make_run([*answered(0, "YN" * 10, golds), *answered(10, "Y" * 20, golds)])
    (text,) = texts(run)
    assert text == (
        "one answer: Y is 100 % of the answers on sums at step 10, and right in 60 %: that needs no look at the "
        "question"
    )


@pytest.mark.parametrize(
    ("answers", "golds"),
    [
        ("Y" * 19, "Y" * 10 + "N" * 9), ("Y" * 20, "Y" * 20), ("Y" * 18 + "NN", "Y" * 10 + "N" * 10),
        (" " * 20, "Y" * 10 + "N" * 10),
    ],
)  # fmt: skip
def test_few_problems_one_gold_and_two_answers_are_no_warning(answers: str, golds: str) -> None:
    run = make_run([*answered(0, "YN" * 10, "Y" * 10 + "N" * 10), *answered(10, answers, golds)])
    assert not [text for text in texts(run) if text.startswith("one answer")]


def test_an_unknown_finish_reason_does_not_count_as_complete() -> None:
    run = make_run([row | {"finish_reason": None} for row in FINE])
    assert texts(run) == ["truncation: truncation on sums is unknown: no finish reasons were recorded"]


def test_ungradable_and_mixed_graders() -> None:
    run = make_run([*FINE[:-1], graded_row(10, "p3", 0, "ungradable", grader="another")])
    assert texts(run) == [
        "grading: completions on sums that could not be graded: 1; those scores are lower bounds",
        "grading: verdicts come from different graders: another, g",
    ]


def test_dirty_and_different_commits() -> None:
    records = {
        "training_log.parquet.provenance.json": {"git_commit": "a" * 40, "git_dirty": True},
        "scores.parquet.provenance.json": {"git_commit": "b" * 40, "git_dirty": False},
    }
    assert texts(replace(make_run(FINE), provenance=records)) == [
        "provenance: 1 of 2 records were made by code with uncommitted changes",
        "provenance: parts were made at different commits: aaaaaaaaaaaa, bbbbbbbbbbbb",
    ]


def test_steps_in_words() -> None:
    assert steps_text([3]) == "step 3"
    assert steps_text([1, 2]) == "steps 1, 2"
    assert steps_text(list(range(10))) == "10 steps (the first: 0, 1, 2, 3, 4)"

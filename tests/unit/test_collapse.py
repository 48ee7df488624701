"""Signs of collapse on simulated logs: each named at its step with its evidence, and none where training is well."""

import math
import random
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from frameworks import collapse
from frameworks.collapse import WINDOW, signs

STEPS = 120


def healthy(seed: int = 0, **change: dict[int, float]) -> list[dict[str, float | int | None]]:
    """A run that learns, with noise; `change` maps a column to its values from given steps on."""
    rng, rows = random.Random(seed), []
    for step in range(1, STEPS + 1):
        progress = 1 - math.exp(-3 * step / STEPS)
        accuracy = 0.1 + 0.6 * progress + rng.gauss(0, 0.04)
        row: dict[str, float | int | None] = {
            "step": step, "reward_mean": accuracy, "reward_std": 0.4, "accuracy": accuracy,
            "format_error_rate": max(0.0, 0.5 * (1 - progress) + rng.gauss(0, 0.02)),
            "truncated_rate": max(0.0, 0.3 * (1 - progress) + rng.gauss(0, 0.02)),
            "response_length_mean": 400 + 200 * progress + rng.gauss(0, 20), "kl": 0.05 * progress,
            "entropy": 0.6 - 0.3 * progress, "zero_signal_rate": 0.3, "learning_rate": 1e-6, "grad_norm": None,
        }  # fmt: skip
        for column, steps in change.items():
            begun = [value for start, value in steps.items() if step >= start]
            row[column] = begun[-1] if begun else row[column]
        rows.append(row)
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_run_has_no_signs(seed: int) -> None:
    assert signs(healthy(seed)) == []


@pytest.mark.parametrize(
    ("change", "kind", "evidence"),
    [
        ({"truncated_rate": {80: 0.9}}, "length at the cap", "of the completions are truncated at the limit"),
        ({"format_error_rate": {80: 0.7}}, "format errors", "of the completions break the format"),
        ({"zero_signal_rate": {80: 1.0}}, "no signal", "% of the groups all rewards are equal"),
        ({"kl": {80: 30.0}}, "KL", "the KL divergence from the reference is "),
        ({"entropy": {80: 6.0}}, "entropy", "the entropy is"),
        ({"sampler_mismatch": {1: 0.002, 80: 0.4}}, "sampler mismatch", "the sampler's probabilities are"),
        ({"sampler_mismatch": {1: -0.002, 80: -0.4}}, "sampler mismatch", "the sampler's probabilities are"),
        ({"accuracy": {80: 0.0}}, "accuracy lost", "of the answers are right"),
        ({"reward_mean": {80: math.nan}}, "not a number", "reward_mean is NaN or infinite"),
    ],
)
def test_each_sign_is_named_within_a_window_of_its_step(change, kind: str, evidence: str) -> None:
    of_kind = [sign for sign in signs(healthy(**change)) if sign.kind == kind]
    assert len(of_kind) == 1
    assert 80 <= of_kind[0].step < 80 + WINDOW
    assert evidence in of_kind[0].evidence
    assert of_kind[0].grave == (kind not in ("no signal", "sampler mismatch"))


def test_logic_rls_collapse_is_seen_as_it_starts() -> None:
    """As in the report's figure 3.2.3(2): from one step on, length runs to the cap and format errors soar."""
    change = {"truncated_rate": {90: 1.0}, "format_error_rate": {90: 0.98}, "accuracy": {90: 0.0}}
    step_by_kind = {sign.kind: sign.step for sign in signs(healthy(**change))}
    assert set(step_by_kind) == {"length at the cap", "format errors", "accuracy lost"}
    assert max(step_by_kind.values()) < 90 + WINDOW


def test_the_demo_run_of_the_collapsing_setting() -> None:
    """Its stage 2, in which the learning rate rises until the model breaks: the answers go first, then the format."""
    log = yaml.safe_load((Path(__file__).parent / "cases" / "collapsing_run.yaml").read_text())
    assert signs(log, cap=216) == [
        collapse.Sign("accuracy lost", 26, "29% of the answers are right, after 72% at best"),
        collapse.Sign("format errors", 28, "38% of the completions break the format, after 10% at best"),
    ]


def test_length_at_the_cap_is_seen_from_the_length_alone_where_truncation_is_not_reported() -> None:
    rows = healthy(response_length_mean={80: 2000.0}, truncated_rate={1: None})
    assert [sign.kind for sign in signs(rows, cap=2048)] == ["length at the cap"]
    assert signs(rows) == []
    assert signs(healthy(truncated_rate={1: None}), cap=2048) == []


def test_the_evidence_is_the_mean_over_a_window_and_the_best_before() -> None:
    rows = [{"step": i, "truncated_rate": 0.0 if i <= 20 else 1.0} for i in range(1, 31)]
    # of steps 19 to 23 three are cut: the first window over one half
    assert signs(rows) == [
        collapse.Sign("length at the cap", 23, "60% of the completions are truncated at the limit, after 0% at best")
    ]


def test_one_bad_step_is_no_sign_and_one_that_comes_back_is_two() -> None:
    assert signs(healthy(truncated_rate={80: 1.0, 81: 0.02})) == []
    back = healthy(format_error_rate={60: 0.9, 75: 0.02, 90: 0.9, 105: 0.02})
    assert [sign.kind for sign in signs(back)] == ["format errors"] * 2


def test_beginning_badly_is_no_collapse() -> None:
    """A base model that never stops and keeps no format, and learns both."""
    assert (
        signs(healthy(truncated_rate={1: 1.0, 30: 0.0}, format_error_rate={1: 1.0, 30: 0.0}, accuracy={1: 0.0})) == []
    )


def test_a_solved_task_has_no_signal_and_no_trouble() -> None:
    assert signs(healthy(zero_signal_rate={80: 1.0}, accuracy={60: 1.0})) == []


values = st.one_of(st.none(), st.floats(), st.integers(-10, 10))
columns = [
    "truncated_rate",
    "format_error_rate",
    "accuracy",
    "kl",
    "entropy",
    "zero_signal_rate",
    "response_length_mean",
]


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(columns, values)), max_size=40))
def test_any_log_is_read_and_step_by_step_gives_the_same(rows) -> None:
    rows = [{"step": number, **row} for number, row in enumerate(rows, start=1)]
    at_once = signs(rows, cap=100)
    watch = collapse.Watch(100)
    assert [sign for row in rows for sign in watch.add(row)] == at_once
    assert {sign.step for sign in at_once if sign.kind == "not a number"} <= {
        row["step"] for row in rows if any(isinstance(v, float) and not math.isfinite(v) for v in row.values())
    }

"""The reference is right by finite differences, and the registry notices differences that come and go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance import cases, document
from conformance.__main__ import matrix_frame, matrix_table
from conformance.compare import (
    TOLERANCE,
    Finding,
    Reference,
    framework_findings,
    known_differences,
    largest_differences,
    unnoticed_errors,
)
from conformance.reference import advantages, evaluate_formula, loss_and_gradient
from conformance.run_frameworks import INDEPENDENT
from contracts.run_file import framework_names
from frameworks.conformance import LEARNING_RATE, WEIGHT_DECAY
from system.errors import ROOT
from system.yaml_files import read_yaml
from tests.user_errors import refused

FORMULAS = cases.all_formulas()
VARIANTS = {
    name: [
        {},
        *(
            entry["variant"]
            for (_, formula), entry in known_differences().items()
            if formula == name and "variant" in entry
        ),
    ]
    for name in FORMULAS
}
# `ratio` stands in the value of these and is held constant in the gradient, as published
HELD = (
    "KL k2, unbiased gradient", "KL k3, unbiased gradient", "CISPO", "CISPO, clipped below", "DPPO, total variation",
    "DPPO, KL", "VESPO",
)  # fmt: skip


def flat(name: str, variant: dict[str, Any], batches: list[cases.Batch]) -> np.ndarray:
    """What a framework that computes a variant would answer."""
    results = [evaluate_formula(FORMULAS[name], batch, variant) for batch in batches]
    return np.concatenate([part.ravel() for result in results for part in result])


@pytest.mark.parametrize("name", [name for name in FORMULAS if name not in HELD])
def test_the_gradient_is_that_of_the_value(name: str) -> None:
    settings = FORMULAS[name]
    batch = cases.make_batch(settings["batches"][0], 4)
    mask = batch["mask"] * (1 - batch["truncated"][:, None])
    if settings["advantage"] == "given":
        advantage = np.broadcast_to(batch["advantages"][:, None], mask.shape)
    else:
        advantage = advantages(settings, batch, {})
    direction = np.random.default_rng(0).normal(size=batch["logits"].shape)
    for variant in VARIANTS[name]:
        _, gradient = loss_and_gradient(settings, batch, mask, advantage, variant)
        values = [
            loss_and_gradient(
                settings, batch | {"logits": batch["logits"] + sign * 1e-5 * direction}, mask, advantage, variant
            )[0]
            for sign in (1, -1)
        ]
        slope = (values[0] - values[1]) / 2e-5
        assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_the_unbiased_gradient_is_that_of_the_kl_on_average(estimator: str) -> None:
    """One token, drawn from the old policy: the mean over the vocabulary is the gradient of the KL itself."""
    rng = np.random.default_rng(0)
    policy, old, base = (np.log(row) for row in rng.dirichlet(np.ones(5), 3))
    settings = FORMULAS["KL k3, unbiased gradient"] | {"kl": estimator, "kl_coefficient": 1.0}
    one = np.ones((1, 1))
    mean = np.zeros(5)
    for token in range(5):
        batch = {
            "kind": "", "logits": policy[None, None], "tokens": np.array([[token]]), "old": old[token] * one,
            "reference": base[token] * one,
        }  # fmt: skip
        mean += np.exp(old[token]) * loss_and_gradient(settings, batch, one, 0 * one, {})[1][0, 0]
    p = np.exp(policy)
    assert mean == pytest.approx(p * (policy - base - (p * (policy - base)).sum()))


def test_every_estimator_and_loss_of_the_releases_is_compared() -> None:
    """bypass_mode is one of the other losses, with the sampler's probabilities."""
    registered = read_yaml(ROOT / "frameworks" / "objectives.yaml")
    assert set(registered["estimators"]) <= {settings["advantage"] for settings in FORMULAS.values()}
    assert set(registered["losses"]) - {"bypass_mode"} == {settings["policy"] for settings in FORMULAS.values()}


def test_padding_order_and_micro_batches_do_not_change_a_step() -> None:
    for name in ("mean over tokens", "mean over completions", "constant length", "GSPO", "entropy", "KL k3 in loss"):
        batch, settings = cases.make_batch("ordinary", 5), FORMULAS[name]
        before = evaluate_formula(settings, batch, {})
        rows = {key: value for key, value in batch.items() if isinstance(value, np.ndarray)}
        turned = evaluate_formula(settings, batch | {key: value[::-1] for key, value in rows.items()}, {})
        assert turned.gradient[::-1] == pytest.approx(before.gradient, abs=1e-12)
        widened = {
            key: np.concatenate([value, 0 * value[:, -1:]], 1) if value.ndim > 1 else value
            for key, value in rows.items()
        }
        wide = evaluate_formula(settings, batch | widened, {})
        assert wide.gradient[:, :-1] == pytest.approx(before.gradient, abs=1e-12) and not wide.gradient[:, -1].any()
        for split in ("micro_batches", "processes"):
            assert evaluate_formula(settings | {split: 2}, batch, {}).gradient == pytest.approx(before.gradient)


def test_a_group_of_equal_rewards_teaches_nothing() -> None:
    batch = cases.make_batch("ordinary", 0) | {"rewards": np.full(8, 0.1)}
    assert not evaluate_formula(FORMULAS["group std"], batch, {}).gradient.any()


def test_every_entry_is_of_a_formula_and_a_framework_and_complete() -> None:
    for (framework, formula), entry in known_differences().items():
        assert framework in {*framework_names(), INDEPENDENT} and formula in FORMULAS, (framework, formula)
        assert set(entry) in ({"formulas", "cannot"}, {"formulas", "what", "variant", "source", "agree"})


@pytest.mark.slow
def test_a_difference_that_appears_grows_or_disappears_is_a_problem() -> None:
    seeds = range(4)
    for (framework, name), entry in known_differences().items():
        if "variant" not in entry:
            continue
        batches = [cases.make_batch(kind, seed) for kind in FORMULAS[name]["batches"] for seed in seeds]
        reference = Reference(FORMULAS, batches, [(name, number) for number in range(len(batches))])
        right, published = flat(name, entry["variant"], batches), flat(name, {}, batches)

        def problem(answer: Any, framework: str = framework, name: str = name, reference: Reference = reference) -> str:
            return framework_findings(framework, {name: answer}, reference)[0].problem

        assert problem(right) == "", (framework, name)
        assert "disappeared" in problem(published), (framework, name)
        assert "closed form" in problem(right + 1e-3 * np.sign(right)), (framework, name)
        assert "cannot be expressed" in problem("it is gone")


def test_a_difference_without_an_entry_is_a_problem() -> None:
    batches = [cases.make_batch("ordinary", 0)]
    reference = Reference(FORMULAS, batches, [("clip", 0)])
    framework = framework_names()[0]
    right = flat("clip", {}, batches)
    assert framework_findings(framework, {"clip": right}, reference)[0].problem == ""
    assert "no entry" in framework_findings(framework, {"clip": right + 1e-5}, reference)[0].problem
    assert "no entry" in framework_findings(framework, {"clip": np.full_like(right, np.nan)}, reference)[0].problem


def steps(gradient: np.ndarray, logits: np.ndarray, epsilon: float = 1e-8) -> np.ndarray:
    return -LEARNING_RATE * (gradient / (np.abs(gradient) + epsilon) + WEIGHT_DECAY * logits)


def test_a_rounding_near_a_gradient_of_zero_is_no_difference_and_another_optimiser_is() -> None:
    """AdamW's first step turns a rounding of 3e-9 in a gradient of 1e-9 into 2e-4; float32 cannot decide there."""
    batch = cases.make_batch("ordinary", 0)
    batch["advantages"] = batch["advantages"] * 1e-8
    reference = Reference(FORMULAS, [batch], [("mean over tokens", 0)])
    right = evaluate_formula(FORMULAS["mean over tokens"], batch, {})
    framework = framework_names()[0]

    def problem(gradient: np.ndarray, step: np.ndarray) -> str:
        flat = np.concatenate([right.value, gradient.ravel(), step.ravel()])
        return framework_findings(framework, {"mean over tokens": flat}, reference)[0].problem

    rounded = right.gradient + 3e-9
    assert np.abs(steps(rounded, batch["logits"]) - right.step).max() > 1e-4
    assert problem(rounded, steps(rounded, batch["logits"])) == ""
    for wrong in (steps(rounded, batch["logits"], 1e-6), steps(rounded, 2 * batch["logits"]), right.step):
        assert "no entry" in problem(rounded, wrong)


def test_where_the_gradient_is_not_small_the_step_is_the_references() -> None:
    batch = cases.make_batch("ordinary", 0)
    reference = Reference(FORMULAS, [batch], [("mean over tokens", 0)])
    right = evaluate_formula(FORMULAS["mean over tokens"], batch, {})
    turned = np.where(np.abs(right.gradient) > 1e-3, -1e-4, right.gradient)
    flat = np.concatenate([right.value, turned.ravel(), steps(turned, batch["logits"]).ravel()])
    assert largest_differences(flat, reference.results("mean over tokens", {}))[2] > 1e-3


@pytest.mark.parametrize("kind", [*cases.KINDS, "far", "beyond", "far_reference", "truncated", "masked"])
def test_float32_cannot_decide_a_case(kind: str) -> None:
    for seed in range(16):
        batch = cases.make_batch(kind, seed, base=seed % 3)
        assert (batch["rewards"].astype(np.float32) == batch["rewards"]).all()
        log_p = batch["logits"] - np.log(np.exp(batch["logits"]).sum(-1, keepdims=True))
        large_ratios = kind in ("far", "beyond", "far_reference")
        # half a unit in the last place of float32 is 2.4e-7 at most
        assert log_p.min() > (-4.1 if large_ratios else -6.1)


def test_another_seed_makes_other_cases() -> None:
    first, same, other = (cases.make_cases(46, base)[0][0]["logits"] for base in (0, 0, 1))
    assert np.array_equal(first, same) and not np.array_equal(first, other)


def test_the_band_may_be_of_the_inverse_ratio() -> None:
    """A ratio of 0.705 is within 0.7 and 1.4, and its inverse, 1.418, is not."""
    name = "token weights, sequences masked by the geometric mean"
    batch = cases.make_batch("on_policy", 0)
    batch["rollout"] = batch["old"] - np.log(0.705) * batch["mask"]
    kept, dropped = (evaluate_formula(FORMULAS[name], batch, variant) for variant in ({}, {"judged_inverse": True}))
    assert kept.gradient.any() and not dropped.gradient.any()


def test_an_error_that_changes_nothing_is_not_noticed() -> None:
    batches = [cases.make_batch("ordinary", 0)]
    reference = Reference(FORMULAS, batches, [("clip", 0)])
    right = flat("clip", {}, batches)
    mutants = {"none": {"clip": right}, "one": {"clip": right * 1.1}}
    assert unnoticed_errors(framework_names()[0], mutants, reference) == ["none"]


def test_the_matrix_has_every_difference_and_aligned_columns() -> None:
    results = [
        Finding("clip", "a", (2 * TOLERANCE, 1e-9, 0.0), None, {"what": "other"}, ""),
        Finding("a longer name", "a", (1e-16, 0.0, 0.0), None, None, ""),
        Finding("clip", "b", None, None, None, ""),
        Finding("a longer name", "b", (0.0, 0.0, 1e-7), None, None, ""),
    ]
    lines = matrix_table(results, ["a", "b"]).splitlines()
    assert "2e-06 / 1e-09 / 0e+00 ≠" in lines[2] and "cannot be expressed" in lines[2] and "≠" not in lines[3]
    assert len({len(line) for line in lines[2:]} | {len(lines[0])}) == 1
    rows = matrix_frame(results)
    assert rows.loc[0, ["value", "gradient", "step", "registry"]].tolist() == [2 * TOLERANCE, 1e-9, 0.0, "other"]
    assert rows[["value", "gradient", "step"]].isna().all(axis=1).tolist() == [False, False, True, False]


def test_a_number_of_cases_below_one_is_refused() -> None:
    with refused("too-few-cases"):
        cases.make_cases(0)


def test_there_are_as_many_cases_as_asked_for_and_every_formula_has_its_share() -> None:
    batches, pairs = cases.make_cases(1000)
    assert len(pairs) >= 1000 and {name for name, _ in pairs} == set(FORMULAS)
    assert all(batches[number]["kind"] in FORMULAS[name]["batches"] for name, number in pairs)


def test_the_page_holds_the_registry() -> None:
    assert all(
        entry.get("what", entry.get("cannot")) in document.registry_tables() for entry in known_differences().values()
    )

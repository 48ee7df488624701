"""The KL study against finite differences, exact sums and closed forms; and its page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.statistics.mean_intervals import Numbers
from studies.kl import gradients, study
from studies.kl.estimator_values import of_normals
from studies.kl.gradients import LOSS, REWARD, WEIGHED, Gradient, Policies

VOCABULARY, LENGTH = 3, 3
UNBIASED_ON_A_BANDIT = {("k2", LOSS), ("k1", WEIGHED), ("k3", WEIGHED), ("k1", REWARD)}


def by_name(rows: list[Gradient]) -> dict[tuple[str, str], Gradient]:
    return {(one.estimator, one.kl_in): one for one in rows}


def divergence(first: Numbers, second: Numbers, length: int) -> float:
    """KL of whole completions, by its definition."""
    tokens = gradients.everything(first.shape[1], length)
    weights = gradients.probabilities(first, tokens)
    return float(weights @ np.log(weights / gradients.probabilities(second, tokens)))


def differences(function: object, logits: Numbers) -> Numbers:
    """Central differences over all logits."""
    gradient, step = np.zeros(logits.size), 1e-5
    for index in range(logits.size):
        moved = np.zeros(logits.size)
        moved[index] = step
        up, down = (gradients.log_softmax(logits + sign * moved.reshape(logits.shape)) for sign in (1, -1))
        gradient[index] = (function(up) - function(down)) / (2 * step)  # type: ignore[operator]
    return gradient


@pytest.fixture
def policy() -> Policies:
    return gradients.policies(VOCABULARY, off_policy=False)


@pytest.mark.parametrize("length", [1, LENGTH])
def test_the_true_gradient_is_that_of_the_divergence(policy: Policies, length: int) -> None:
    expected = differences(lambda log: divergence(log, policy.reference, length), policy.current)
    assert gradients.true_gradient(policy, length) == pytest.approx(expected, abs=1e-8)


def test_k3_in_the_loss_follows_the_other_divergence(policy: Policies) -> None:
    """Its mean gradient is that of KL(ref, pi), not of KL(pi, ref)."""
    tokens = gradients.everything(VOCABULARY, 1)
    each = gradients.gradients(policy, tokens, gradients.coefficients(policy, tokens, "k3", LOSS))
    mean_gradient = gradients.probabilities(policy.current, tokens) @ each
    expected = differences(lambda log: divergence(policy.reference, log, 1), policy.current)
    assert mean_gradient == pytest.approx(expected, abs=1e-8)


def test_on_a_bandit_four_of_nine_are_unbiased(policy: Policies) -> None:
    by_case = by_name(gradients.study(policy, 1))
    assert {name for name, one in by_case.items() if one.bias < 1e-9} == UNBIASED_ON_A_BANDIT
    assert by_case["k1", LOSS].bias == pytest.approx(1) and np.isnan(by_case["k1", LOSS].cosine)  # nothing is trained
    assert by_case["k3", WEIGHED].spread == pytest.approx(by_case["k2", LOSS].spread)  # on-policy the same gradient
    off = by_name(gradients.study(gradients.policies(VOCABULARY, off_policy=True), 1))
    assert {name for name, one in off.items() if one.bias < 1e-9} == UNBIASED_ON_A_BANDIT - {("k2", LOSS)}


def test_only_the_reward_sees_later_tokens(policy: Policies) -> None:
    """Of whole completions, k1 in the reward alone has the gradient: in the loss no token is paid for what follows."""
    by_case = by_name(gradients.study(policy, LENGTH))
    assert {name for name, one in by_case.items() if one.bias < 1e-9} == {("k1", REWARD)}


@pytest.mark.parametrize("off_policy", [False, True])
def test_monte_carlo_agrees_with_the_exact_sum(off_policy: bool) -> None:
    policy = gradients.policies(VOCABULARY, off_policy)
    exact, drawn = gradients.study(policy, LENGTH), gradients.study(policy, LENGTH, draws=20_000)
    for one, other in zip(exact, drawn, strict=True):
        assert other.bias == pytest.approx(one.bias, abs=6 * other.error), (one.estimator, one.kl_in)
        assert other.spread == pytest.approx(one.spread, rel=0.1)


def test_values_have_their_closed_form() -> None:
    for shift in (0.1, 1.0):
        for one in of_normals(shift, blocks=50, draws=20_000):
            assert one.exact_bias == (shift**2 / 4 if one.estimator == "k2" else 0)
            half = (one.bias.high - one.bias.low) / 2
            assert one.bias.value == pytest.approx(one.exact_bias, abs=2.5 * half)  # five standard errors
            if one.estimator == "k1":
                assert one.spread == pytest.approx(2 / shift, rel=0.02)  # log r has the standard deviation `shift`


@pytest.mark.slow
def test_the_page_has_both_studies_and_a_verdict_for_each_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study, "DRAWS", 2_000)
    monkeypatch.setattr(study, "of_normals", lambda shift: of_normals(shift, blocks=10, draws=1_000))
    monkeypatch.setattr("sys.argv", ["kl", "--output", str(tmp_path)])
    study.main()
    assert capsys.readouterr().out == f"{tmp_path / 'index.html'}\n"
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Content-Security-Policy" in text and "<script" not in text and text.count("<svg") == 2
    claims = study.claims_table().data
    assert len(claims) >= 5 and all(verdict in text for verdict in claims["verdict"])
    assert {"kl_values.csv", "kl_gradients.csv", "kl_claims.csv"} <= {file.name for file in tmp_path.iterdir()}

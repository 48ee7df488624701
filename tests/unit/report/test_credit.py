"""Does a critic make reasoning right: the measure by hand, the verdict's rule, and the command on stored results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic_results import write_maze_run

from analysis.claims.verdicts import CONTRADICTED, SUPPORTED
from eval.statistics import Estimate
from studies.credit import study
from studies.credit.runs import CRITIC, GRPO, NO_STD, PROCESS, RUNS
from studies.credit.study import CANNOT_BE_TOLD, RIGHT_REASONS, Pair
from tests.forked_command import run_snakemake
from tests.user_errors import refused

ABOVE, UNCLEAR = f"{CRITIC} is above", CANNOT_BE_TOLD


def checked(kinds: dict[str, str]) -> pd.DataFrame:
    """As reasoning.checked: of each problem, right reasoning (+), wrong reasoning (-) or a wrong answer (x)."""
    names = {"+": "right_right", "-": "right_wrong", "x": "wrong_right", "?": "right_unknown"}
    return pd.DataFrame(
        [(name, names[one]) for name, row in kinds.items() for one in row], columns=["problem_id", "kind"]
    )


def test_right_reasons_by_hand() -> None:
    reasons = study.right_reasons(checked({"a": "++x", "b": "-+?", "c": "xxx"}), ["a", "b", "c"])[:, 0]
    share, answers = 3 / 4, 4 / 3  # per problem, on average
    assert reasons == pytest.approx(
        [share + (2 - 2 * share) / answers, share + (1 - 2 * share) / answers, share + 0 / answers]
    )
    assert reasons.mean() == pytest.approx(share)
    # Cochran's variance of a ratio, as in eval.statistics.ratio
    counts, sizes = np.array([2.0, 1.0, 0.0]), np.array([2.0, 2.0, 0.0])
    variance = 3 / 2 * ((counts - share * sizes) ** 2).sum() / sizes.sum() ** 2
    assert reasons.var(ddof=1) / 3 == pytest.approx(variance)


def test_right_reasons_need_a_right_answer_with_a_step() -> None:
    with refused("no-checkable-step"):
        study.right_reasons(checked({"a": "xx", "b": "?"}), ["a", "b"])


def found_pairs(against: tuple[str, float], without_std: str) -> list[Pair]:
    """Pairs with these verdicts, and the upper end of the interval of PPO less GRPO."""
    verdicts = {(GRPO, CRITIC): against[0], (NO_STD, CRITIC): without_std}
    return [
        Pair(RIGHT_REASONS, *pair, Estimate(0.0, -0.1, against[1]), 0.05, 0.5, verdicts.get(pair, UNCLEAR))
        for pair in study.PAIRS
    ]


@pytest.mark.parametrize(
    ("against", "without_std", "expected"),
    [
        ((ABOVE, 0.2), ABOVE, SUPPORTED),
        ((ABOVE, 0.2), UNCLEAR, CANNOT_BE_TOLD),  # the division by the deviation may be the reason
        ((UNCLEAR, 0.2), ABOVE, CANNOT_BE_TOLD),
        ((UNCLEAR, 0.02), UNCLEAR, CONTRADICTED),  # no gain that counts is within the interval
        ((f"{GRPO} is above", -0.01), UNCLEAR, CONTRADICTED),
    ],
)
def test_the_rule_of_the_verdict(against: tuple[str, float], without_std: str, expected: str) -> None:
    assert study.verdict(found_pairs(against, without_std)) == expected


# Shares of right answers and of right reasoning, by run
SHARES = {
    SUPPORTED: {CRITIC: (0.6, 0.95), GRPO: (0.8, 0.5), NO_STD: (0.8, 0.55), PROCESS: (0.7, 0.98)},
    CONTRADICTED: {CRITIC: (0.6, 0.5), GRPO: (0.8, 0.95), NO_STD: (0.8, 0.9), PROCESS: (0.7, 0.98)},
    CANNOT_BE_TOLD: {CRITIC: (0.6, 0.75), GRPO: (0.8, 0.7), NO_STD: (0.8, 0.7), PROCESS: (0.7, 0.75)},
}


def write(results: Path, shares: dict[str, tuple[float, float]], seeds: int = 3) -> Path:
    for name, run in RUNS.items():
        for seed in range(seeds):
            write_maze_run(results, f"{run}/seed-{seed}", *shares[name], problems=20, repeats=3)
    return results


@pytest.mark.slow
@pytest.mark.parametrize(
    "expected", [pytest.param(name, marks=[pytest.mark.long] * (name != SUPPORTED)) for name in SHARES]
)
def test_the_command_on_stored_results(
    expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results, output = write(tmp_path / "demo", SHARES[expected]), tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["credit", "--results", str(results), "--output", str(output)])
    study.main()
    said = capsys.readouterr().out
    assert said == (output / "credit.md").read_text()
    assert (f"is {expected}" if expected != CANNOT_BE_TOLD else expected) in said.partition("\n")[0]
    runs = pd.read_csv(output / "credit.csv").set_index("variant")
    assert list(runs["trainings"]) == [3] * 5 and runs.loc["base model", RIGHT_REASONS] == 1
    for name, (solved, reasoned) in SHARES[expected].items():
        assert runs.loc[name, "accuracy"] == pytest.approx(solved, abs=0.12)
        assert runs.loc[name, f"{RIGHT_REASONS}_low"] < reasoned < runs.loc[name, f"{RIGHT_REASONS}_high"] + 1e-9
    pairs = pd.read_csv(output / "credit_pairs.csv")
    assert len(pairs) == 2 * len(study.PAIRS) and pairs["p_adjusted"].between(0, 1).all()


@pytest.mark.slow
def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    results = write(tmp_path / "demo", SHARES[SUPPORTED], seeds=2)
    with refused("too-few-seeds"):
        study.stored(results, [0])
    (results / "data" / "benchmarks" / "mazes.parquet").unlink()
    with refused("no-checkable-step"):
        study.study(study.stored(results))
    (results / "runs" / RUNS[PROCESS] / "seed-1" / "scores.parquet").unlink()
    with refused("too-few-seeds"):
        study.stored(results)


@pytest.mark.slow
def test_its_command_makes_all_that_it_reads(tmp_path: Path) -> None:
    options = ["--config", "seeds=[0,1]", f"results={tmp_path}/results", f"work={tmp_path}/work"]
    done = run_snakemake("-n", "--quiet", "rules", "--forceall", *options, "--", "study_credit")
    done.check_returncode()
    (counts,) = re.findall(r"^\d+ jobs: (.+?)\.", done.stdout, re.MULTILINE)
    jobs = dict(count.split() for count in counts.split(", "))
    trainings = 2 * len(RUNS)
    assert {rule: int(jobs[rule]) for rule in ("train", "training_log", "score_run")} == {
        "train": trainings, "training_log": trainings, "score_run": trainings
    }  # fmt: skip

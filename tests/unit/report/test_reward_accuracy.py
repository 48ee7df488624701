"""How exact must a reward be: planted errors come back, and the page is made from stored results."""

from __future__ import annotations

import contextlib
import io
import math
import random
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from synthetic_results import training_log, write_scores

from analysis.claims.verdicts import CANNOT_TELL, CONTRADICTED, NOT_MEASURED, SUPPORTED
from contracts import provenance, tables
from contracts.run_file import EVERYWHERE
from eval.benchmark import problems_hash
from recipes import rewards, sweeps
from recipes.runs import load_sweep
from studies.reward_accuracy import claim_verdicts, dials, reward_error, runs, study
from studies.reward_accuracy.reward_error import Completions, agreement, measure
from studies.reward_accuracy.runs import StudyTask, claims, tasks
from tasks.arithmetic.problems import generate
from tasks.problems import Problem, to_table
from tests.user_errors import refused

PROBLEMS, REPEATS = 400, 2


def completions(share: float = 0.5, problems: int = PROBLEMS) -> Completions:
    """Made-up completions, all different; those that end in `right` are right."""
    rng = random.Random(7)
    problem_rows = [
        Problem("", "arithmetic", "", str(number), {}) for number in range(problems) for _ in range(REPEATS)
    ]
    turns = [f"{number} {'right' if rng.random() < share else 'wrong'}" for number in range(len(problem_rows))]
    return Completions(turns, problem_rows, REPEATS)


def truth(turns: list[str], problems: list[Problem]) -> list[rewards.Reward]:
    return [rewards.Reward(float(turn.endswith("right")), "correct") for turn in turns]


def dial(name: str, **arguments: object) -> rewards.RewardFunction:
    entry = {"function": f"recipes.reward_noise.{name}", "weight": 1.0, "arguments": {"reward": truth, **arguments}}
    ((function, _),) = rewards.load([entry])
    return function


@pytest.mark.parametrize(
    ("reward", "bias", "variance", "expected"),
    [
        (truth, 0.0, 0.0, 1.0),
        (dial("gaussian", deviation=0.5), 0.0, 0.25, 0.5 / math.sqrt(0.25 + 0.25)),
        (dial("shifted", deviation=0.5), 0.25, 0.0, 0.5 / math.sqrt(0.25 + 0.25)),
        (dial("flipped", false_positive=0.25, false_negative=0.25), 0.25, 0.0, 0.5),
        (dial("flipped", false_positive=0.25, false_negative=0.25, per="problem"), 0.25, 0.0, 0.5),
    ],
)
def test_a_planted_error_comes_back(
    reward: rewards.RewardFunction, bias: float, variance: float, expected: float
) -> None:
    part = completions()
    measured = measure(reward, truth, [part])
    size = PROBLEMS * REPEATS
    # Standard errors: flips are Bernoulli, per problem at worst; a squared normal has 2 σ⁴; with 8 draws of a Gaussian
    # (m - e)² - s²/8 has 2 σ⁴/8² + 2 σ⁴/(7 · 8²)
    sure = 4 * math.sqrt(0.25 * 0.75 / PROBLEMS) if bias else 4 * variance / 8 * math.sqrt(2 * (1 + 1 / 7) / size)
    assert abs(np.mean(measured.by_problem["bias_squared"]) - bias) <= sure
    assert abs(np.mean(measured.by_problem["variance"]) - variance) <= 4 * variance * math.sqrt(2 / 7 / size)
    total = measured.by_problem["bias_squared"][0] + measured.by_problem["variance"][0]
    assert measured.by_problem["mean_squared"][0] == pytest.approx(total)
    assert abs(measured.agreement - expected) <= 4 / math.sqrt(PROBLEMS) * (expected < 1) + 1e-9


def test_the_variance_does_not_inflate_the_bias() -> None:
    """Taken as (m - e)², the squared bias of pure noise would be σ²/8, far beyond the bound."""
    measured = measure(dial("gaussian", deviation=2.0), truth, [completions()])
    sure = 4 * 4 / 8 * math.sqrt(2 * (1 + 1 / 7) / (PROBLEMS * REPEATS))
    assert abs(np.mean(measured.by_problem["bias_squared"])) < sure < 4 / 8 / 2


def test_what_a_whole_problem_shares_is_an_error_but_no_disagreement() -> None:
    def generous(turns: list[str], problems: list[Problem]) -> list[rewards.Reward]:
        judged = zip(truth(turns, problems), problems, strict=True)
        return [one._replace(value=(one.value or 0) + int(problem.answer or 0) % 2) for one, problem in judged]

    measured = measure(generous, truth, [completions()])
    assert np.mean(measured.by_problem["bias_squared"]) == pytest.approx(0.5) and measured.agreement == pytest.approx(
        1.0
    )


def test_agreement_at_its_ends() -> None:
    part = completions()
    assert measure(lambda turns, _: [rewards.Reward(0.0)] * len(turns), truth, [part]).agreement == 0
    assert abs(measure(coin, truth, [part]).agreement) < 4 / math.sqrt(PROBLEMS)
    assert math.isnan(measure(truth, truth, [completions(1.0)]).agreement)  # nothing to tell apart
    assert math.isnan(agreement([np.ones((5, 1, 4))]))  # one completion of each problem
    opposite = measure(lambda t, p: [rewards.Reward(1 - (one.value or 0)) for one in truth(t, p)], truth, [part])
    assert opposite.agreement == pytest.approx(-1)


def coin(turns: list[str], problems: list[Problem]) -> list[rewards.Reward]:
    return [rewards.Reward(float(random.random() < 0.5)) for _ in turns]


def test_a_completion_without_a_reward_is_refused() -> None:
    with refused("completions-without-reward"):
        measure(lambda turns, problems: [rewards.Reward(None)] * len(turns), truth, [completions()])


# The study's own files


@pytest.mark.parametrize("scale", EVERYWHERE)
@pytest.mark.parametrize("task", tasks(), ids=lambda task: task.name)
def test_the_settings_of_a_task_differ_in_the_reward_alone_and_begin_with_the_exact_one(
    task: StudyTask, scale: str
) -> None:
    runs_of_sweep = list(load_sweep(task.sweep, scale).values())
    assert len({str([run.stages, run.model, run.prompt, run.evaluation]) for run in runs_of_sweep}) == 1
    assert not any("noise" in one["function"] or one.get("arguments") for one in runs_of_sweep[0].rewards)
    assert [run.stages[0].checkpoints[-1] for run in runs_of_sweep] == [runs_of_sweep[0].stages[0].steps] * len(
        runs_of_sweep
    )
    for run in runs_of_sweep:
        assert reward_error.function_of(run)((), ()) == []
    labels = [reward_error.label(run) for run in runs_of_sweep]
    assert len(set(labels)) == len(labels) and sum(map(reward_error.is_extreme, runs_of_sweep)) in (0, 2)


def test_every_rule_names_a_task_a_setting_and_a_measure_that_exist() -> None:
    sizes = {task.name: len(sweeps.run_names(task.sweep, "demo")) for task in tasks()}
    for claim in claims():
        for rule in claim["rules"]:
            assert rule["measure"] in claim_verdicts.KINDS and {"at_least", "at_most"} & rule.keys()
            assert max(rule.get("setting", 1), rule.get("against", 1)) <= sizes[rule["of"]]
    decisions = claim_verdicts.decided({})
    assert {one.verdict for one in decisions} == {NOT_MEASURED} and len({one.name for one in decisions}) == len(
        decisions
    )
    assert {"rewards-svg-judges", "rewards-more-tests", "theory"} <= {one.name for one in decisions}


# The command on stored results

TASK = StudyTask("arithmetic", "Arithmetic", "crosscheck/reward-accuracy", 3)
BENCHMARK = "arithmetic_words"
Stored = Callable[..., Path]  # of the shares of right answers
EXACT_BETTER = {1: 0.9, 2: 0.88, 3: 0.5, 4: 0.6, 5: 0.4, 6: 0.7, 7: 0.35, 8: 0.25, 9: 0.2}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Results of trainings that reach these shares, made once; whoever changes them makes a copy."""
    return cache(lambda *shares: write(tmp_path_factory.mktemp("stored"), dict(enumerate(shares, 1))))


def write(results: Path, shares: dict[int, float], seeds: int = 3) -> Path:
    """Trainings of all settings that reach these shares of right answers; the base model has a fifth."""
    data = results / "data" / "benchmarks"
    problems = generate(40, "test", 1, kinds=["words"])
    tables.write(to_table(problems), tables.PROBLEM, data / f"{BENCHMARK}.parquet")
    for number, share in shares.items():
        for seed in range(seeds):
            name = f"{TASK.sweep}@{number}/seed-{seed}"
            folder = results / "runs" / name
            log = folder / "training_log.parquet"
            tables.write(
                pa.Table.from_pylist(training_log(name, share, 24), tables.TRAINING_LOG), tables.TRAINING_LOG, log
            )
            for step, right in ((0, 0.2), (24, share)):
                path = folder / f"graded/step-{step}/{BENCHMARK}.parquet"
                rng = random.Random(f"{name if step else seed} {step}")
                rows = [
                    graded(name, step, one, repeat, rng.random() < right) for one in problems for repeat in range(2)
                ]
                tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
                provenance.write(path, problems_sha256=problems_hash(data, BENCHMARK))
            write_scores(folder)
    return results


def graded(name: str, step: int, problem: Problem, repeat: int, right: bool) -> dict[str, object]:
    answer = str(problem.answer) if right else "-1"
    return {
        "run": name, "step": step, "benchmark": BENCHMARK, "problem_id": problem.problem_id, "repeat": repeat,
        "seed": 1, "prompt": problem.question, "completion": f"so \\boxed{{{answer}}}", "finish_reason": "stop",
        "prompt_tokens": 9, "completion_tokens": 9, "gold": problem.answer, "protocol": "demo", "answer": answer,
        "verdict": "correct" if right else "wrong", "grader": "math-verify 0.8.0",
    }  # fmt: skip


@pytest.fixture(scope="module")
def output(stored: Stored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes of stored results, and what it prints, in said.txt."""
    folder = tmp_path_factory.mktemp("study")
    command_line = ["x", "--results", stored(*EXACT_BETTER.values()), "--seeds", *"012", "--output", folder]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.setattr(runs, "tasks", lambda: [TASK])
        patch.setattr("sys.argv", list(map(str, command_line)))
        study.main()
    (folder / "said.txt").write_text(said.getvalue())
    return folder


@pytest.fixture
def by_setting(output: Path) -> pd.DataFrame:
    return pd.read_csv(output / "reward_accuracy_settings.csv").set_index("setting")


@pytest.mark.slow
def test_the_command_writes_a_page_a_figure_and_a_row_a_setting(output: Path, by_setting: pd.DataFrame) -> None:
    assert "Claims of Zhang's post" in (output / "index.html").read_text()
    assert (output / "reward_accuracy_arithmetic.svg").is_file()
    assert len(by_setting) == 9 and (by_setting["completions_per_second"] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "share"), EXACT_BETTER.items())
def test_the_gain_of_a_setting_is_that_of_its_trainings(by_setting: pd.DataFrame, number: int, share: float) -> None:
    row = by_setting.loc[number]
    assert row["gain"] == pytest.approx(share - 0.2, abs=4 * math.sqrt(2 * 0.25 / 240))
    assert row["gain_low"] <= row["gain"] <= row["gain_high"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "measure_name", "value", "within"),
    [
        (1, "mean_squared_start", 0, 0),
        (1, "agreement_start", 1, 0),
        (3, "bias_squared_start", 0.8 * 0.3, 0.1),
        (7, "variance_start", 1, 0.15),
        (7, "bias_squared_start", 0, 0.05),
        (9, "variance_start", 0, 0),
        (9, "agreement_start", 0, 0),
        (9, "bias_squared_start", 0.2, 0.1),  # the share of right answers
        (9, "bias_squared_end", 0.2, 0.1),
    ],
)
def test_the_error_of_a_setting_is_that_of_its_reward(
    by_setting: pd.DataFrame, number: int, measure_name: str, value: float, within: float
) -> None:
    assert by_setting.loc[number, measure_name] == pytest.approx(value, abs=within)


@pytest.mark.slow
def test_a_larger_bias_goes_with_a_smaller_gain(output: Path) -> None:
    fits = pd.read_csv(output / "reward_accuracy_fits.csv").set_index(["fit", "error"])
    assert fits.loc[("bias² and variance", "bias_squared"), "slope_high"] < 0
    assert (fits["settings"] == [7, 7, 7, 9]).all()


@pytest.mark.slow
def test_one_task_decides_a_claim_that_exactness_never_pays_and_no_claim_on_other_tasks(output: Path) -> None:
    verdicts = pd.read_csv(output / "reward_accuracy_claims.csv").set_index("name")["verdict"]
    assert verdicts["rewards-gomoku"] == verdicts["theory"] == NOT_MEASURED
    assert verdicts["rewards-accuracy-alone"] == CONTRADICTED
    assert (output / "said.txt").read_text().startswith("A more exact reward does train better")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "exact", "slope"),
    [
        (EXACT_BETTER, CONTRADICTED, SUPPORTED),
        pytest.param(  # the noisiest reward is best
            {**dict.fromkeys(EXACT_BETTER, 0.5), 7: 0.9}, SUPPORTED, CONTRADICTED, marks=pytest.mark.long
        ),
        pytest.param(dict.fromkeys(EXACT_BETTER, 0.5), CANNOT_TELL, CANNOT_TELL, marks=pytest.mark.long),
    ],
)
def test_the_rules_decide(stored: Stored, shares: dict[int, float], exact: str, slope: str) -> None:
    studied = dials.read(TASK, "demo", [0, 1, 2], stored(*shares.values()))
    judged = {one["id"]: claim_verdicts.judge([one["rules"][0]], {"arithmetic": studied})[0] for one in claims()[:2]}
    assert judged == {"rewards-accuracy-alone": exact, "theory": slope}
    assert studied.dial(6).mostly == "variance" and studied.dial(3).mostly == "bias"


@pytest.mark.slow
def test_what_cannot_be_measured_is_refused(stored: Stored, tmp_path: Path) -> None:
    results = Path(shutil.copytree(stored(*dict.fromkeys(EXACT_BETTER, 0.5).values()), tmp_path / "demo"))
    with refused("too-few-seeds"):
        dials.read(TASK, "demo", [0], results)
    with refused("unknown-name"):
        dials.read(TASK, "demo", [0, 5], results)
    data = results / "data" / "benchmarks" / f"{BENCHMARK}.parquet"
    tables.write(to_table(generate(40, "test", 2, kinds=["words"])), tables.PROBLEM, data)
    with refused("other-problems"):
        dials.read(TASK, "demo", [0, 1], results)

"""Sweeps: their settings as runs, and their page from stored results."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from analysis.sweep import __main__ as sweep_page
from analysis.sweep import settings as sweep
from analysis.sweep.figures import plot_sweep
from contracts import ended_training, run_file, tables
from contracts.run_file import RECIPES, SCALES, read_yaml
from eval import score
from recipes import runs, sweeps
from tests.unit.report.synthetic_results import training_log, write_run
from tests.user_errors import refused

NAME = "openr1/trial"


@pytest.fixture
def recipes_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of recipes with a run and a place for a sweep of it."""
    folder = tmp_path / "recipes"
    (folder / "openr1").mkdir(parents=True)
    (folder / "openr1" / "base.yaml").write_bytes((RECIPES / "openr1" / "qwen2.5-math-7b.yaml").read_bytes())
    for module in (run_file, runs, sweeps):
        monkeypatch.setattr(module, "RECIPES", folder)
    return folder


def write(folder: Path, demo: Any, **more: Any) -> None:
    varied = {"demo": demo, "full": {"rollout.temperature": [0.9, 1.0]}}
    content = {"title": "trial", "extends": "base", "sweep": varied, **more}
    (folder / "openr1" / "trial.sweep.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def test_every_combination_is_a_run(recipes_folder: Path) -> None:
    rates, sizes = [4.0e-4, 1.0e-3], [{"prompts_per_update": 36, "samples_per_prompt": 7}, {"samples_per_prompt": 14}]
    write(recipes_folder, {"optimizer.learning_rate": rates, "batch": sizes})
    assert sweeps.names() == [NAME] and NAME not in runs.run_names() and "openr1/base" in runs.run_names()
    settings_by_run = list(runs.load_sweep(NAME, "demo").values())
    assert [run.name for run in settings_by_run] == [f"{NAME}@{number}" for number in (1, 2, 3, 4)]
    stages = [run.stages[0] for run in settings_by_run]
    assert [stage.optimizer["learning_rate"] for stage in stages] == [4.0e-4, 4.0e-4, 1.0e-3, 1.0e-3]
    assert [stage.batch["samples_per_prompt"] for stage in stages] == [7, 14, 7, 14]
    assert [stage.batch["prompts_per_update"] for stage in stages] == [36, 18, 36, 18]
    assert all(stage.optimizer["max_grad_norm"] == 1.0 for stage in stages)  # the rest is the run's
    assert len(runs.load_sweep(NAME, "full")) == 2


@pytest.mark.parametrize(
    ("demo", "code"),
    [
        ({"optimizer.learning_rates": [1.0, 2.0]}, "schema-broken"),
        ({"optimizer.learning_rate": [1.0e-3]}, "schema-broken"),
        ({"steps": [1, 2, 3], "dataset": ["a", "b"], "rewards": [[], []], "model": ["a", "b"]}, "schema-broken"),
        ({"optimizer.learning_rate": [4.0e-4, "fast"]}, "schema-broken"),
        ({"hardware.memory_gb": [3, 4]}, "equal-settings"),
    ],
)
def test_what_a_sweep_cannot_vary_is_refused(recipes_folder: Path, demo: Any, code: str) -> None:
    write(recipes_folder, demo)
    with refused(code):
        runs.load_sweep(NAME, "demo")


def test_names_that_are_none(recipes_folder: Path) -> None:
    write(recipes_folder, {"rollout.temperature": [1.0, 0.8]})
    for name in ("openr1/trial@3", "openr1/trial@0", "openr1/trial@x", "openr1/trial@²"):
        with refused("unknown-name", name=name):
            runs.load_run(name, "demo")
    with refused("unknown-name", name="openr1/other"):
        runs.load_run("openr1/other@1", "demo")
    write(recipes_folder, {"rollout.temperature": [1.0, 0.8]}, sweep=None)
    with refused("empty-sweep"):
        sweeps.settings(NAME, "demo")
    write(recipes_folder, {"rollout.temperature": [1.0, 0.8]})
    (recipes_folder / "openr1" / "trial.sweep.yaml").rename(recipes_folder / "openr1" / "other.yaml")
    with refused("sweep-in-run"):
        runs.load_run("openr1/other", "demo")


@pytest.mark.slow
def test_the_sweeps_of_the_project_can_be_read() -> None:
    assert sweeps.names()
    for name in sweeps.names():
        for scale in read_yaml(sweeps.sweep_file(name))["sweep"]:
            assert scale in SCALES
            sweep_runs = runs.load_sweep(name, scale)
            assert len(sweep_runs) == len(sweeps.settings(name, scale)) > 1
            assert all(
                runs.file_content(run, sweeps.sweep_file(name), scale).get("sweep") is None for run in sweep_runs
            )
        assert "extends" in read_yaml(sweeps.sweep_file(name)), name


def _stored(results: Path, folder: Path, ceilings: list[float], seeds: int) -> list[sweep.Setting]:
    write(folder, {"rollout.temperature": [1.0 + number / 10 for number in range(len(ceilings))]})
    for number, ceiling in enumerate(ceilings, start=1):
        for seed in range(seeds):
            write_run(
                results, f"{NAME}@{number}/seed-{seed}", ceiling, benchmarks=("words",), steps=(0, 20), problems=40
            )
    return sweep.read_settings(NAME, "demo", range(seeds), results)


@pytest.mark.slow
def test_the_best_setting_is_chosen_and_a_collapsed_one_is_not(tmp_path: Path, recipes_folder: Path) -> None:
    settings = _stored(tmp_path / "demo", recipes_folder, [0.5, 0.9, 0.95], 3)
    first_choice = sweep.choose_best(settings)
    assert first_choice and {setting.number for setting in first_choice.choices} <= {2, 3}
    log = tmp_path / "demo" / "runs" / f"{NAME}@3" / "seed-1" / "training_log.parquet"
    rows = training_log(f"{NAME}@3/seed-1", 0.95, 20)
    for row in rows[10:]:
        row["truncated_rate"] = 0.9  # the answers grow to the limit
    tables.write(pa.Table.from_pylist(rows, tables.TRAINING_LOG), tables.TRAINING_LOG, log)
    settings = sweep.read_settings(NAME, "demo", (0, 1, 2), tmp_path / "demo")
    assert [len(setting.collapsed) for setting in settings] == [0, 0, 1]
    chosen, table = sweep.choose_best(settings), sweep_page.settings_table(settings)
    assert chosen and {setting.number for setting in chosen.choices} == {2}
    assert chosen.less_first and chosen.difference and chosen.difference.low > 0
    assert chosen.less_first.verdict == "B is better"
    assert list(table.data["collapsed"]) == [0, 0, 1] and "1 of 3" in table.display.iloc[2].to_list()
    assert settings[1].accuracy.value == pytest.approx(chosen.accuracy.value)  # one setting everywhere
    texts = sweep_page.summary_sentences(settings, chosen)
    assert "setting 2 (temperature 1.1)" in texts[0] and texts[-1].endswith("3 (1 of 3).")
    svgs = plot_sweep(settings, tmp_path / "page")
    assert set(svgs) == {"sweep", "sweep_training"} and all(map(len, svgs.values()))


@pytest.mark.slow
def test_a_setting_with_a_training_that_was_ended_has_no_mean(
    tmp_path: Path, recipes_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "demo"
    _stored(results, recipes_folder, [0.5, 0.9], 2)
    folder = results / "runs" / f"{NAME}@1" / "seed-1"
    shutil.rmtree(folder / "graded")
    (folder / "scores.parquet").unlink()
    ended_training.write_absence(folder / "graded", "training is collapsing (KL at step 7: 9 nats) and was ended")
    command = ["score", "--graded", str(folder / "graded"), "--output", str(folder / "scores.parquet")]
    monkeypatch.setattr(sys, "argv", command)
    score.main()
    settings = sweep.read_settings(NAME, "demo", (0, 1), results)
    assert [setting.evaluated for setting in settings] == [False, True] and "KL at step 7" in str(settings[0].collapsed)
    chosen, texts = sweep.choose_best(settings), sweep_page.settings_table(settings).display
    assert chosen and {setting.number for setting in chosen.choices} == {2} and chosen.difference is None
    assert texts["last checkpoint (%)"][0] == "1 ended" and texts["collapsed"][0] == "1 of 2"
    assert plot_sweep(settings, tmp_path / "page")["sweep"].count("ended") == 1
    assert (
        sweep.choose_best(settings[:1]) is None
        and "Every setting" in sweep_page.summary_sentences(settings[:1], None)[0]
    )
    assert "ended" in plot_sweep(settings[:1], tmp_path / "page")["sweep"]


@pytest.mark.slow
def test_one_seed_gives_no_verdict_about_settings(tmp_path: Path, recipes_folder: Path) -> None:
    settings = _stored(tmp_path / "demo", recipes_folder, [0.5, 0.9], 1)
    chosen = sweep.choose_best(settings)
    assert chosen and chosen.less_first is None and chosen.difference and chosen.difference.low > 0
    assert any("One seed of each" in text for text in sweep_page.summary_sentences(settings, chosen))
    assert set(sweep_page.settings_table(settings).display["less setting 1 (points)"]) == {"–"}


class _Run:
    """As much of a run's results as choosing reads: one benchmark of 60 problems, each answered twice."""

    def __init__(self, name: str, right: np.ndarray) -> None:
        self.name, self.benchmarks, self.steps, self.last, self.right = name, ["words"], [0, 1], 1, right
        self.evaluated, self.rollouts = True, pd.DataFrame()

    def halves(self, _: str) -> np.ndarray:
        return np.arange(len(self.right)) % 2

    def correct(self, step: int, _: str) -> np.ndarray:
        return self.right if step else np.zeros_like(self.right)

    def clusters(self, _: str) -> None:
        return None


def _equal_settings(rng: np.random.Generator, seeds: int) -> list[sweep.Setting]:
    """Eight settings without a difference, whose seeds have accuracies of their own."""
    return [
        sweep.Setting(
            number, {"key": str(number)},
            [_Run(f"x/y@{number}/seed-{seed}", rng.random((60, 2)) < rng.normal(0.5, 0.03)) for seed in range(seeds)],  # type: ignore[misc]
            {},
        )
        for number in range(1, 9)
    ]  # fmt: skip


@pytest.mark.slow
def test_settings_that_are_all_alike_do_not_win_by_being_chosen() -> None:
    """The best of eight by chance is above the mean where it was chosen, and not where it is reported."""
    rng, chosen, naive = np.random.default_rng(0), [], []
    for _ in range(150):
        settings = _equal_settings(rng, 3)
        best = sweep.choose_best(settings)
        assert best and best.difference
        chosen.append(best.difference.value)
        means = [np.mean([run.right.mean() for run in setting.runs]) for setting in settings]  # type: ignore[attr-defined]
        naive.append(max(means) - means[0])
    error = float(np.std(chosen)) / len(chosen) ** 0.5
    assert abs(np.mean(chosen)) < 4 * error and np.mean(naive) > 8 * error


def test_the_choice_for_a_seed_does_not_depend_on_that_seed() -> None:
    settings = _equal_settings(np.random.default_rng(0), 3)
    before = sweep.choose_best(settings)
    for setting in settings:
        setting.runs[2].right = ~setting.runs[2].right  # type: ignore[attr-defined]
    after = sweep.choose_best(settings)
    assert before and after and before.choices[4:] == after.choices[4:] and before.choices != after.choices

"""The history of this project's own speed: what is worse than noise, what is refused, and of which commit a row is."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.benchmark import own_speed
from system.errors import ROOT, UserError
from tests.performance import own_speed as command

FIRST = own_speed.Row("a", "2026-11-26", "2 cores", "grading", 5, 0.50, 0.45, 0.55)


def test_a_ratio_that_is_worse_by_more_than_the_noise(tmp_path: Path) -> None:
    noisy, worse = (replace(FIRST, commit="b", value=v, low=v - 0.125, high=v + 0.125) for v in (0.55, 0.875))
    assert own_speed.worse([FIRST], [noisy]) == []
    (sentence,) = own_speed.worse([FIRST], [worse])
    assert "0.875" in sentence and "in a:" in sentence
    assert own_speed.worse([FIRST], [replace(worse, machine="4 cores"), replace(worse, commit="a")]) == []
    assert len(own_speed.worse([FIRST, worse], [replace(worse, commit="c")])) == 1  # not beside what was worse itself
    own_speed.write([FIRST, worse], tmp_path / "own_speed.csv")
    assert own_speed.read(tmp_path / "own_speed.csv") == [FIRST, worse]
    assert "grading" in own_speed.plot([FIRST, worse], tmp_path)


def drawn(generator: np.random.Generator, logs: Sequence[float], noise: float, runs: float = 0) -> list[own_speed.Row]:
    """A row for each true logarithm; deviations of repetitions, and of runs."""
    repetitions = int(generator.integers(3, 9))
    means = generator.normal(logs, runs)
    values = generator.normal(means[:, None], noise, (len(logs), repetitions))
    half = values.std(axis=1, ddof=1) * stats.t.ppf(0.975, repetitions - 1) / repetitions**0.5
    limits = np.exp(values.mean(axis=1) + np.outer((0, -1, 1), half)).T.tolist()
    return [
        own_speed.Row(str(n), "2026-11-26", "2 cores", "grading", repetitions, *row) for n, row in enumerate(limits)
    ]


def alarms(seed: int, logs: Sequence[float], runs: float = 0, measurements: int = 200) -> float:
    """Share of measurements of six ratios, each with its own noise, in which any has a sentence for the last commit."""
    generator, count = np.random.default_rng(seed), 0
    for _ in range(measurements):
        rows = [
            [replace(row, ratio=ratio) for row in drawn(generator, logs, noise, runs * noise)]
            for ratio, noise in zip("abcdef", generator.uniform(0.02, 0.08, 6), strict=True)
        ]
        count += bool(own_speed.worse([row for one in rows for row in one[:-1]], [one[-1] for one in rows]))
    return count / measurements


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 4, 20, 40])
def test_without_a_change_there_are_few_alarms_however_long_the_history(commits: int) -> None:
    assert alarms(commits, [0.0] * (commits + 1)) <= own_speed.FALSE_ALARMS


@pytest.mark.slow
@pytest.mark.parametrize("commits", [own_speed.ENOUGH, 10, 20])
def test_runs_that_vary_by_more_than_repetitions_are_no_alarm(commits: int) -> None:
    assert alarms(commits, [0.0] * (commits + 1), runs=0.8) <= own_speed.FALSE_ALARMS


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 4, 10, 40])
def test_a_jump_is_seen(commits: int) -> None:
    faster = commits // 2  # before a commit, all were slower: what is lost again is a loss
    logs = [math.log(2)] * faster + [0.0] * (commits - faster) + [math.log(1.4)]
    assert alarms(commits, logs, measurements=50) >= 0.9


@pytest.mark.slow
def test_many_small_losses_are_seen() -> None:
    rows = [replace(FIRST, commit=str(v), value=v, low=0.9 * v, high=1.1 * v) for v in (0.5, 0.54, 0.58, 0.63)]
    assert own_speed.worse(rows[:1], rows[1:2]) == [] != own_speed.worse(rows[:-1], rows[-1:])
    assert alarms(0, [n * math.log(1.03) for n in range(10)], measurements=50) >= 0.9


@pytest.mark.parametrize(
    "line",
    [
        "<<<<<<< HEAD", "=======", "b,2026-11-26,2 cores,grading,5,,0.4,0.6", "b,2026-11-26,2 cores,grading,5,0.5,0.4",
        "b,2026-11-26,2 cores,grading,5,nan,0.4,0.6", "b,2026-11-26,2 cores,grading,5,0.5,0.4,inf",
        "b,2026-11-26,2 cores,grading,5,half,0.4,0.6", "b,2026-11-26,2 cores,grading,1,0.5,0.4,0.6",
        "b,2026-11-26,2 cores,grading,5,0.5,0.4,0.6,7", "b,2026-11-26,2 cores, 25 GB,grading,5,0.5,0.4,0.6",
        "b,2026-11-26,,grading,5,0.5,0.4,0.6", "b,2026-11-26,2 cores,grading,5,0.5,0.6,0.4", '"b,2026-11-26',
        "b,2026-11-26,2 cores\udcff,grading,5,0.5,0.4,0.6", "b,2026-11-26,2 cores,grading,\udcff,0.5,0.4,0.6", "\0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_damaged_line_is_one_sentence(tmp_path: Path, line: str, before: int) -> None:
    file = tmp_path / "own_speed.csv"
    own_speed.write([FIRST] * 3, file)
    lines = file.read_text().split("\n")[:-1]
    file.write_text(
        "\n".join([*lines[: before + 1], line, *([] if line[0] == '"' else lines[before + 1 :])]),
        errors="surrogateescape",
    )
    with pytest.raises(UserError, match=f"{file}:{before + 2} ") as error:
        own_speed.read(file)
    assert (error.value.code, error.value.facts["line"]) == ("damaged-table", before + 2)


def measure(monkeypatch: pytest.MonkeyPatch, file: Path, *arguments: str) -> object:
    """The exit status of the command, or its sentences."""
    monkeypatch.setattr("sys.argv", ["own_speed", "--repetitions", "2", "--output", str(file), *arguments])
    with pytest.raises(SystemExit) as ended:
        command.main()
    return ended.value.code


def test_what_ran_beside_other_work_is_not_called_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own_speed.csv"
    pair = command.Pair(lambda: time.sleep(0.002), lambda: time.sleep(0.001))
    monkeypatch.setattr(command, "RATIOS", {"sleeping": lambda folder: pair, "other": lambda folder: pair})
    monkeypatch.setattr(command, "OTHER_WORK", math.inf)
    assert measure(monkeypatch, file) == 0
    monkeypatch.setattr(command, "OTHER_WORK", -math.inf)
    assert "not checked" in str(measure(monkeypatch, file, "--only", "sleep"))
    assert [row.ratio for row in own_speed.read(file)] == ["sleeping", "other", "sleeping"]


def test_what_measures_nothing_ends_with_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without_data(folder: Path) -> command.Pair:
        raise command.Missing("data")

    assert measure(monkeypatch, tmp_path / "own_speed.csv", "--only", "nosuch") == 2
    sentence = capsys.readouterr().err
    assert all(name in sentence for name in ("nosuch", *command.RATIOS))
    monkeypatch.setattr(command, "RATIOS", {"grading": without_data})
    assert measure(monkeypatch, tmp_path / "own_speed.csv") == "nothing was measured"
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_the_measured_commit_is_the_same_after_the_measurement(tmp_path: Path) -> None:
    git = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True)
    file = tmp_path / own_speed.FILE.relative_to(ROOT)
    file.parent.mkdir(parents=True)
    for each in (file, tmp_path / "other.py"):
        each.write_text("a")
    git(["git", "init"])
    git(["git", "add", "."])
    git(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "a"])
    commit = command.measured_commit(tmp_path)
    file.write_text("b")
    assert command.measured_commit(tmp_path) == commit and len(commit) == 8
    (tmp_path / "other.py").write_text("b")
    assert command.measured_commit(tmp_path) == f"{commit}+"

"""The history of this project's own speed: what is worse than noise, and of which commit a row is."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from analysis.benchmark import own_speed
from system.errors import ROOT
from tests.performance.own_speed import measured_commit


def test_a_ratio_that_is_worse_by_more_than_the_noise(tmp_path: Path) -> None:
    first = own_speed.Row("a", "2026-11-26", "2 cores", "grading", 5, 0.50, 0.45, 0.55)
    noisy, worse = (replace(first, commit="b", value=v, low=v - 0.125, high=v + 0.125) for v in (0.625, 0.875))
    assert own_speed.worse([first], [noisy]) == []
    (sentence,) = own_speed.worse([first], [worse])
    assert "0.875" in sentence and "in a:" in sentence
    assert own_speed.worse([first], [replace(worse, machine="4 cores"), replace(worse, commit="a")]) == []
    assert len(own_speed.worse([first, worse], [replace(worse, commit="c")])) == 1  # not beside what was worse itself
    drift = [
        replace(first, commit=str(n), value=v, low=0.9 * v, high=1.1 * v) for n, v in enumerate((0.5, 0.55, 0.6, 0.66))
    ]
    assert own_speed.worse(drift[:1], drift[1:2]) == [] != own_speed.worse(drift[:-1], drift[-1:])
    own_speed.write([first, worse], tmp_path / "own_speed.csv")
    assert own_speed.read(tmp_path / "own_speed.csv") == [first, worse]
    assert "grading" in own_speed.plot([first, worse], tmp_path)


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
    commit = measured_commit(tmp_path)
    file.write_text("b")
    assert measured_commit(tmp_path) == commit and len(commit) == 8
    (tmp_path / "other.py").write_text("b")
    assert measured_commit(tmp_path) == f"{commit}+"

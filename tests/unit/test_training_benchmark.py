"""The benchmark of frameworks: what a training cost and reached, from its stored results, and the page of several."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from user_errors import refused

from analysis.benchmark import __main__ as program
from analysis.benchmark import own_speed, speed_options, trainings
from analysis.benchmark.bare_command import OUTSIDE, WHOLE
from analysis.benchmark.bare_command import STEPS as IN_STEPS
from analysis.benchmark.groups import common_accuracy, groups_of
from analysis.benchmark.trainings import Training
from cli import benchmark as command
from contracts import provenance, tables
from contracts.paths import ResultsFolder
from contracts.run_file import SCALES, framework_names
from contracts.seeds import run_id
from eval.statistics import Estimate

RUN = "crosscheck/trl"
STEPS = 4
COMPLETIONS = 16 * 8  # of the run at demo scale


def store(results: Path, run: str, seed: int, speed: float = 1.0, phases: bool = True) -> None:
    """A training of four steps with checkpoints at 2 and 4, whose every step takes 10 / speed seconds."""
    folder, name = ResultsFolder(results).run(run_id(run, seed)), run_id(run, seed)
    rows = []
    for step in range(1, STEPS + 1):
        times = [("start-up", 20.0)] if step == 1 else []
        times += [("sampling", 6 / speed), ("update", 3 / speed), ("rest", 1 / speed)]
        times += [("end", 5.0)] if step == STEPS else []
        own = [{"name": phase, "seconds": seconds} for phase, seconds in times] if phases else None
        known = {
            "wall_time": 10 * step / speed,
            "response_length_mean": 30.0,
            "phases": own,
            "host_memory_gb": 2.0 + step,
        }
        rows.append(dict.fromkeys(tables.TRAINING_LOG.names) | {"run": name, "stage": 1, "step": step} | known)
    table = pa.Table.from_pylist(rows, tables.TRAINING_LOG)
    for file in (folder.training_log, folder.stage(1) / "training_log.parquet"):
        tables.write(table, tables.TRAINING_LOG, file)
        provenance.write(file, machine="2 cores of it, 8 GB")
    scores = [
        dict.fromkeys(tables.SCORE.names) | {"run": name, "step": step, "benchmark": benchmark, "avg_at_k": value}
        for step, accuracy in ((0, 0.1), (2, 0.3), (4, 0.7))
        for benchmark, value in (("easy", accuracy + 0.1), ("hard", accuracy - 0.1))
    ]
    tables.write(pa.Table.from_pylist(scores, tables.SCORE), tables.SCORE, folder.scores)
    provenance.write(folder.scores)


def read(results: Path, run: str = RUN, seed: int = 0) -> Training:
    (one,) = trainings.read_trainings(results, [run], [seed], "demo")
    return one


def test_what_a_training_cost_and_reached(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    one = read(tmp_path)
    assert one.phases == {"start-up": 20.0, "sampling": 24.0, "update": 12.0, "rest": 4.0, "end": 5.0}
    assert one.seconds == 65 and one.seconds_of_steps == [10.0] * 4 and one.host_memory_gb == 6.0
    assert [(step, time) for step, time, _ in one.curve] == [(0, 0.0), (2, 40.0), (4, 60.0)]
    assert one.seconds_to(0.05) == 0.0 and one.seconds_to(0.3) == pytest.approx(40)
    assert one.seconds_to(0.5) == pytest.approx(50) and one.seconds_to(0.71) is None
    assert one.rate("sampling") == pytest.approx(30 * COMPLETIONS * STEPS / 24) and one.rate("reward") is None
    assert one.gpu_memory_gb is None and one.hardware == "2 cores of it, 8 GB"


def test_seeds_are_one_group_with_an_interval(tmp_path: Path) -> None:
    for seed, speed in enumerate((1.0, 1.25, 2.0)):
        store(tmp_path, RUN, seed, speed)
    (group,) = groups_of([read(tmp_path, seed=seed) for seed in range(3)])
    step = group.seconds_of_step
    assert step.value == pytest.approx((10 + 8 + 5) / 3) and step.low < 5 < 10 < step.high
    assert group.mean_phases(once=True) == {"start-up": 20.0, "end": 5.0}
    assert group.mean_phases(once=False)["update"] == pytest.approx((3 + 2.4 + 1.5) / 3)
    other = replace(group.trainings[0], curve=[(0, 0.0, 0.1), (2, 9.0, 0.4), (4, 11.0, 0.35)])
    assert common_accuracy([*group.trainings, other]) == 0.4


@pytest.mark.slow
def test_the_page_with_another_machine_s_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    varied = command.varied([RUN], "batch.samples_per_prompt=8,4", "demo")
    assert varied[0] == RUN  # whose value is 8
    for name in varied:
        for seed in (0, 1):
            store(tmp_path / "demo", name, seed, 1 + 0.1 * seed)
    theirs = replace(read(tmp_path / "demo", varied[0]), machine="64 cores of another", gpus=["H100", "H100"])
    trainings.write([theirs], tmp_path / "theirs.json")
    page = tmp_path / "page"
    monkeypatch.setattr(
        sys, "argv",
        ["benchmark", "--run", *varied, "--seeds", "0", "1", "--results", str(tmp_path / "demo"), "--output", str(page),
         "--with", str(tmp_path / "theirs.json"), "--price", "36"],
    )  # fmt: skip
    program.main()
    assert "cannot be told" in capsys.readouterr().out  # the same times
    costs = pd.read_csv(page / "costs.csv").set_index("run")
    assert len(costs) == 3 and costs["seeds"].to_list() == [2, 2, 1]
    here, there = costs.index[0], costs.index[2]
    assert "H100" in there and "prompt" not in there and "samples_per_prompt 8" in here
    assert costs.loc[there, "cost_to_accuracy"] == pytest.approx(36 * 2 * 60 / 3600)
    assert {"accuracy_by_time.svg", "step_by_phase.svg", "growth.svg", "index.html"} <= {f.name for f in page.iterdir()}
    stored = trainings.read(page / "benchmark.json")
    assert [one.varied["batch.samples_per_prompt"] for one in stored] == [8, 8, 4, 4]
    assert stored[0].phases == read(tmp_path / "demo").phases


def test_what_crosszero_adds_to_a_training(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    folder = ResultsFolder(tmp_path).run(run_id(RUN, 0))
    assert read(tmp_path).parts == {}
    log = folder.stage(1) / "training_log.parquet"
    provenance.write(log, job_seconds=70.0)  # 65 are the trainer's
    folder.bare_training(1).write_text(json.dumps({"seconds": 63.0, "parts": {"update": 11.0, "rest": 25.0}}))
    one = read(tmp_path)
    assert one.parts == {WHOLE: [70.0, 63.0], IN_STEPS: [40.0, 36.0], OUTSIDE: [30.0, 27.0], "update": [12.0, 11.0]}
    (group,) = groups_of([one])
    assert group.share(WHOLE) == Estimate(7 / 70, -math.inf, math.inf) and group.share("sampling") is None
    shares = program.share_table([group])
    assert shares.display["share of the whole (%)"].to_list() == ["+10.0", "+4.3", "+5.7", "+1.4"]
    trainings.write([one], tmp_path / "benchmark.json")
    assert trainings.read(tmp_path / "benchmark.json") == [one]
    provenance.write(log, job_seconds=50.0)  # of a job that resumed
    assert read(tmp_path).parts == {}
    folder.bare_training(1).write_text("{}")
    provenance.write(log, job_seconds=70.0)
    with refused("damaged-file"):
        read(tmp_path)


def test_every_option_for_speed_is_one_of_its_framework() -> None:
    for scale in SCALES:
        table, guides = speed_options.table(command.run_names(["crosscheck"], scale), scale)
        assert set(table["framework"]) == set(guides) == set(framework_names())


def test_a_ratio_that_is_worse_by_more_than_the_noise(tmp_path: Path) -> None:
    first = own_speed.Row("a", "2026-11-26", "2 cores", "grading", 5, 0.50, 0.45, 0.55)
    noisy, worse = (replace(first, commit="b", value=v, low=v - 0.125, high=v + 0.125) for v in (0.625, 0.875))
    assert own_speed.worse([first], [noisy]) == []
    (sentence,) = own_speed.worse([first], [worse])
    assert "0.875" in sentence and "in a:" in sentence
    assert own_speed.worse([first], [replace(worse, machine="4 cores"), replace(worse, commit="a")]) == []
    own_speed.write([first, worse], tmp_path / "own_speed.csv")
    assert own_speed.read(tmp_path / "own_speed.csv") == [first, worse]
    assert "grading" in own_speed.plot([first, worse], tmp_path)


def test_what_is_no_benchmark_is_refused(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0, phases=False)
    with refused("log-without-phases"):
        read(tmp_path)
    file = tmp_path / "other.json"
    for text in ("[]", "{", json.dumps({"format": trainings.FORMAT, "trainings": [{}]}), '{"format": "other"}'):
        file.write_text(text)
        with refused("not-a-benchmark"):
            trainings.read(file)
    store(tmp_path, RUN, 1)
    one = read(tmp_path, seed=1)
    with refused("other-benchmark"):
        trainings.put_together([one], [replace(one, scale="small")])
    with refused("repeated-seed"):
        trainings.put_together([one], [replace(one, curve=[(0, 0.0, 0.1), (4, 1.0, 0.7)])])
    assert trainings.put_together([one], [one, replace(one, seed=2)]) == [one, replace(one, seed=2)]
    for vary in ("steps", "steps=", "steps=1,,2"):
        with refused("bad-variation"):
            command.varied([RUN], vary, "demo")


def test_trainings_are_made_one_at_a_time_in_a_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(command.graph, "run_target", lambda log, settings, options: started.append(log) or 0)
    logs = [f"run{number}/{seed}" for number in range(3) for seed in range(4)]
    assert set(command.train_alone(logs, {}, [])) == {0}
    assert sorted(started) == logs != started
    assert command.run_names(["crosscheck"], "demo") == [f"crosscheck/{name}" for name in ("openrlhf", "trl", "verl")]

"""The benchmark of frameworks: what a training cost and reached, from its stored results, and the page of several."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.strategies import sampled_from
from user_errors import refused

from analysis.benchmark import __main__ as program
from analysis.benchmark import figures, request, trainings
from analysis.benchmark.bare_command import OUTSIDE, WHOLE
from analysis.benchmark.bare_command import STEPS as IN_STEPS
from analysis.benchmark.groups import common_accuracy, groups_of
from analysis.benchmark.trainings import Training
from analysis.measures import phases
from cli import benchmark as command
from contracts import provenance, tables
from contracts.paths import ResultsFolder
from contracts.run_file import framework_names
from contracts.seeds import run_id
from eval.statistics import Estimate
from recipes.runs import load_run
from system.errors import ROOT, UserError
from tests.unit.stored_training import COMPLETIONS, RUN, STEPS, read, store


def test_what_a_training_cost_and_reached(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    one = read(tmp_path)
    assert one.phases == {"start-up": 20.0, "sampling": 24.0, "update": 12.0, "rest": 4.0, "end": 5.0}
    assert one.seconds == 65 and one.seconds_of_steps == [10.0] * 4 and one.host_memory_gb == 6.0
    assert [(step, time) for step, time, _ in one.curve] == [(0, 20.0), (2, 40.0), (4, 60.0)]
    assert one.seconds_to(0.3) == pytest.approx(40) and one.seconds_to(0.2) == pytest.approx(30)
    assert one.begins_with(0.1) and one.seconds_to(0.1) is None and one.start_up == 20 and not one.resumed
    assert one.seconds_to(0.5) == pytest.approx(50) and one.seconds_to(0.71) is None
    assert one.rate("sampling") == pytest.approx(30 * COMPLETIONS * STEPS / 24) and one.rate("reward") is None
    assert one.gpu_memory_gb is None and one.hardware == "2 cores of it, 8 GB"


def test_each_stage_has_its_own_batch_start_and_end(tmp_path: Path) -> None:
    store(tmp_path, "deepscaler/deepseek-r1-distill-qwen-1.5b", 0, starts=(1, 3), ends=(2, 4), stages=(1, 1, 2, 3))
    one = read(tmp_path, "deepscaler/deepseek-r1-distill-qwen-1.5b", scale="full")
    sizes = [
        stage.batch["prompts_per_step"] * stage.batch["samples_per_prompt"]
        for stage in load_run("deepscaler/deepseek-r1-distill-qwen-1.5b", "full").stages
    ]
    assert one.completions_per_step == pytest.approx((2 * sizes[0] + sizes[1] + sizes[2]) / 4) != sizes[0]
    assert one.rate("sampling") == pytest.approx(30 * (2 * sizes[0] + sizes[1] + sizes[2]) / 24)
    assert [time for _, time, _ in one.curve] == [20, 40, 85] and one.start_up == 20  # with the first stage's end
    assert one.phases["start-up"] == 40 and not one.resumed


def test_what_sampled_in_vain_has_no_rate(tmp_path: Path) -> None:
    for run, known in ((RUN, True), ("dapo/qwen2.5-32b", False)):
        store(tmp_path, run, 0)
        one = read(tmp_path, run)
        assert (one.rate("sampling") is not None) == (one.response_tokens is not None) == known


def test_a_training_that_was_resumed_says_so(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0, starts=(1, 3))
    one = read(tmp_path)
    assert one.resumed and "seed 0" in " ".join(program.summary_sentences(groups_of([one]), 0.5))


@pytest.mark.parametrize("run", [f"{name}/qwen2.5-math-7b" for name in ("openr1", "simplerl", "drgrpo")])
def test_runs_that_do_not_state_the_prompts_of_a_step(tmp_path: Path, run: str) -> None:
    store(tmp_path, run, 0)
    assert read(tmp_path, run).completions_per_step > 1


@pytest.mark.parametrize(("recorded", "used"), [({}, 16), ({"gpus": 1}, 1)])
def test_gpus_are_those_of_all_nodes_or_those_recorded(tmp_path: Path, recorded: dict[str, int], used: int) -> None:
    store(tmp_path, "openr1/qwen2.5-math-7b", 0, devices=["NVIDIA H100", "cpu x"], **recorded)
    hardware = load_run("openr1/qwen2.5-math-7b", "full").hardware
    one = read(tmp_path, "openr1/qwen2.5-math-7b", scale="full")
    assert len(one.gpus) == (hardware["gpus"] if not recorded else used)
    (group,) = groups_of([one])
    assert group.payers == len(one.gpus)


def test_what_the_base_model_has_and_what_is_not_reached_is_said(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    one = read(tmp_path)
    better = replace(one, run="a/better", curve=[(0, 9.0, 0.6), (2, 20.0, 0.9)])
    slow = replace(one, run="a/slow", curve=[(0, 9.0, 0.1), (2, 20.0, 0.2)])
    times, missed, begun, _ = program.summary_sentences(groups_of([one, better, slow]), 0.5)
    assert RUN in times and "a/" not in times
    assert "a/slow" in missed and RUN not in missed and "a/better" in begun and RUN not in begun


def test_seeds_that_differ_in_more_than_the_seed(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    one = read(tmp_path)
    for key, value in (("packages", {"torch": "0"}), ("steps", 9), ("model", "other"), ("framework", "verl")):
        with refused("unequal-seeds", key=key):
            trainings.put_together([one, replace(one, seed=1, **{key: value})])
        assert len(groups_of(trainings.put_together([one], [replace(one, seed=1, **{key: value})]))) == 2
    assert len(trainings.put_together([one], [replace(one, machine="another", steps=9)])) == 2


def test_seeds_are_one_group_with_an_interval(tmp_path: Path) -> None:
    for seed, speed in enumerate((1.0, 1.25, 2.0)):
        store(tmp_path, RUN, seed, speed)
    (group,) = groups_of([read(tmp_path, seed=seed) for seed in range(3)])
    step = group.seconds_of_step
    assert step.value == pytest.approx((10 + 8 + 5) / 3) and step.low < 5 < 10 < step.high
    assert group.mean_phases(once=True) == {"start-up": 20.0, "end": 5.0}
    assert group.mean_phases(once=False)["update"] == pytest.approx((3 + 2.4 + 1.5) / 3)
    (wide,) = groups_of([read(tmp_path), replace(read(tmp_path), seed=9, seconds_of_steps=[99.0])])
    assert wide.seconds_of_step.low == 0  # no step takes less
    other = replace(group.trainings[0], curve=[(0, 0.0, 0.1), (2, 9.0, 0.4), (4, 11.0, 0.35)])
    assert common_accuracy([*group.trainings, other]) == 0.4


def test_a_second_measurement_on_such_a_machine_is_a_group_of_its_own(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    one = read(tmp_path)
    slower = replace(one, curve=[(0, 0.0, 0.1), (4, 99.0, 0.7)])
    again = [slower, replace(slower, seed=1)]
    together = trainings.put_together([one], [one, replace(one, seed=1)], again)
    assert [len(group.trainings) for group in groups_of(together)] == [2, 2]
    assert together[2:] == [replace(each, machine=f"{each.machine}, measurement 3") for each in again]
    elsewhere = replace(slower, machine="another")
    assert trainings.put_together([one], [slower, elsewhere])[2] == elsewhere


@pytest.mark.parametrize(
    "price, here, there",
    [("2.5", 2.5, None), ("4,H200=7", 4.0, 7.0), ("h200=7,EPYC=.5", 0.5, 7.0), ("X=1", None, None)],
)
def test_each_machine_has_its_price(
    one_training: Training, price: str, here: float | None, there: float | None
) -> None:
    one = replace(one_training, machine="2 cores of AMD EPYC, 8 GB")
    groups = groups_of([one, replace(one, machine="64 cores", gpus=["NVIDIA H200"])])
    prices = program.hourly(request.prices(price), groups, one.machine)
    assert [prices.get(group.name) for group in groups] == [here, there]


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
         "--with", str(tmp_path / "theirs.json"), "--price", "h100=36"],
    )  # fmt: skip
    program.main()
    assert "cannot be told" in capsys.readouterr().out  # the same times
    costs = pd.read_csv(page / "costs.csv").set_index("run")
    assert len(costs) == 3 and costs["seeds"].to_list() == [2, 2, 1]
    here, there = costs.index[0], costs.index[2]
    assert "H100" in there and "prompt" not in there and "samples_per_prompt 8" in here
    assert costs.loc[there, "cost_to_accuracy"] == pytest.approx(36 * 2 * 60 / 3600)
    assert math.isnan(costs.loc[here, "cost_to_accuracy"])
    assert {"accuracy_by_time.svg", "step_by_phase.svg", "growth.svg", "index.html"} <= {f.name for f in page.iterdir()}
    stored = trainings.read(page / "benchmark.json")
    assert [one.varied["batch.samples_per_prompt"] for one in stored] == [8, 8, 4, 4]
    assert stored[0].phases == read(tmp_path / "demo").phases


@pytest.mark.slow
def test_what_crosszero_adds_to_a_training(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    folder = ResultsFolder(tmp_path).run(run_id(RUN, 0))
    assert read(tmp_path).parts == {}
    log = folder.stage(1) / "training_log.parquet"
    provenance.write(log, job_seconds=70.0, machine="2 cores of it, 8 GB")  # 65 are the trainer's
    folder.bare_training(1).write_text(json.dumps({"seconds": 63.0, "parts": {"update": 11.0, "rest": 25.0}}))
    provenance.write(folder.bare_training(1), machine="another")
    assert read(tmp_path).parts == {}
    provenance.write(folder.bare_training(1), machine=provenance.read(log)["machine"])
    one = read(tmp_path)
    assert one.parts == {WHOLE: [70.0, 63.0], IN_STEPS: [40.0, 36.0], OUTSIDE: [30.0, 27.0], "update": [12.0, 11.0]}
    (group,) = groups_of([one])
    assert group.share(WHOLE) == Estimate(7 / 70, -math.inf, math.inf) and group.share("sampling") is None
    shares = program.share_table([group])
    assert shares.display["share of the whole (%)"].to_list() == ["+10.0", "+4.3", "+5.7", "+1.4"]
    trainings.write([one], tmp_path / "benchmark.json")
    assert trainings.read(tmp_path / "benchmark.json") == [one]
    store(tmp_path, RUN, 0, starts=(1, 3), job_seconds=170.0)  # of a job that resumed
    assert read(tmp_path).parts == {}
    store(tmp_path, RUN, 0)
    folder.bare_training(1).write_text("{}")
    provenance.write(log, job_seconds=70.0, machine="2 cores of it, 8 GB")
    with refused("damaged-file"):
        read(tmp_path)


def test_what_is_no_benchmark_is_refused(tmp_path: Path) -> None:
    for missing in ({1, 2, 3, 4}, {2}):
        store(tmp_path, RUN, 0, without_phases=missing)
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
    assert trainings.put_together([one], [one, replace(one, seed=2)]) == [one, replace(one, seed=2)]
    for vary in ("steps", "steps=", "steps=1,,2"):
        with refused("bad-variation"):
            command.varied([RUN], vary, "demo")


ODD = (
    None,
    "text",
    -1,
    1e999,
    math.nan,
    True,
    [],
    {},
    [None],
    {"update": -1.0},
    {"brewing": []},
    [(0, 1.0)],
    "a\x1b\ud800",
)


@pytest.mark.slow
@given(key=sampled_from([one.name for one in fields(Training)]), value=sampled_from(ODD))
@settings(max_examples=150)
def test_any_value_of_another_machine_s_file_is_shown_or_refused(
    tmp_path_factory: pytest.TempPathFactory, one_training: Training, key: str, value: object
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    trainings.write([one_training], folder / "other.json")
    content = json.loads((folder / "other.json").read_text())
    content["trainings"][0][key] = value
    (folder / "other.json").write_text(json.dumps(content))
    try:
        (theirs,) = trainings.read(folder / "other.json")
        (group,) = groups_of(trainings.put_together([theirs], [theirs]))
    except UserError as error:
        assert error.code == "not-a-benchmark"
        return
    assert "nan" not in str(program.costs_table([group], common_accuracy([theirs]), {group.name: 1.0}).display)
    assert "\x1b" not in group.name + str(program.versions_table([group]))


@pytest.fixture(scope="module")
def one_training(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A training as another machine would have it."""
    folder = tmp_path_factory.mktemp("results")
    store(folder, RUN, 0)
    return read(folder)


STORED = sorted((ROOT / "results/reference/benchmarks").glob("*.json"))


@pytest.mark.parametrize("file", STORED, ids=lambda f: f.stem)
def test_the_files_of_this_project_can_be_put_beside_others(file: Path) -> None:
    stored = trainings.read(file)
    groups = groups_of(stored)
    assert len({tuple(sorted(one.seed for one in group.trainings)) for group in groups}) == 1
    assert len(groups) == len(framework_names())
    other = [replace(one, machine="another") for one in stored]
    assert len(groups_of(trainings.put_together(stored, other))) == 2 * len(groups)


def test_phases_of_other_machines_are_those_that_can_be_drawn(tmp_path: Path, one_training: Training) -> None:
    named = replace(one_training, phases={f"{kind} and more": 1.0 for kind in phases.KINDS})
    trainings.write([named], tmp_path / "theirs.json")
    assert trainings.read(tmp_path / "theirs.json") == [named]
    trainings.write([replace(named, phases={"rollout": 1.0})], tmp_path / "theirs.json")
    with refused("not-a-benchmark"):
        trainings.read(tmp_path / "theirs.json")


def test_a_file_is_read_before_anything_is_trained(tmp_path: Path, one_training: Training) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with refused("not-a-benchmark"):
        request.check([RUN], "demo", [tmp_path / "deep.json"], "", tmp_path)
    trainings.write([one_training], tmp_path / "alike.json")
    request.check([RUN], "demo", [tmp_path / "alike.json"], "", tmp_path)
    text = (tmp_path / "alike.json").read_text()
    for there in ("max_tokens 48", "max_tokens 96, prompt r1-tags"):
        (tmp_path / "otherwise.json").write_text(text.replace("max_tokens 96", there))
        with refused("other-benchmark"):
            request.check([RUN], "demo", [tmp_path / "otherwise.json"], "", tmp_path)
    for file in STORED:
        scale = trainings.read(file)[0].scale
        request.check(request.run_names(request.RUNS, scale), scale, [file], "", tmp_path)


def test_shares_are_weighted_by_what_they_are_of(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    log = ResultsFolder(tmp_path).run(run_id(RUN, 0)).training_log
    rows = tables.read(log, tables.TRAINING_LOG).to_pylist()
    for row, busy, tokens, padding in zip(
        rows, (0.2, None, 0.8, 0.5), (100.0, 100.0, None, 0.0), (0.5, 0.0, None, 1.0), strict=True
    ):
        row |= {"gpu_utilisation": busy, "trained_tokens": tokens, "padding_share": padding}
    rows[3]["host_memory_gb"] = None
    tables.write(pa.Table.from_pylist(rows, tables.TRAINING_LOG), tables.TRAINING_LOG, log)
    provenance.write(log)
    one = read(tmp_path)
    assert one.gpu_utilisation == pytest.approx((0.2 * 30 + 0.8 * 10 + 0.5 * 15) / 55)  # with start-up and end
    assert one.padding_share == pytest.approx(100 / 300) and one.host_memory_gb == 5.0


@pytest.mark.slow
def test_growth_is_of_one_setting_whatever_else_is_shown(tmp_path: Path, one_training: Training) -> None:
    one = replace(one_training, gpus=["H100"])
    by_gpus = [replace(one, varied={"hardware.gpus": n}, gpus=["H100"] * n) for n in (1, 2, 4)]
    rest = [replace(one, run="a/b"), replace(one, varied={"steps": 3})]
    alike = figures.varied_alike(groups_of([*by_gpus, *rest]))
    assert [group.varied_value for group in alike] == [1, 2, 4] and len({group.line for group in alike}) == 1
    assert figures.varied_alike(groups_of(rest)) == []
    schedules = [replace(one, varied={"optimizer.schedule": name}) for name in ("constant", "cosine", "linear")]
    theirs = [replace(each, machine="another") for each in schedules[::-1]]
    drawn = figures.plot_growth(groups_of([*schedules, *theirs]), tmp_path)
    assert drawn.count("cosine") == 2 * 1  # a tick in each panel
    unknown = [replace(each, host_memory_gb=None) for each in by_gpus]
    assert figures.plot_growth(groups_of(unknown), tmp_path)

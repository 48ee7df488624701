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
from analysis.benchmark import exchange, figures, request
from analysis.benchmark.bare_command import OUTSIDE, WHOLE
from analysis.benchmark.bare_command import STEPS as IN_STEPS
from analysis.benchmark.groups import common_accuracy, groups_of
from analysis.benchmark.trainings import Training
from cli import benchmark as command
from contracts import provenance, tables
from contracts.paths import ResultsFolder
from contracts.seeds import run_id
from eval.statistics import Estimate
from recipes.runs import load_run
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
    store(
        tmp_path,
        "deepscaler/deepseek-r1-distill-qwen-1.5b",
        0,
        starts=(1, 3),
        ends=(2, 4),
        stages=(1, 1, 2, 3),
        scale="full",
    )
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
    store(tmp_path, "openr1/qwen2.5-math-7b", 0, scale="full", devices=["NVIDIA H100", "cpu x"], **recorded)
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
    times, steps, unnamed, trained, missed, begun, _ = program.summary_sentences(groups_of([one, better, slow]), 0.5)
    assert RUN in times and "a/" not in times
    assert all(f"{name} 10 (10)" in steps and f"{name} 6.2 %" in unnamed for name in (RUN, "a/slow", "a/better"))
    assert "4 steps of" in trained and "of 30 to 30 tokens" in trained
    assert "a/slow" in missed and RUN not in missed and "a/better" in begun and RUN not in begun


def test_seeds_that_differ_in_more_than_the_seed(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    one = read(tmp_path)
    for key, value in (("packages", {"torch": "0"}), ("steps", 9), ("model", "other"), ("framework", "verl")):
        with refused("unequal-seeds", key=key):
            exchange.put_together([one, replace(one, seed=1, **{key: value})])
        assert len(groups_of(exchange.put_together([one], [replace(one, seed=1, **{key: value})]))) == 2
    assert len(exchange.put_together([one], [replace(one, machine="another", steps=9)])) == 2


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
    together = exchange.put_together([one], [one, replace(one, seed=1)], again)
    assert [len(group.trainings) for group in groups_of(together)] == [2, 2]
    assert together[2:] == [replace(each, measurement=3) for each in again]
    assert groups_of(together)[1].name.endswith(", measurement 3")
    elsewhere = replace(slower, machine="another")
    assert exchange.put_together([one], [slower, elsewhere])[2] == elsewhere
    assert len(exchange.put_together([one], again, again, [replace(each, padding_share=None) for each in again])) == 3
    later = replace(one, parts={WHOLE: [90.0, 80.0]}, padding_share=0.4, host_memory_gb=None)
    assert exchange.put_together([later], [one]) == [later]  # its own record, which has more


@pytest.mark.parametrize(
    "price, here, slower, beside, there",
    [
        ("2.5", 2.5, 2.5, None, None),
        ("4,H200=7", 4.0, 4.0, 7.0, 7.0),
        ("h200=7,EPYC=.5", 0.5, 0.5, 7.0, 7.0),
        ("EPYC=.5,h200=7", 0.5, 0.5, 7.0, 7.0),  # a GPU's name before its machine's
        ("1,EPYC=.5", 1.0, 1.0, 0.5, None),  # here no name counts
        ("H200=7,NVIDIA H200=8", None, None, 8.0, 8.0),  # the longest
        ("X=1", None, None, None, None),
    ],
)
def test_each_machine_has_its_price(
    one_training: Training,
    price: str,
    here: float | None,
    slower: float | None,
    beside: float | None,
    there: float | None,
) -> None:
    one = replace(one_training, machine="2 cores of AMD EPYC, 8 GB")
    again, gpu = replace(one, curve=[(0, 0.0, 0.1), (4, 99.0, 0.7)]), replace(one, gpus=["NVIDIA H200"])
    groups = groups_of(exchange.put_together([one], [again], [gpu], [replace(gpu, machine="64 cores")]))
    prices = program.hourly(request.prices(price), groups, [one])
    assert [prices.get(group.name) for group in groups] == [here, slower, beside, there]


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
    exchange.write([theirs], tmp_path / "theirs.json")
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
    assert math.isnan(costs.loc[there, "start_up_seconds_high"]) and costs.loc[there, "price"] == 36
    assert set(costs["accuracy"]) == {0.7}
    assert costs.loc[there, "cost_to_accuracy"] == pytest.approx(36 * 2 * 60 / 3600)
    assert math.isnan(costs.loc[here, "cost_to_accuracy"])
    assert {"accuracy_by_time.svg", "step_by_phase.svg", "growth.svg", "index.html"} <= {f.name for f in page.iterdir()}
    stored = exchange.read(page / "benchmark.json")
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
    exchange.write([one], tmp_path / "benchmark.json")
    assert exchange.read(tmp_path / "benchmark.json") == [one]
    store(tmp_path, RUN, 0, starts=(1, 3), job_seconds=170.0)  # of a job that resumed
    assert read(tmp_path).parts == {}
    store(tmp_path, RUN, 0)
    folder.bare_training(1).write_text("{}")
    provenance.write(log, job_seconds=70.0, machine="2 cores of it, 8 GB")
    with refused("damaged-file"):
        read(tmp_path)


def test_what_was_varied_is_told_apart(one_training: Training) -> None:
    settings: list[dict[str, object]] = [
        {}, {"rollout.temperature": 1}, {"evaluation.override.temperature": 1}, {"rollout.temperature": "1"},
        {"rollout.temperature": 1, "steps": 2}, {"model": "true"}, {"model": True}, {"model": "tiny"},
    ]  # fmt: skip
    names = [group.name for group in groups_of([replace(one_training, varied=each) for each in settings])]
    assert len(names) == len(set(names)) == len(settings) and names[-1] == f"{RUN}, model tiny"
    either = [{"a.b": 1, "c": 2}, {"c": 2, "a.b": 1}]
    assert len(groups_of([replace(one_training, varied=each) for each in either])) == 1


def test_shares_end_at_one_hundred_percent(one_training: Training) -> None:
    for values in ([0.99, 0.8, 0.97], [0.0, 0.05, 0.3], [1.0, 1.0]):
        rows = [replace(one_training, seed=n, gpu_utilisation=x, padding_share=x) for n, x in enumerate(values)]
        (group,) = groups_of(rows)
        for share in (group.mean_of("gpu_utilisation"), group.mean_of("padding_share")):
            assert share and 0 <= share.low <= share.value <= share.high <= 1
    assert group.mean_of("host_memory_gb") == Estimate(6.0, 6.0, 6.0)


@pytest.mark.parametrize("highest, target", [(0.7873, "78.7"), (0.285, "28.5"), (0.1 + 0.2, "30.0"), (0.0004, "0.0")])
def test_the_common_accuracy_can_be_asked_for_as_it_is_shown(
    one_training: Training, highest: float, target: str
) -> None:
    one = replace(one_training, curve=[(0, 0.0, 0.0), (2, 9.0, highest / 2), (4, 20.0, highest)])
    accuracy = common_accuracy([one])
    assert accuracy == float(target) / 100 and f"{100 * accuracy:.1f}" == target
    assert (one.seconds_to(accuracy) is None) == (accuracy == 0)


def test_every_tenth_of_a_percent_is_reached_by_what_has_it(one_training: Training) -> None:
    for tenths in range(1, 1001):
        one = replace(one_training, curve=[(0, 0.0, 0.0), (4, 20.0, tenths / 1000)])
        assert common_accuracy([one]) == float(f"{tenths / 10:.1f}") / 100
        assert one.seconds_to(common_accuracy([one])) == pytest.approx(20)


def test_scores_that_are_not_those_of_the_checkpoints_are_refused(tmp_path: Path) -> None:
    file = ResultsFolder(tmp_path).run(run_id(RUN, 0)).scores

    def rewrite(scores: pd.DataFrame) -> None:
        tables.write(pa.Table.from_pandas(scores, tables.SCORE, preserve_index=False), tables.SCORE, file)
        provenance.write(file)

    store(tmp_path, RUN, 0)
    scores = tables.read(file, tables.SCORE).to_pandas()
    one_less = (scores["step"] == 2) & (scores["benchmark"] == scores["benchmark"][0])
    for changed in (
        scores[~one_less],
        scores.assign(avg_at_k=scores["avg_at_k"].mask(one_less)),
        scores[scores["step"] > 0],
        scores[scores["step"] == 0],
        scores[:0],
        scores.assign(step=10 * scores["step"]),
        scores.assign(protocol="greedy-boxed"),
        scores.assign(benchmark=scores["benchmark"] + "_of_old"),
    ):
        rewrite(changed)
        with refused("other-scores"):
            read(tmp_path)
    rewrite(scores[::-1])
    assert [step for step, _, _ in read(tmp_path).curve] == [0, 2, 4]


@pytest.mark.slow
def test_a_training_that_was_stopped_is_shown_without_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = tmp_path / "demo", tmp_path / "page"
    for seed in (0, 1):
        store(results, RUN, seed)
        store(results, "crosscheck/verl", seed)
    arguments = ["benchmark", "--seeds", "0", "1", "--results", str(results), "--output", str(page), "--run"]

    def make_page(*runs: str) -> str:
        monkeypatch.setattr(sys, "argv", [*arguments, *runs])
        program.main()
        return capsys.readouterr().out

    scores = ResultsFolder(results).run(run_id(RUN, 1)).scores
    tables.write(tables.SCORE.empty_table(), tables.SCORE, scores)
    provenance.write(scores, ended="entropy fell to 0")
    one = read(results, seed=1)
    assert not one.curve and one.start_up is None and one.seconds == 65 and one.seconds_to(0.3) is None
    stopped = replace(one, steps=3, completions_per_step=1.0)  # as one of another stage may have had
    assert len(groups_of(exchange.put_together([stopped, read(results)]))) == 1
    text = make_page(RUN, "crosscheck/verl")
    assert f"Not all seeds reach 70.0 %: {RUN}." in text and "seed 1 (step 4: entropy fell to 0)" in text
    assert exchange.read(page / request.FILE)[1] == one
    scores = ResultsFolder(results).run(run_id(RUN, 0)).scores
    tables.write(tables.SCORE.empty_table(), tables.SCORE, scores)
    provenance.write(scores, ended="entropy fell to 0")
    text = make_page(RUN)
    assert "No training has an accuracy" in text and "65" not in text and "1.1" in text  # minutes of the whole


def test_no_measurement_is_lost_by_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path, RUN, 0)
    page = tmp_path / "page"
    exchange.write([replace(read(tmp_path), seed=7)], page / request.FILE)
    before = (page / request.FILE).read_bytes()
    (tmp_path / "broken.json").write_text("{")
    arguments = ["benchmark", "--run", RUN, "--results", str(tmp_path), "--output", str(page), "--seeds", "0"]
    for more, code in (
        (["--with", str(page / request.FILE)], "own-file"),
        (["--with", str(page / ".." / "page" / request.FILE)], "own-file"),
        (["--with", str(tmp_path / "broken.json")], "not-a-benchmark"),
        (["0"], "repeated-seed"),
    ):
        monkeypatch.setattr(sys, "argv", [*arguments, *more])
        with refused(code):
            program.main()
    for accuracy in ("nan", "-5", "inf", "0", "101"):
        monkeypatch.setattr(sys, "argv", [*arguments, f"--accuracy={accuracy}"])
        with pytest.raises(SystemExit):
            program.main()
    assert (page / request.FILE).read_bytes() == before


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
    other = [replace(one, varied={"batch.samples_per_prompt": n}, gpus=["H100"] * m) for m in (1, 4) for n in (8, 16)]
    assert len({group.line for group in groups_of(other)}) == 2  # not one through both numbers of GPUs
    schedules = [replace(one, varied={"optimizer.schedule": name}) for name in ("constant", "cosine", "linear")]
    theirs = [replace(each, machine="another") for each in schedules[::-1]]
    drawn = figures.plot_growth(groups_of([*schedules, *theirs]), tmp_path)
    assert drawn.count("cosine") == 2 * 1  # a tick in each panel
    unknown = [replace(each, host_memory_gb=None) for each in by_gpus]
    assert figures.plot_growth(groups_of(unknown), tmp_path)

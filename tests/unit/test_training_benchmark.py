"""The benchmark of frameworks: what a training cost and reached, from its stored results."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from user_errors import refused

from analysis.benchmark import __main__ as program
from analysis.benchmark import exchange
from analysis.benchmark.bare_command import OUTSIDE, WHOLE
from analysis.benchmark.bare_command import STEPS as IN_STEPS
from analysis.benchmark.groups import common_accuracy, groups_of
from analysis.benchmark.trainings import Training
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
    assert [group.name for group in groups_of(together)] == [f"{RUN} (A)", f"{RUN} (B)"]
    assert groups_of(together)[1].hardware.endswith(", measurement 3")
    elsewhere = replace(slower, machine="another")
    assert exchange.put_together([one], [slower, elsewhere])[2] == elsewhere
    assert len(exchange.put_together([one], again, again, [replace(each, padding_share=None) for each in again])) == 3
    later = replace(one, parts={WHOLE: [90.0, 80.0]}, padding_share=0.4, host_memory_gb=None)
    assert exchange.put_together([later], [one]) == [later]  # its own record, which has more


def test_machines_have_letters_and_a_run_s_stand_together(one_training: Training) -> None:
    count = 60
    machines = [replace(one_training, machine=f"{cores} cores") for cores in range(1, count + 1)]
    every = [replace(each, run=run) for each in machines for run in ("a/b", "a/c")]
    groups = groups_of(every)
    letters = [group.letter for group in groups[:count]]
    assert letters == [group.letter for group in groups[count:]] and len(set(letters)) == count
    assert letters[:2] + letters[25:28] == ["A", "B", "Z", "AA", "BB"]
    assert [group.name for group in groups] == [f"{run} ({each})" for run in ("a/b", "a/c") for each in letters]
    assert [group.line for group in groups] == [group.name for group in groups]  # each has a line of its own
    assert {group.name for group in groups_of(every[:2])} == {"a/b", "a/c"}  # one machine needs no letter
    sentence = "; ".join(f"{group.letter} is {group.hardware}" for group in groups[:count])
    assert program.summary_sentences(groups, 0.5)[0].endswith(f". {sentence}.")
    assert not any(one_training.machine in text for text in program.summary_sentences(groups_of(every[:2]), 0.5))


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([29.1, 29.4], "completions of 29 tokens on average,"),
        ([30.0, 29.1, 28.6, None], "completions of 29 to 30 tokens on average,"),
        ([None], "completions, which"),
    ],
)
def test_lengths_of_completions_in_words(lengths: list[float | None], text: str, one_training: Training) -> None:
    every = [replace(one_training, seed=seed, response_tokens=length) for seed, length in enumerate(lengths)]
    assert any(text in sentence for sentence in program.summary_sentences(groups_of(every), 0.5))


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

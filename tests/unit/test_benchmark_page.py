"""The page of a benchmark: what it says, shows and keeps of its trainings."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from user_errors import refused

from analysis.benchmark import __main__ as program
from analysis.benchmark import exchange, figures, request
from analysis.benchmark.groups import common_accuracy, groups_of
from analysis.benchmark.trainings import Training
from cli import benchmark as command
from contracts import provenance, tables
from contracts.paths import ResultsFolder
from contracts.seeds import run_id
from tests.unit.stored_training import RUN, read, store


def test_what_the_base_model_has_and_what_is_not_reached_is_said(tmp_path: Path) -> None:
    store(tmp_path, RUN, 0)
    one = read(tmp_path)
    better = replace(one, run="a/better", curve=[(0, 9.0, 0.6), (2, 20.0, 0.9)])
    slow = replace(one, run="a/slow", curve=[(0, 9.0, 0.1), (2, 20.0, 0.2)])
    times, steps, unnamed, trained, missed, begun, _ = program.summary_sentences(groups_of([one, better, slow]), 0.5)
    assert RUN in times and "a/" not in times
    assert all(f"{name} 10 (10)" in steps and f"{name} 6.2 %" in unnamed for name in (RUN, "a/slow", "a/better"))
    assert "4 steps of 128 completions of 30 tokens on average, which" in trained
    assert "a/slow" in missed and RUN not in missed and "a/better" in begun and RUN not in begun


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
    stored_machine = read(tmp_path / "demo", varied[0]).machine
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
    assert there == f"{RUN} (B)" and "samples_per_prompt 8 (A)" in here
    assert costs["machine"].to_list() == [stored_machine] * 2 + ["2 × H100, 64 cores of another"]
    assert math.isnan(costs.loc[there, "start_up_seconds_high"]) and costs.loc[there, "price"] == 36
    assert set(costs["accuracy"]) == {0.7}
    assert costs.loc[there, "cost_to_accuracy"] == pytest.approx(36 * 2 * 60 / 3600)
    assert math.isnan(costs.loc[here, "cost_to_accuracy"])
    assert {"accuracy_by_time.svg", "step_by_phase.svg", "growth.svg", "index.html"} <= {f.name for f in page.iterdir()}
    stored = exchange.read(page / "benchmark.json")
    assert [one.varied["batch.samples_per_prompt"] for one in stored] == [8, 8, 4, 4]
    assert stored[0].phases == read(tmp_path / "demo").phases


@pytest.mark.parametrize("ends", [0.0, 0.1, 0.1004, 0.05])
@pytest.mark.parametrize("failed", [1, 2, 3])
def test_what_learns_nothing_takes_no_time_from_the_others(one_training: Training, failed: int, ends: float) -> None:
    lines = [[(0, 0.0, 0.1), (4, 20.0, 0.5)]] * (3 - failed) + [[(0, 0.0, 0.1), (4, 20.0, ends)]] * failed
    some = [replace(one_training, seed=seed, curve=line) for seed, line in enumerate(lines)]
    groups = groups_of([*some, *(replace(one, run="a/slower", curve=[(0, 0.0, 0.1), (4, 80.0, 0.5)]) for one in some)])
    accuracy = common_accuracy([one for group in groups for one in group.trainings])
    assert accuracy == 0.5
    costs = program.costs_table(groups, accuracy, {group.name: 1.0 for group in groups})
    first, second = costs.display.to_dict("records")
    assert second["minutes to 50.0 %"] == "1.3 [1.3, 1.3]" and costs.data["reached"].to_list() == [3 - failed, 3]
    for header in ("minutes to 50.0 %", "cost to 50.0 %"):
        assert first[header].endswith(f", {3 - failed} of 3") if failed < 3 else first[header] == program.UNKNOWN
    text = program.summary_sentences(groups, accuracy)
    missed = "; ".join(f"{RUN}, seed {seed}" for seed in range(3 - failed, 3))
    assert f"These do not reach 50.0 %, and count in no time until then: {missed}." in text
    assert text[0].endswith(f"a/slower 1.3; {RUN} 0.3 with {3 - failed} of 3 seeds." if failed < 3 else "a/slower 1.3.")
    assert not any("cannot be told" in sentence for sentence in text)  # from means over unlike seeds
    assert common_accuracy(some[3 - failed :]) == float(f"{ends:.3f}")  # none learns


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
    assert f"These do not reach 70.0 %, and count in no time until then: {RUN}, seed 1." in text
    assert "seed 1 (step 4: entropy fell to 0)" in text
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

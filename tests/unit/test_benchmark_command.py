"""What a benchmark is asked for: refused before anything is trained, and trained one at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from user_errors import refused

from analysis.benchmark import request, speed_options
from cli import benchmark as command
from contracts.run_file import SCALES, framework_names, validate
from eval.run_settings import benchmarks_as_evaluated
from recipes.runs import load_run
from system.errors import ROOT, UserError
from system.yaml_files import read_yaml
from tests.forked_command import run_snakemake


def check(names: Sequence[str], others: Sequence[str | Path] = (), scale: str = "demo", price: str = "") -> None:
    request.check(names, scale, others, price, Path("page"))


def test_every_option_for_speed_is_one_of_its_framework() -> None:
    for scale in SCALES:
        table, guides = speed_options.table(request.run_names(["crosscheck"], scale), scale)
        assert set(table["framework"]) == set(guides) == set(framework_names())


@pytest.mark.parametrize("key, values", [("accuracy", (0.0, -5.0, 101.0, "NaN")), ("price", (0.0, -3.0, math.inf))])
def test_what_the_page_could_not_show_is_refused(key: str, values: Sequence[object]) -> None:
    settings = read_yaml(ROOT / "config" / "config.yaml")
    validate(settings | {key: 50.0}, "config", Path("config.yaml"))
    for value in (*values, math.nan, True):
        with pytest.raises(UserError, match=key):
            validate(settings | {key: value}, "config", Path("config.yaml"))


@pytest.mark.parametrize(
    "price",
    [
        "0",
        "-1",
        "inf",
        "NaN",
        "H200",
        "H200=",
        "=4",
        " =4",
        "H200=4,",
        "H200=x",
        "1,H200=-1",
        "H200=0",
        "1e999",
        ",",
        "-x=4",
    ],
)
def test_prices_that_are_none_are_refused_before_anything_is_trained(price: str) -> None:
    with refused("bad-price"):
        check(["crosscheck/trl"], price=price)


def test_runs_that_cannot_be_compared_are_refused_before_they_are_trained() -> None:
    check(["openr1/qwen2.5-math-7b", "simplerl/qwen2.5-math-7b"])
    for other, scale in (
        ("logicrl/qwen2.5-7b", "demo"),  # other benchmarks
        ("gsm8k/qwen2.5-0.5b-instruct-as-meant", "demo"),  # another prompt, extraction and length
        ("openr1/deepseek-r1-distill-qwen-7b", "full"),  # another protocol
    ):
        with refused("other-benchmark"):
            check(["crosscheck/trl", other], scale=scale)
    for run in request.run_names(request.RUNS, "demo"):
        check(command.varied([run], "batch.samples_per_prompt=8,16,24", "demo"))
        with refused("batch-does-not-divide"):
            check(command.varied([run], "batch.samples_per_prompt=8,4", "demo"))
        for vary in ("evaluation.override.max_tokens=96,48", "evaluation.protocol=demo,greedy-boxed"):
            with refused("other-benchmark"):
                check(command.varied([run], vary, "demo"))


def test_overrides_are_read_alike_in_any_order() -> None:
    run = load_run("crosscheck/trl", "small")
    reverse = {**run.evaluation, "override": dict(reversed(run.evaluation["override"].items()))}
    named = benchmarks_as_evaluated(replace(run, evaluation=reverse))
    assert named == benchmarks_as_evaluated(run)
    assert named[0] == 'word_problems_1 by small (max_tokens 64, prompt calculate, stop ["\\n"])'


@pytest.fixture
def handed_on(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The configurations that the workflow is started with."""
    settings: list[dict[str, str]] = []
    monkeypatch.setattr(command.graph, "run_target", lambda target, chosen, options: settings.append(chosen) or 0)
    return settings


@pytest.mark.parametrize("price", ["010", "2.5", "#H200=4", "[H200]=4", "*=4", "a: b=3", "~=3", "1e3", "'H'=3", '"=3'])
def test_a_price_is_handed_on_as_it_is(handed_on: list[dict[str, str]], price: str) -> None:
    done = CliRunner().invoke(command.command, ["crosscheck/trl", "--seeds", "0", "--price", price])
    assert done.exit_code == 0, done.exception
    assert {yaml.safe_load(settings["price"]) for settings in handed_on} == {price}


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["--config", "seeds=3"], "schema-broken"),
        (["--config", "seeds=["], "invalid-yaml"),
        (["--seeds", "0,0"], "schema-broken"),
        (["--config", "scale=x"], "schema-broken"),
        (["--config", "no_such_key=1"], "schema-broken"),
        (["--accuracy", "nan"], "schema-broken"),
        (["--accuracy", "101"], "schema-broken"),
        (["--config", "price=x"], "bad-price"),
        (["--config", "price=-3"], "schema-broken"),
        (["--config", "with=[/nowhere.json]"], "not-a-benchmark"),
        (["--dry-run", "--price", "H200"], "bad-price"),
    ],
)
def test_settings_are_checked_before_anything_is_trained(
    handed_on: list[dict[str, str]], arguments: list[str], code: str
) -> None:
    done = CliRunner().invoke(command.command, ["crosscheck/trl", *arguments])
    assert isinstance(done.exception, UserError) and done.exception.code == code, done.exception
    assert not handed_on


def test_a_file_that_is_named_twice_is_handed_on_once(handed_on: list[dict[str, str]]) -> None:
    file = str(ROOT / "results/reference/benchmarks/epyc-family-26.json")
    done = CliRunner().invoke(command.command, ["crosscheck/trl", "--dry-run", "--with", file, "--with", file])
    assert done.exit_code == 0, done.exception
    assert [yaml.safe_load(settings["with"]) for settings in handed_on] == [[file]]


def test_the_file_of_the_page_itself_is_not_one_of_others(tmp_path: Path, handed_on: list[dict[str, str]]) -> None:
    folder = request.page_folder(tmp_path / "demo", ["crosscheck/trl"], "demo")
    folder.mkdir(parents=True)
    (folder / request.FILE).write_text("{}")
    (tmp_path / "link.json").symlink_to(folder / request.FILE)
    for file in (folder / request.FILE, tmp_path / "link.json"):
        arguments = ["crosscheck/trl", "--config", f"results={tmp_path}", "--with", str(file)]
        done = CliRunner().invoke(command.command, arguments)
        assert isinstance(done.exception, UserError) and done.exception.code == "own-file" and not handed_on


@pytest.mark.slow
@pytest.mark.parametrize("target, cores", [("benchmark", {7}), ("reproduce_all", {1, 2})])
def test_while_a_benchmark_is_made_each_training_has_the_machine(target: str, cores: set[int]) -> None:
    settings = ("scale=demo", "reproduce=[crosscheck]", "bare=true", "results=nowhere")
    done = run_snakemake("-n", "-p", "--cores", "7", target, "--config", *settings)
    assert done.returncode == 0, done.stderr
    jobs = re.findall(r"rule (train|bare_training):(.*?)\n\n", done.stdout + done.stderr, re.DOTALL)
    threads = {int(known[1]) if (known := re.search(r"threads: (\d+)", job)) else 1 for _, job in jobs}
    assert threads == cores and {rule for rule, _ in jobs} == {"train", *(["bare_training"] if 7 in cores else [])}


def test_trainings_are_made_one_at_a_time_in_a_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(command.graph, "run_target", lambda log, settings, options: started.append(log) or 0)
    logs = [f"run{number}/{seed}" for number in range(3) for seed in range(4)]
    assert set(command.train_alone(logs, {}, [])) == {0}
    assert sorted(started) == logs != started
    assert request.run_names(["crosscheck"], "demo") == [f"crosscheck/{name}" for name in ("openrlhf", "trl", "verl")]

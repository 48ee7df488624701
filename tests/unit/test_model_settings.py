"""How a model is asked: as the user says, else as its record says, else as the benchmark's task has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eval import benchmark, model_settings
from eval.model_settings import Model, Wishes, decide
from recipes.runs import load_run
from tests.unit.model_folders import CONTENT
from tests.user_errors import refused

HUB = Model("acme/model-7b")


def checkpoint(folder: Path, run: str, step: int = 24, **record: Any) -> Path:
    """A folder with the record of a run's checkpoint."""
    folder.mkdir(exist_ok=True)
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        (folder / name).write_text(CONTENT[name])
    (folder / "provenance.json").write_text(json.dumps({"run": f"{run}/seed-0", "step": step, **record}))
    return folder


def model_at(folder: Path, scale: str = "demo") -> Model:
    return Model(str(folder), folder, model_settings.run_of_folder(folder, scale))


def protocol_and_prompt(models: list[Model], **wishes: Any) -> tuple[str, str]:
    """Protocol and prompt."""
    evaluation = decide(models, Wishes(**wishes)).evaluation
    return evaluation["protocol"], model_settings.prompt_of(evaluation)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gsm8k", ("greedy-boxed", "boxed")),
        ("theoremqa", ("greedy-boxed", "boxed")),
        ("countdown", ("greedy-boxed", "tinyzero-instruct")),
        ("leetcode", ("greedy-boxed", "programs-answer")),
        ("svg_figures", ("svg-drawing", "svg-drawing")),
        ("maze_4x4", ("greedy-boxed", "maze-chinese")),
        ("maze_demo", ("greedy-boxed", "maze-english")),
    ],
)
def test_a_model_without_a_record_is_asked_as_the_task_has_it(name: str, settings: tuple[str, str]) -> None:
    assert protocol_and_prompt([HUB], benchmarks=[name]) == settings


@pytest.mark.parametrize("name", benchmark.names())
def test_every_benchmark_has_a_prompt_that_asks_for_what_it_needs(name: str) -> None:
    assert not model_settings.misfits(benchmark.default_settings(name)[1], [name])


def test_a_checkpoint_is_asked_as_its_run_was_wherever_it_is(tmp_path: Path) -> None:
    tinyzero = load_run("tinyzero/grpo-3b", "demo")
    model = model_at(checkpoint(tmp_path / "copy", tinyzero.name, model=tinyzero.model))
    settings = decide([model], Wishes())
    assert list(settings.benchmarks) == tinyzero.evaluation["benchmarks"]
    assert settings.evaluation["override"] == tinyzero.evaluation["override"]
    assert protocol_and_prompt([model], benchmarks=["countdown"]) == ("demo", "tinyzero-base")
    assert protocol_and_prompt([model], benchmarks=["countdown"], prompt="tinyzero-instruct") == (
        "demo",
        "tinyzero-instruct",
    )
    assert protocol_and_prompt([model], benchmarks=["countdown"], protocol="greedy-boxed") == (
        "greedy-boxed",
        "tinyzero-base",
    )
    assert protocol_and_prompt([model], benchmarks=["gsm8k"], protocol="qwen-math") == ("qwen-math", "boxed")
    openr1 = model_at(checkpoint(tmp_path / "other", "openr1/qwen2.5-math-7b", model="demo"))
    assert protocol_and_prompt([openr1], benchmarks=["gsm8k"]) == ("demo", "boxed")


def test_the_scale_of_a_checkpoint_is_that_of_its_record_else_of_its_base_model(tmp_path: Path) -> None:
    name = "openr1/qwen2.5-math-7b"
    for record in ({"model": "demo"}, {"model": "demo", "scale": "demo"}):
        run = model_settings.run_of_folder(checkpoint(tmp_path / "model", name, **record), "full")
        assert run and run.scale == "demo"
    run = model_settings.run_of_folder(checkpoint(tmp_path / "model", name, model="qwen2.5-math-7b"), "demo")
    assert run and run.scale == "full"


def test_where_nothing_decides_the_user_is_asked(tmp_path: Path) -> None:
    with refused("undecided-settings"):
        decide([HUB], Wishes(["math500", "countdown"]))
    assert protocol_and_prompt([HUB], benchmarks=["math500", "countdown"], prompt="r1-tags") == (
        "greedy-boxed",
        "r1-tags",
    )
    with refused("undecided-settings"):  # other protocols too
        decide([HUB], Wishes(["math500", "svg_figures"], prompt="r1-tags"))
    logic = model_at(checkpoint(tmp_path / "logic", "logicrl/qwen2.5-7b", model="demo-knights-knaves"))
    with refused("undecided-settings", prompt="logicrl-base", benchmarks=["gsm8k"]):
        decide([logic], Wishes(["gsm8k"]))
    with refused("undecided-settings", run="mine/run/seed-0"):
        model_at(checkpoint(tmp_path / "mine", "mine/run"))
    openr1 = model_at(checkpoint(tmp_path / "other", "openr1/qwen2.5-math-7b", model="demo"))
    with refused("undecided-settings"):  # two sides of runs that ask in different ways
        decide([logic, openr1], Wishes(["gsm8k"]))
    assert protocol_and_prompt([logic, openr1], benchmarks=["gsm8k"], protocol="qwen-math") == ("qwen-math", "boxed")
    assert protocol_and_prompt([HUB, openr1], benchmarks=["gsm8k"]) == ("demo", "boxed")


def test_a_base_model_without_a_chat_template_is_not_asked_with_a_chat_prompt(tmp_path: Path) -> None:
    base = Model("base", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with refused("undecided-settings", prompt="boxed"):
        decide([base], Wishes(["gsm8k"]))
    assert protocol_and_prompt([base], benchmarks=["gsm8k"], prompt="question-alone") == (
        "greedy-boxed",
        "question-alone",
    )


def test_the_length_of_completions_is_the_users() -> None:
    assert decide([HUB], Wishes(["countdown"], max_tokens=320)).evaluation == {
        "protocol": "greedy-boxed", "override": {"prompt": "tinyzero-instruct", "max_tokens": 320},
    }  # fmt: skip


def test_the_device_is_what_the_user_asks_for() -> None:
    assert decide([HUB], Wishes(["gsm8k"])).device == "cpu"
    assert decide([HUB], Wishes(["gsm8k"], device="cuda")).hardware["gpus"] == 1

"""Run files: what is accepted, what is refused, and that a refusal names the file and the key."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.run_file import RECIPES, SCALES, parse_run, read_yaml, validate
from eval import run_settings
from recipes import models, runs, sweeps
from recipes.runs import load_run, run_names
from system.errors import UserError
from tests.user_errors import refused

NAME = "openr1/qwen2.5-math-7b"
FILE = RECIPES / f"{NAME}.yaml"


@pytest.fixture
def content() -> dict[str, Any]:
    return copy.deepcopy(read_yaml(FILE))


@pytest.mark.parametrize(("scale", "name"), [(scale, name) for scale in SCALES for name in run_names(scale)])
def test_every_run_loads_at_every_scale_that_it_has(scale: str, name: str) -> None:
    run = load_run(name, scale)
    assert run.checkpoint_steps[0] == 0
    assert run.checkpoint_steps[-1] == sum(stage.steps for stage in run.stages)
    assert run.device == ("cuda" if scale == "full" else "cpu")


def test_a_scale_without_values_is_refused(content: dict[str, Any]) -> None:
    assert NAME not in run_names("small") and "crosscheck/verl" in run_names("small"), "which inherits them"
    with refused("missing-scale", scale="small"):
        parse_run(content, NAME, FILE, "small")
    with refused("missing-scale", scale="small"):
        sweeps.run_names("openr1/group-size", "small")


def test_a_scale_may_be_like_that_of_another_run(content: dict[str, Any]) -> None:
    other, own = load_run("crosscheck/verl", "small"), load_run("reinforce/deepseek-r1-distill-qwen-1.5b-rloo", "small")
    stage, theirs = own.stages[0], other.stages[0]
    assert (own.model, own.prompt, stage.steps, stage.optimizer) == (
        other.model, other.prompt, theirs.steps, theirs.optimizer,
    )  # fmt: skip
    assert stage.batch == {**theirs.batch, "prompts_per_update": 2}
    assert stage.objective["estimator"] == "rloo" and "scale_rewards" not in stage.objective  # removed by a null
    for like, code in (("crosscheck/none", "unknown-name"), ("../recipes/crosscheck/trl", "unknown-name"),
                       ("openr1/qwen2.5-math-7b", "missing-scale"), ("dapo/qwen2.5-32b", "missing-scale")):  # fmt: skip
        with refused(code):
            parse_run({**content, "small": {"like": like}}, NAME, FILE, "small")


def test_the_published_values_are_there() -> None:
    stage = load_run(NAME, "full").stages[0]
    assert (stage.optimizer["learning_rate"], stage.batch["samples_per_prompt"]) == (3e-6, 7)
    assert (stage.rollout["max_prompt_tokens"], stage.rollout["max_response_tokens"]) == (512, 1024)
    assert stage.dataset == "math_lighteval"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c["full"]["optimizer"].update(learning_rat=1), "full.optimizer.learning_rat"),
        (lambda c: c["full"]["optimizer"].update(learning_rate="fast"), "full.optimizer.learning_rate"),
        (lambda c: c["demo"].update(steps=0), "demo.steps"),
        (lambda c: c["demo"].pop("evaluation"), "evaluation"),
        (lambda c: c.update(framework="jax"), "no framework 'jax'"),
        (lambda c: c.update(framework="vrel"), "did you mean verl?"),
        (lambda c: c["demo"].update(checkpoints=[40, 20]), "demo.checkpoints"),
        (lambda c: c["demo"].update(checkpoints=[20, 40]), "demo.checkpoints"),
        (lambda c: c.update(prompt="boxd"), "prompt: there is no prompt 'boxd'; did you mean boxed"),
        (lambda c: c["demo"].update(model="dmo"), "demo.model: there is no model 'dmo'; did you mean demo"),
        (lambda c: c["demo"].update(dataset="math"), "demo.dataset: there is no training set 'math'"),
        (lambda c: c["demo"].update(stages=[{"dataset": "math"}]), "demo.dataset: there is no training set 'math'"),
        (
            lambda c: c["demo"]["evaluation"].update(benchmarks=["gsm"]),
            "evaluation.benchmarks: there is no benchmark 'gsm'",
        ),
        (
            lambda c: c["demo"]["evaluation"].update(protocol="rapport"),
            "demo.evaluation.protocol: there is no",
        ),
        (lambda c: c["demo"]["evaluation"].update(override={"beams": 1}), "demo.evaluation.override"),
        (lambda c: c["demo"]["evaluation"].update(override={"prompt": "boxd"}), "demo.evaluation.override"),
        (lambda c: c["demo"]["evaluation"].update(override={"temperature": "hot"}), "'temperature'"),
    ],
)
def test_a_mistake_is_refused_with_file_and_key(content: dict[str, Any], change: Any, named: str) -> None:
    change(content)
    with pytest.raises(UserError) as refused:
        run = parse_run(content, NAME, FILE, "demo")
        runs.check_training(run)
        run_settings.check_evaluation(run)
    assert "qwen2.5-math-7b.yaml" in str(refused.value) and named in str(refused.value)


def test_stages_inherit_what_they_do_not_change(content: dict[str, Any]) -> None:
    content["demo"]["stages"] = [{}, {"steps": 10, "checkpoints": [10], "rollout": {"temperature": 1.2}}]
    run = parse_run(content, NAME, FILE, "demo")
    first, second = run.stages
    assert second.steps_before == first.steps
    assert second.rollout == {**first.rollout, "temperature": 1.2}
    assert run.checkpoint_steps == [0, *first.checkpoints, first.steps + 10]
    assert run.stage_of(first.steps) is first and run.stage_of(first.steps + 1) is second


def test_every_yaml_in_a_recipes_folder_is_a_run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "openr1/qwen2.5-math-7b" in run_names() and not any("demo_model" in name for name in run_names())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "first.yaml").write_text("titel: a typing mistake\n")
    monkeypatch.setattr(runs, "RECIPES", tmp_path)
    assert run_names() == ["mine/first"]
    with refused("schema-broken"):
        load_run("mine/first", "demo")


def test_unknown_runs_are_answered_with_the_known_ones() -> None:
    with refused("unknown-name"):
        load_run("openr1/gpt", "demo")


def test_broken_yaml_is_located(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("title: a\nfull: {model: [}\n")
    with refused("invalid-yaml"):
        read_yaml(file)
    file.write_bytes(b"\xff\xfe\x00")
    with refused("not-utf8"):
        read_yaml(file)
    file.write_text("- a\n- b\n")
    with refused("invalid-yaml"):
        read_yaml(file)


def test_one_recipe_that_is_no_list_is_answered_with_how_to_write_it() -> None:
    config = {
        "scale": "demo",
        "reproduce": "openr1",
        "seeds": [0],
        "results": "r",
        "work": "w",
        "data_mirror": None,
        "stop_on_collapse": False,
    }
    with refused("schema-broken"):
        validate(config, "config", RECIPES.parent / "config" / "config.yaml")


def extending(folder: Path, content: dict[str, Any], **own: Any) -> dict[str, Any]:
    """What a file beside `base.yaml` holds that extends it."""
    (folder / "base.yaml").write_text(yaml.safe_dump(content))
    return {"extends": "base", **own}


def test_a_run_that_extends_another_states_only_what_differs(content: dict[str, Any], tmp_path: Path) -> None:
    last = content["demo"]["steps"]
    own = extending(tmp_path, content, title="hotter", demo={"rollout": {"temperature": 1.2}, "checkpoints": [last]})
    base, run = (parse_run(c, NAME, tmp_path / "own.yaml", "demo") for c in (content, own))
    assert (run.title, run.rewards, run.framework) == ("hotter", base.rewards, base.framework)
    assert run.stages[0].rollout == {**base.stages[0].rollout, "temperature": 1.2}
    assert run.stages[0].checkpoints == (last,) and run.stages[0].optimizer == base.stages[0].optimizer


def test_another_framework_takes_over_everything_but_native_settings(content: dict[str, Any], tmp_path: Path) -> None:
    own = extending(tmp_path, content, framework="verl", full={"rollout": {"engine": None}, "native": {"a": 1}})
    run = parse_run(own, NAME, tmp_path / "own.yaml", "full")
    base = parse_run(content, NAME, FILE, "full")
    assert base.stages[0].native and run.stages[0].native == {"a": 1}
    assert "engine" in base.stages[0].rollout and "engine" not in run.stages[0].rollout  # null takes a key out
    assert run.stages[0].batch == base.stages[0].batch and run.evaluation == base.evaluation
    same = parse_run(extending(tmp_path, content), NAME, tmp_path / "own.yaml", "full")
    assert same.stages[0].native == base.stages[0].native


def test_a_mistake_in_a_run_that_extends_another_is_refused(content: dict[str, Any], tmp_path: Path) -> None:
    own = extending(tmp_path, content, demo={"rollout": {"temprature": 1.2}})
    with refused("schema-broken"):
        parse_run(own, NAME, tmp_path / "own.yaml", "demo")
    with refused("missing-file"):
        parse_run({"extends": "nothing"}, NAME, tmp_path / "own.yaml", "demo")
    (tmp_path / "base.yaml").write_text("extends: other")
    with refused("extends-twice"):
        parse_run({"extends": "base"}, NAME, tmp_path / "own.yaml", "demo")


def test_a_base_model_is_at_a_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    (tmp_path / "models.yaml").write_text("mine: {hub: me/mine, revision: main}")
    with refused("revision-not-a-commit", model="mine"):
        models.names()

"""What the gate is asked: words of the configuration, the settings of a model's evaluation, and where samples are."""

import json
from pathlib import Path

import pytest

from analysis.compare_checkpoints import comparison_request
from contracts.paths import ResultsFolder
from recipes.runs import load_run
from system.errors import UserError
from tests.unit.model_folders import CONTENT, weights
from tests.user_errors import refused

STORED = load_run("openr1/qwen2.5-math-7b", "demo")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (f"{STORED.name}/seed-0/step-{STORED.checkpoint_steps[-1]}", "stored"),
        ("sober/Qwen2.5-Math-7B", "published"),
        ("acme/model-7b", "hub"),
        ("Qwen/Qwen2.5-Math-7B", "hub"),
        ("open-r1/OpenR1-Qwen-7B", "hub"),
        (".", "graded"),
    ],
)
def test_what_a_value_of_the_configuration_means(value, kind):
    assert comparison_request.side_from_config(value, "baseline", {STORED.name: STORED}).kind == kind


@pytest.mark.slow
def test_a_mistyped_value_gets_the_nearest_names(tmp_path):
    (tmp_path / "config.json").touch()
    with refused("incomplete-model"):  # before a job is started for it
        comparison_request.side_from_config(str(tmp_path), "checkpoint", {})
    for name, content in CONTENT.items():
        (tmp_path / name).write_text(content)
    weights(tmp_path / "model.safetensors")
    assert comparison_request.side_from_config(str(tmp_path), "checkpoint", {}).kind == "folder"
    for value, nearest in (
        ("sober/Qwen2.5Math-7B", "sober/Qwen2.5-Math-7B"),
        ("sobr/Qwen2.5-Math-7B", "sober/Qwen2.5-Math-7B"),
        ("openr1/qwen2.5-math-7/seed-0/step-0", f"{STORED.name}/seed-0/step-0"),
    ):
        with pytest.raises(UserError) as error:
            comparison_request.side_from_config(value, "baseline", {STORED.name: STORED})
        assert error.value.code == "unknown-name" and nearest in error.value.facts["nearest"]
    for value in ("./nothere", "../nothere"):  # a path, no hub id
        with refused("unknown-name"):
            comparison_request.side_from_config(value, "baseline", {STORED.name: STORED})
    with refused("unknown-step", step=777):
        comparison_request.side_from_config(f"{STORED.name}/seed-0/step-777", "baseline", {STORED.name: STORED})


def request(benchmarks, **config):
    return comparison_request.ComparisonRequest(
        {**config, "benchmarks": benchmarks}, {STORED.name: STORED}, ResultsFolder(Path("results/demo"))
    )


def test_names_that_do_not_exist_are_refused_at_once():
    with refused("unknown-name", kind="benchmark", name="maths500"):
        request(["maths500"], checkpoint="acme/model-7b")
    with refused("unknown-name", kind="evaluation protocol", name="svg-drawings"):
        request(["math500"], checkpoint="acme/model-7b", protocol="svg-drawings")
    with refused("unknown-name", kind="prompt", name="boxes"):
        request(["math500"], checkpoint="acme/model-7b", prompt="boxes")
    with refused("missing-benchmarks"):
        request(None, checkpoint="acme/model-7b")
    with refused("missing-key", key="baseline"):
        request(["math500"], checkpoint="acme/model-7b").side("baseline")


def test_where_the_graded_samples_of_each_side_are(tmp_path):
    wanted = request(None, checkpoint="acme/model-7b", baseline=f"{STORED.name}/seed-1/step-0")
    assert list(wanted.benchmarks) == STORED.evaluation["benchmarks"]
    slug = wanted.side("checkpoint").slug
    assert wanted.side_with_slug(slug).name == "acme/model-7b" and wanted.model_folder(slug).endswith(
        f"compare/models/{slug}"
    )
    assert wanted.evaluation_id("checkpoint").startswith(f"models/{slug}-")
    assert wanted.graded("checkpoint") == f"results/demo/runs/{wanted.evaluation_id('checkpoint')}/graded"
    assert wanted.compared_samples("checkpoint") == f"{wanted.graded('checkpoint')}/step-0"
    assert wanted.compared_samples("baseline") == f"results/demo/runs/{STORED.name}/seed-1/graded/step-0"
    published = request(["math500"], checkpoint=str(tmp_path), baseline="sober/Qwen2.5-Math-7B")
    assert published.compared_samples("baseline") == "sober/Qwen2.5-Math-7B" and published.graded("baseline") is None
    assert published.compared_samples("checkpoint") == published.graded("checkpoint") == str(tmp_path)
    with refused("not-a-model", key="checkpoint", kind="graded"):
        published.evaluation_id("checkpoint")
    # Other benchmarks mean other samples.
    assert request(["math500"], checkpoint="acme/model-7b").graded("checkpoint") != wanted.graded("checkpoint")


@pytest.mark.parametrize(
    "config", [{"limit": 50}, {"sample": 50}, {"protocol": "greedy-boxed"}, {"benchmarks": ["gsm8k"]}]
)
def test_a_stored_checkpoint_that_is_asked_otherwise_is_sampled_again(config):
    stored = f"{STORED.name}/seed-0/step-0"
    wanted = request(**{"benchmarks": None, "checkpoint": "acme/model-7b", "baseline": stored} | config)
    assert wanted.compared_samples("baseline").startswith("results/demo/runs/models/")
    assert wanted.model_folder(wanted.side("baseline").slug).endswith(f"{STORED.name}/seed-0/checkpoints/step-0")
    whole = request(None, checkpoint="acme/model-7b", baseline=stored)
    assert wanted.evaluation_id("checkpoint") != whole.evaluation_id("checkpoint")
    if {"limit", "sample"} & config.keys():
        assert wanted.pair != whole.pair


def test_a_stored_checkpoint_can_be_evaluated_by_itself():
    alone = request(["gsm8k"], checkpoint=f"{STORED.name}/seed-0/step-0")
    assert alone.settings.evaluation["protocol"] == STORED.evaluation["protocol"]
    assert alone.evaluation_id("checkpoint").startswith("models/openr1-qwen2.5-math-7b-seed-0-step-0-")


def test_the_name_of_a_folder_is_the_end_of_its_path_by_whole_parts(tmp_path, monkeypatch):
    deep = tmp_path / "a-long-name-of-a-folder-of-many-letters" / "another-long-name-of-a-folder" / "step-24"
    slug = comparison_request.Side("folder", str(deep)).slug
    assert slug.startswith("another-long-name-of-a-folder-step-24-")
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep.parent)
    assert comparison_request.Side("folder", "step-24").slug == slug
    assert len(comparison_request.Side("folder", "/" + "x" * 200).slug) < 80


def test_a_model_is_asked_as_the_samples_were_that_it_is_compared_with(tmp_path):
    table = tmp_path / "gsm8k.parquet"
    table.touch()
    sampling = {"protocol": {"name": "qwen-math", "prompt": "boxed"}, "overrides": {"max_tokens": 320}}
    table.with_name(f"{table.name}.provenance.json").write_text(json.dumps({"samples": sampling}))
    wanted = request(None, checkpoint="acme/model-7b", baseline=str(tmp_path))
    assert wanted.settings.evaluation == {"protocol": "qwen-math", "override": {"max_tokens": 320}}
    assert wanted.benchmarks == ("gsm8k",)
    with refused("undecided-settings"):  # the run of the other side asks otherwise
        request(["gsm8k"], checkpoint=f"{STORED.name}/seed-0/step-0", baseline=str(tmp_path))


def test_models_with_different_chat_templates_are_refused_before_they_are_sampled(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison_request.model_folder, "check_files", lambda *_: None)
    for name, template in (("a", "A"), ("b", "B"), ("c", "A")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "chat_template.jinja").write_text(template)
    config = {"checkpoint": str(tmp_path / "a"), "benchmarks": ["gsm8k"]}
    with refused("not-comparable"):
        comparison_request.ComparisonRequest(config | {"baseline": str(tmp_path / "b")}, {}, ResultsFolder(tmp_path))
    for accepted in ({"baseline": str(tmp_path / "c")}, {"baseline": str(tmp_path / "b"), "accept": ["prompt"]}):
        request = comparison_request.ComparisonRequest(config | accepted, {}, ResultsFolder(tmp_path))
        assert request.benchmarks == ("gsm8k",)

"""What the gate is asked: words of the configuration, the settings of a model's evaluation, and where samples are."""

from pathlib import Path

import pytest

from analysis.compare_checkpoints import comparison_request
from contracts.paths import ResultsFolder
from eval.run_settings import protocol_of
from recipes.runs import load_run
from system.errors import UserError
from tests.unit.test_model_folder import CONTENT, weights
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
    with refused("unknown-step", step=777):
        comparison_request.side_from_config(f"{STORED.name}/seed-0/step-777", "baseline", {STORED.name: STORED})


def request(benchmarks, **sides):
    runs = {STORED.name: STORED}
    return comparison_request.ComparisonRequest(
        {**sides, "benchmarks": benchmarks}, runs, STORED.name, ResultsFolder(Path("results/demo"))
    )


def test_benchmarks_that_a_side_does_not_have_are_refused_at_once():
    hub, stored = "acme/model-7b", f"{STORED.name}/seed-0/step-0"
    request(STORED.evaluation["benchmarks"], checkpoint=stored, baseline=hub)
    request(["knights_knaves_8ppl"], checkpoint=hub)
    with refused("unknown-name", kind="benchmark", name="maths500"):
        request(["maths500"], checkpoint=hub)
    with refused("not-evaluated", missing=["knights_knaves_8ppl"]):
        request(["knights_knaves_8ppl"], checkpoint=hub, baseline=stored)


def test_where_the_graded_samples_of_each_side_are(tmp_path):
    wanted = request(None, checkpoint="acme/model-7b", baseline=f"{STORED.name}/seed-1/step-0")
    assert wanted.run is STORED and wanted.benchmarks == STORED.evaluation["benchmarks"]
    slug = wanted.side("checkpoint").slug
    assert wanted.side_with_slug(slug).name == "acme/model-7b" and wanted.model_folder(slug).endswith(
        f"compare/models/{slug}"
    )
    assert wanted.evaluation_id("checkpoint").startswith(f"models/{slug}-")
    assert wanted.graded("checkpoint") == f"results/demo/runs/{wanted.evaluation_id('checkpoint')}/graded"
    with refused("not-a-model", key="baseline", kind="stored"):
        wanted.evaluation_id("baseline")
    assert wanted.compared_samples("checkpoint") == f"{wanted.graded('checkpoint')}/step-0"
    assert wanted.compared_samples("baseline") == f"results/demo/runs/{STORED.name}/seed-1/graded/step-0"
    published = request(["math500"], checkpoint=str(tmp_path), baseline="sober/Qwen2.5-Math-7B")
    assert published.compared_samples("baseline") == "sober/Qwen2.5-Math-7B" and published.graded("baseline") is None
    assert published.compared_samples("checkpoint") == published.graded("checkpoint") == str(tmp_path)
    # Other benchmarks mean other samples.
    other = request(["math500"], checkpoint="acme/model-7b")
    assert other.graded("checkpoint") != wanted.graded("checkpoint")
    with refused("missing-key", key="baseline"):
        other.side("baseline")


def test_a_model_is_asked_as_the_first_run_that_has_the_benchmarks_or_by_the_named_protocol():
    runs = {name: load_run(name, "demo") for name in (STORED.name, "gomoku/9x9-512", "doudizhu/instruct-8")}
    for benchmarks, fitting in (
        (None, STORED.name),
        (["gomoku_demo"], "gomoku/9x9-512"),
        (["doudizhu_demo"], "doudizhu/instruct-8"),
        (["gomoku_demo", "doudizhu_demo"], STORED.name),
    ):
        config = {"checkpoint": "acme/model-7b", "benchmarks": benchmarks}
        of_model = comparison_request.ComparisonRequest(config, runs, STORED.name, ResultsFolder(Path("results/demo")))
        assert of_model.run is runs[fitting]
        named = comparison_request.ComparisonRequest(
            config | {"protocol": "svg-drawing"}, runs, STORED.name, ResultsFolder(Path("results/demo"))
        )
        assert protocol_of(named.run).name == "svg-drawing" and protocol_of(named.run).prompt == "svg-drawing"
        assert named.evaluation_id("checkpoint") != of_model.evaluation_id("checkpoint")
    with refused("unknown-name", kind="evaluation protocol", name="svg-drawings"):
        request(None, checkpoint="acme/model-7b", protocol="svg-drawings")

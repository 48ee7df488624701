"""What-if variants of runs: their names hold their values, and their values are what is trained."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.pages.run_titles import titles
from contracts import paths
from recipes import variants
from recipes.runs import file_content, load_run, training_settings
from tests.user_errors import refused

RUN = "openr1/qwen2.5-math-7b"
KEYS = st.from_regex(r"[a-z_]{1,12}(\.[a-z_0-9]{1,12}){0,2}", fullmatch=True)
VALUES = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False), st.booleans(),
    st.lists(st.integers(0, 99), max_size=5), st.sampled_from(["token_mean", "a b/c", "Größe, 二", "~41", "1e-6"]),
)  # fmt: skip


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=2))
def test_a_name_holds_its_values_and_is_that_of_a_folder(values: dict[str, Any]) -> None:
    name = variants.name("recipe/run", values)
    expected = {key: variants.read_value(v) if isinstance(v, str) else v for key, v in values.items()}
    assert variants.settings(name) == expected
    assert name.count("/") == 1 and variants.base_run(name) == "recipe/run"
    paths.check_path("name", name)


@pytest.mark.parametrize("text", ["1e-6", "0.000001", "1.0e-06"])
def test_equal_values_are_one_variant(text: str) -> None:
    assert variants.name(RUN, {"optimizer.learning_rate": text}) == f"{RUN}@optimizer.learning_rate=1e-06"


def test_a_variant_trains_with_its_value_and_all_others_of_the_run() -> None:
    run, variant = load_run(RUN, "demo"), load_run(f"{RUN}@objective.kl_coefficient=0.5", "demo")
    (own,), (varied,) = run.stages, variant.stages
    assert varied.objective == own.objective | {"kl_coefficient": 0.5}
    changed = {
        key for key, value in training_settings(variant, varied).items() if value != training_settings(run, own)[key]
    }
    assert changed == {"objective"}
    assert variant.file == run.file
    assert file_content(variant.name, variant.file, "demo")["demo"]["objective"]["kl_coefficient"] == 0.5


def test_a_value_replaces_that_of_stages_too() -> None:
    variant = load_run("logicrl/qwen2.5-7b@rollout.temperature=0.3", "demo")
    assert [stage.rollout["temperature"] for stage in variant.stages] == [0.3, 0.3, 0.3]


def test_a_value_of_one_stage() -> None:
    variant = load_run("logicrl/qwen2.5-7b@stages.2.rollout.temperature=0.3", "demo")
    assert [stage.rollout["temperature"] for stage in variant.stages] == [1.0, 0.3, 0.9]
    content = file_content(variant.name, variant.file, "demo")["demo"]
    assert variants.value_of(content, "stages.2.rollout.temperature") == 0.3
    assert variants.value_of(content, "stages.1.rollout.temperature") == 1.0  # the run's


def test_a_native_key_has_dots_of_its_own() -> None:
    variant = load_run("tinyzero/grpo-3b@native.actor_rollout_ref.model.use_remove_padding=false", "full")
    assert variant.stages[0].native["actor_rollout_ref.model.use_remove_padding"] is False


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("objective.kl_coefficent=0.5", "schema-broken"),
        ("steps=many", "schema-broken"),
        ("steps=7", "checkpoints-unordered"),
        ("stages.3.steps=7", "unknown-stage"),
        ("objective.clip_ratio=0.2", "equal-settings"),
        ("model=qwen2.5-math-7bb", "unknown-name"),
    ],
)
def test_a_setting_that_cannot_be(settings: str, code: str) -> None:
    with refused(code):
        load_run(f"{RUN}@{settings}", "demo")


def test_a_variant_has_no_variants() -> None:
    with refused("variant-of-variant"):
        variants.name(f"{RUN}@steps=7", {"steps": "8"})


def test_too_many_values_for_a_folder_s_name() -> None:
    with refused("long-name"):
        variants.name(RUN, {"prompt": "x" * 200})


@pytest.mark.parametrize(("scale", "title"), [("demo", "openr1 demo, GRPO (trl), "), ("full", f"{RUN}/seed-0, ")])
def test_a_page_names_the_settings(scale: str, title: str) -> None:
    name = f"{RUN}@objective.kl_coefficient=0.5/seed-0"
    assert titles([name], scale)[name] == f"{title}objective.kl_coefficient 0.5"

"""LoRA in run files: which flags it becomes, who refuses it, and the memory it takes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from cluster import capacity, gpu_memory
from contracts.run_file import Run
from frameworks import adapter
from frameworks.verl import convert_checkpoint
from recipes.runs import load_run, training_settings
from tests.user_errors import refused

NAME = "gsm8k/qwen2.5-3b-instruct-lora"
FULL, DEMO = load_run(NAME, "full"), load_run(NAME, "demo")


def changed(run: Run, **lora: object) -> Run:
    stage = dataclasses.replace(run.stages[0], lora=lora)
    return dataclasses.replace(run, stages=(stage,))


def flags(run: Run) -> dict[str, object]:
    return dict(adapter.load(run.framework).stated_settings(run, run.stages[0]))


def test_its_flags() -> None:
    stated = flags(FULL)
    assert stated["use_peft"] is stated["load_in_4bit"] is True
    assert (stated["lora_r"], stated["lora_alpha"], stated["lora_dropout"]) == (64, 64, 0.0)
    assert "load_in_4bit" not in flags(DEMO) and flags(DEMO)["lora_target_modules"] == ["all-linear"]
    assert "use_peft" not in flags(load_run("gsm8k/qwen2.5-0.5b-instruct", "full"))


def test_one_target_alone_becomes_a_pattern() -> None:
    """PEFT takes one word as a pattern of a layer's whole name, which `q_proj` never is."""
    stated = flags(changed(DEMO, r=1, alpha=1, target_modules=["q_proj"]))
    assert stated["lora_target_modules"] == [r".*\.q_proj"]


def test_weights_of_4_bits_without_a_gpu_are_refused() -> None:
    with refused("needs-a-gpu", key="lora.bits"):
        flags(changed(DEMO, r=1, alpha=1, target_modules=["all-linear"], bits=4))


def test_a_framework_without_it_refuses_it() -> None:
    run = changed(load_run("demystify/qwen2.5-math-7b-classic", "demo"), r=1, alpha=1, target_modules=["all-linear"])
    with refused("setting-not-in-framework", key="lora.r"):
        flags(run)


def test_its_settings_in_verl() -> None:
    grpo, ppo = load_run("drgrpo/qwen2.5-math-7b", "demo"), load_run("tinyzero/ppo-3b", "demo")
    everywhere: dict[str, Any] = {"r": 8, "alpha": 16, "target_modules": ["all-linear"]}
    stated, saved = flags(changed(grpo, **everywhere)), "actor_rollout_ref.actor.checkpoint.save_contents"
    names = [f"actor_rollout_ref.model.{name}" for name in ("lora_rank", "lora_alpha", "target_modules")]
    assert [stated[name] for name in names] == [8, 16, "all-linear"]
    assert saved in flags(grpo) and stated[saved] == ["model", "optimizer", "extra"]
    listed = flags(changed(grpo, **everywhere | {"target_modules": ["q_proj", "v_proj"]}))
    assert listed[names[2]] == ["q_proj", "v_proj"]
    for code, run in (
        ("value-not-in-framework", changed(grpo, **everywhere, dropout=0.1)),
        ("setting-not-in-framework", changed(grpo, **everywhere, bits=4)),
        ("settings-conflict", changed(ppo, **everywhere)),
    ):
        with refused(code):
            flags(run)


def test_an_adapter_in_verls_shards_without_its_scale_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """verl's merger writes a scale of 0 then, with which the frozen weights alone would be left."""

    def merge_shards(actor: Path, output: Path, model: Path) -> None:
        (output / "lora_adapter").mkdir()
        (output / "lora_adapter" / "adapter_config.json").write_text('{"r": 4, "lora_alpha": 0}')

    monkeypatch.setattr(convert_checkpoint, "merge_shards", merge_shards)
    with refused("missing-lora-scale"):
        convert_checkpoint.verl_shards(tmp_path / "actor", tmp_path, tmp_path)


def test_in_verl_it_takes_less_memory() -> None:
    whole = load_run("drgrpo/qwen2.5-math-7b", "full")
    run = changed(whole, r=32, alpha=32, target_modules=["all-linear"])
    small, large = (gpu_memory.estimate_stage(one, one.stages[0], 80) for one in (run, whole))
    assert small and large and small.state < 0.7 * large.state
    assert capacity.disk_gb(whole)[0] / 4 < capacity.disk_gb(run)[0] < capacity.disk_gb(whole)[0] / 2  # 4 of 12 bytes


def test_a_run_without_it_has_the_same_settings_as_before_there_was_any() -> None:
    run = load_run("gsm8k/qwen2.5-0.5b-instruct", "demo")
    assert "lora" not in training_settings(run, run.stages[0])
    assert training_settings(DEMO, DEMO.stages[0])["lora"] == DEMO.stages[0].lora


def test_its_parameters_are_those_that_the_notebook_prints() -> None:
    shape = gpu_memory.model_shape(FULL.model)
    assert shape and gpu_memory.adapter_parameters(shape, FULL.stages[0].lora) == 119_734_272
    everywhere = FULL.stages[0].lora | {"target_modules": ["all-linear"]}
    assert gpu_memory.adapter_parameters(shape, everywhere) == 119_734_272
    assert gpu_memory.adapter_parameters(shape, {}) == 0


def test_it_takes_less_memory_and_disk_than_training_all_weights() -> None:
    whole = changed(FULL)
    small, large = (gpu_memory.estimate_stage(run, run.stages[0], 24) for run in (FULL, whole))
    assert small and large and gpu_memory.fit_verdict(small, 24) == "yes" and gpu_memory.fit_verdict(large, 24) == "no"
    trained, frozen = 119_734_272, 3.09e9
    assert small.state == pytest.approx((16 * trained + 0.5625 * frozen) / 1e9)
    assert capacity.disk_gb(FULL)[0] < capacity.disk_gb(whole)[0] / 20

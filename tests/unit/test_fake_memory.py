"""The pass that each run is measured with, and the formulas beside published figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster import gpu_memory
from frameworks.memory import deepspeed_state
from recipes.runs import load_run, run_names
from studies.gpu_memory.study import Pass, deepspeed_says, offloads, training_gpus, training_pass

GIB = 2**30


def pass_named(name: str) -> Pass:
    run = load_run(name, "full")
    return training_pass(run, run.stages[0])


def test_the_pass_is_that_of_the_run_file() -> None:
    assert pass_named("tinyzero/ppo-7b") == Pass(
        gpus=8, rows=1, tokens=8192, scored=8192
    )  # filled up to a number of tokens
    assert pass_named("tinyzero/grpo-7b") == Pass(gpus=8, rows=4, tokens=1280, scored=1280)
    assert pass_named("openr1/qwen2.5-math-7b") == Pass(
        gpus=7, rows=16, tokens=1536, scored=1024
    )  # logits of the completion alone
    ppo = load_run("simplerl/qwen2.5-math-7b", "full")
    assert training_gpus(ppo, ppo.stages[0]) == (32 - ppo.stages[0].rollout["gpus"]) // 2  # a critic has the other half


def test_an_optimiser_that_is_not_on_the_gpu_is_not_counted() -> None:
    names = {name for name in run_names() if offloads(load_run(name, "full"))}
    assert names == {"simplerl/qwen2.5-math-7b-8gpu"}


def test_every_run_can_be_measured() -> None:
    for name in run_names():
        run = load_run(name, "full")
        shape = gpu_memory.model_shape(run.model)
        assert shape is not None and shape["hidden"] == shape["heads"] * shape["head"], name
        assert shape["heads"] % shape["kv_heads"] == 0
        per_layer = shape["hidden"] * (
            2 * shape["hidden"] + 2 * shape["kv_heads"] * shape["head"] + 3 * shape["intermediate"]
        )
        embeddings = shape["vocabulary"] * shape["hidden"] * (1 if shape.get("tied") else 2)
        assert shape["layers"] * per_layer + embeddings == pytest.approx(shape["parameters"], rel=0.01), name


@pytest.mark.parametrize(
    ("model", "tokens", "scored", "measured"),
    [
        ("qwen2.5-3b", 4 * 1280, 4 * 1280, 13.9),
        ("qwen2.5-7b", 16384, 16384, 46.1),
        ("qwen2.5-math-7b", 16 * 1536, 16 * 1024, 47.7),
    ],
)
def test_the_formula_of_a_pass_is_near_fake_tensors(model: str, tokens: int, scored: int, measured: float) -> None:
    """GB that `python -m studies.gpu_memory.study` printed: grpo-3b, ppo-7b at verl's limit, OpenR1's Math-7B."""
    shape = gpu_memory.model_shape(model)
    assert shape is not None
    assert gpu_memory.working_bytes(shape, tokens, scored, True) / 1e9 == pytest.approx(measured, rel=0.03)


@pytest.mark.parametrize(("sharding", "published"), [("zero2", 15.93), ("zero3", 6.10)])
def test_deepspeed_s_published_figures(sharding: str, published: float) -> None:
    """t5-3b, 2,851M parameters, the largest layer 32M, on 8 GPUs: DeepSpeed's docs/code-docs/source/memory.rst."""
    assert deepspeed_says(sharding, 8, 2851e6, 32e6) / GIB == pytest.approx(published, rel=0.005)


@pytest.mark.parametrize(("sharding", "gpus", "published"), [("none", 1, 120), ("zero2", 64, 16.6), ("zero3", 64, 1.9)])
def test_the_formula_is_that_of_zero_s_authors(sharding: str, gpus: int, published: float) -> None:
    """7.5B parameters on 64 GPUs: Rajbhandari et al. 2020, figure 1."""
    run = load_run("openr1/qwen2.5-math-7b", "full")
    training, _ = deepspeed_state(replace(run, hardware={"sharding": sharding}), gpus, 7.5e9, 1, 0.0)
    assert training / 1e9 == pytest.approx(published, rel=0.02)

"""Resources of jobs, parsing of Slurm's output, and estimates of what runs need, against published figures."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster import capacity, gpu_memory, slurm
from cluster.job_resources import ATTEMPTS, Need, resources_for_attempt
from contracts import tables
from contracts.run_file import ROOT, Run
from frameworks import adapter
from recipes import models
from recipes.runs import load_run
from tests import loaded_runs
from tests.forked_command import run_snakemake
from tests.user_errors import refused

SETTINGS = yaml.safe_load((ROOT / "profiles" / "slurm" / "cluster.yaml").read_text(encoding="utf-8"))["cluster"]


def requested(need: Need, attempt: int = 1, **changes: Any) -> dict[str, Any]:
    resources = resources_for_attempt(need, {**SETTINGS, **changes}, attempt)
    return {key: value for key, value in resources.items() if value is not None}


def test_a_training_on_four_nodes() -> None:
    need = Need(memory_mb=512_000, minutes=72 * 60, gpus=32, nodes=4, cpus=64)
    resources = requested(
        need, account="physics", partition="cpu", gpu_partition="gpu", gpu_type="h100", gpu_max_hours=48
    )
    assert resources == {
        "gres": "gpu:h100:8", "nodes": 4, "cpus_per_task": 64, "mem_mb": 512_500, "runtime": 48 * 60,
        "slurm_account": "physics", "slurm_partition": "gpu",
    }  # fmt: skip


def test_a_job_without_gpus_asks_for_none() -> None:
    resources = requested(
        Need(memory_mb=4000, minutes=60), partition="cpu", gpu_partition="gpu", gpu_type="h100", qos="long"
    )
    assert resources == {
        "nodes": 1, "cpus_per_task": 1, "mem_mb": 4500, "runtime": 60, "slurm_partition": "cpu", "qos": "long",
    }  # fmt: skip
    assert "tasks" not in resources and requested(Need(1000, 10, nodes=2))["tasks"] == 2


@given(st.integers(1, 5), st.integers(1, 10**6), st.integers(1, 10**4))
def test_memory_and_time_grow_with_the_attempt_up_to_what_there_is(attempt: int, memory_mb: int, minutes: int) -> None:
    need = Need(memory_mb, minutes, gpus=1)
    first, later = requested(need), requested(need, attempt + 1)
    assert later["mem_mb"] > first["mem_mb"] and later["runtime"] > first["runtime"]
    capped = requested(need, attempt, max_memory_gb=100, gpu_max_hours=24)
    assert capped["mem_mb"] <= 100_000 and capped["runtime"] <= 24 * 60


def test_gpus_that_do_not_divide() -> None:
    with refused("gpus-do-not-divide", gpus=6, nodes=4):
        resources_for_attempt(Need(1, 1, gpus=6, nodes=4), None)


@pytest.mark.parametrize(
    ("limit", "minutes"),
    [("30", 30), ("90:30", 90), ("2:00:00", 120), ("3-00:00:00", 4320), ("1-12", 2160), ("UNLIMITED", None)],
)
def test_time_limits(limit: str, minutes: int | None) -> None:
    assert slurm.limit_minutes(limit) == minutes


@given(st.integers(0, 30), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_every_form_of_a_time_limit_means_the_same(days: int, hours: int, minutes: int, seconds: int) -> None:
    assert slurm.limit_minutes(f"{days}-{hours:02}:{minutes:02}:{seconds:02}") == (days * 24 + hours) * 60 + minutes
    assert slurm.limit_minutes(f"{hours}:{minutes:02}:{seconds:02}") == hours * 60 + minutes


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("(null)", {}),
        ("gpu:8", {"": 8}),
        ("gpu:h100:8(S:0-1),shard:16(S:0-1)", {"h100": 8}),
        ("gpu:a100_1g.5gb:14,gpu:a100:2", {"a100_1g.5gb": 14, "a100": 2}),
    ],
)
def test_gpus_of_a_node(text: str, gpus: dict[str, int]) -> None:
    assert slurm.read_gres(text) == gpus


@pytest.mark.parametrize("run", loaded_runs.runs("full"), ids=lambda run: run.name)
def test_every_run_fits_the_gpus_that_it_was_published_with(run: Run) -> None:
    size = run.hardware["gpu_memory_gb"]
    need = gpu_memory.fullest_stage(run, size)
    assert need is not None and not gpu_memory.fit_verdict(need, size, run.hardware["memory_gb"]).startswith("no")
    assert run.hardware["expected_hours"] <= run.hardware["hours"] * len(run.stages)


def on(run: Run, gpus: int) -> Run:
    return dataclasses.replace(run, hardware={**run.hardware, "gpus": gpus, "nodes": 1})


def test_the_rule_of_thumb_7b_on_80_gb_and_3b_on_40_gb() -> None:
    seven, three = load_run("openr1/qwen2.5-math-7b", "full"), load_run("tinyzero/grpo-3b", "full")
    assert (
        gpu_memory.fit_verdict(estimate_of(seven, 80), 80) == "yes"
        and gpu_memory.fit_verdict(estimate_of(seven, 40), 40) == "no"
    )
    assert gpu_memory.fit_verdict(estimate_of(three, 40), 40) == "yes"
    assert gpu_memory.fit_verdict(estimate_of(on(three, 1), 40), 40) == "no"


def estimate_of(run: Run, size: float) -> gpu_memory.Estimate:
    need = gpu_memory.fullest_stage(run, size)
    assert need is not None
    return need


def test_state_of_adam_in_mixed_precision() -> None:
    """Rajbhandari et al. 2020, figure 1: 7.5B parameters on 64 GPUs take 120 GB, 16.6 with zero2 and 1.9 with zero3."""
    run = load_run("openr1/qwen2.5-math-7b", "full")
    stage = dataclasses.replace(run.stages[0], objective={})
    for sharding, gigabytes in (("none", 120.0), ("zero2", 16.6), ("zero3", 1.9)):
        shared = dataclasses.replace(run, hardware={**run.hardware, "sharding": sharding})
        state = adapter.load(run.framework).memory_per_gpu(shared, stage, 64, 7.5e9).training
        assert state / 1e9 == pytest.approx(gigabytes, abs=0.05)


def without(run: Run, *settings: str) -> Run:
    native = {key: value for key, value in run.stages[0].native.items() if key not in settings}
    return dataclasses.replace(run, stages=(dataclasses.replace(run.stages[0], native=native),))


def test_verls_reference_in_float32_and_its_passes_of_many_tokens() -> None:
    """3.09 billion parameters on 2 GPUs; a pass has 8,192 tokens, whatever the number of completions."""
    run = load_run("tinyzero/ppo-3b", "full")
    offloads = ("actor_rollout_ref.ref.fsdp_config.param_offload", "critic.fsdp.optimizer_offload")
    full = estimate_of(without(run, *offloads), 80)
    assert full.state == pytest.approx((16 + 12 + 4) / 2 * 3.09)
    gathered = 2 * 2048 * 151936 / 1e9
    assert full.working == pytest.approx(8192 * (2048 * 2 * 36 + 16 * 151936) / 1e9 + gathered)
    assert gpu_memory.fit_verdict(full, 80) == "tight" and gpu_memory.fit_verdict(estimate_of(run, 80), 80) == "yes"
    assert estimate_of(run, 80).state == pytest.approx(
        (16 + 12) / 2 * 3.09
    )  # while the critic trains, the actor's 12 stay
    assert estimate_of(run, 80).host == pytest.approx(full.host + (4 + 8) * 3.09)
    by_completions = estimate_of(without(run, *offloads, "actor_rollout_ref.actor.use_dynamic_bsz"), 80)
    assert by_completions.working - gathered == pytest.approx((full.working - gathered) * 4 * 1280 / 8192)
    by_default = estimate_of(without(run, *offloads, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu"), 80)
    assert by_default.working - gathered == pytest.approx((full.working - gathered) * 2)  # the release's 16,384


def test_weights_that_stay_gathered_after_a_layer() -> None:
    """verl's counterpart of zero2: the whole model in 16 bits on each GPU during a pass."""
    run = load_run("drgrpo/qwen2.5-math-7b", "full")
    sharded = dataclasses.replace(run, hardware={**run.hardware, "sharding": "zero3"})
    assert run.hardware["sharding"] == "zero2"
    assert estimate_of(run, 80).state - estimate_of(sharded, 80).state == pytest.approx(2 * 7.62)
    assert estimate_of(sharded, 80).working - estimate_of(run, 80).working == pytest.approx(2 * 2 * 152064 * 3584 / 1e9)


def test_what_the_processes_of_a_node_load_fits_its_memory() -> None:
    run = load_run("openr1/qwen2.5-math-7b", "full")
    assert estimate_of(run, 80).host == pytest.approx(7 * 2 * 2 * 7.62)  # model and reference, in bfloat16
    in_float32 = estimate_of(without(run, "dtype"), 80)
    assert in_float32.host == pytest.approx(7 * 2 * 4 * 7.62)
    assert (
        gpu_memory.fit_verdict(in_float32, 80, 256).startswith("no")
        and gpu_memory.fit_verdict(estimate_of(run, 80), 80, 256) == "yes"
    )


def test_an_optimiser_that_openrlhf_offloads_is_in_the_nodes_memory() -> None:
    run = load_run("simplerl/qwen2.5-math-7b-8gpu", "full")
    kept, offloaded = estimate_of(without(run, "ds.adam_offload"), 80), estimate_of(run, 80)
    assert kept.state - offloaded.state == pytest.approx(12 * 7.62 / 2)
    assert offloaded.host - kept.host == pytest.approx(4 * 12 * 7.62 / 2)


def test_only_the_last_states_of_openrlhf_take_room() -> None:
    run = load_run("simplerl/qwen2.5-math-7b", "full")
    assert capacity.native_checkpoints(run, run.stages[0]) == 40
    native, exported = capacity.disk_gb(run)
    assert native == pytest.approx((2 * 2 * 14 + 40 * 2) * 7.62) and exported == pytest.approx(11 * 2 * 7.62)


def test_the_page_and_what_was_measured(tmp_path: Path) -> None:
    """Two stages of three are trained, at 60 and 120 s a step: the third is taken to be as long as they are."""
    run = load_run("logicrl/qwen2.5-7b", "full")
    for stage, pace in ((1, 60.0), (2, 120.0)):
        rows = [dict.fromkeys(tables.TRAINING_LOG.names) for _ in range(10)]
        for step, row in enumerate(rows, start=1):
            row |= {"run": "x", "stage": stage, "step": step, "wall_time": step * pace}
        file = tmp_path / "runs" / run.name / "seed-0" / f"stage-{stage}" / "training_log.parquet"
        tables.write(pa.Table.from_pylist(rows, schema=tables.TRAINING_LOG), tables.TRAINING_LOG, file)
    steps = sum(stage.steps for stage in run.stages)
    assert capacity.measured_hours(run, tmp_path) == pytest.approx(steps * 90 / 3600)
    assert capacity.measured_hours(load_run("tinyzero/ppo-3b", "full"), tmp_path) is None
    runs = [run, load_run("simplerl/qwen2.5-math-7b", "full")]
    page = capacity.costs_page([capacity.run_costs(one, 1, 80, tmp_path, 1) for one in runs], "full", 1, 80)
    hours = run.hardware["gpus"] * run.hardware["expected_hours"]
    measured = run.hardware["gpus"] * steps * 90 / 3600
    assert f"| {run.name} | 1 × 4 | {hours:,.0f} | {measured:,.0f} |" in page
    assert "| simplerl/qwen2.5-math-7b | 4 × 8 | 1,536 | – | 2,304 |" in page
    assert f"| **sum** | – | {hours + 1536:,.0f} | – |" in page and "| yes |" in page


@pytest.mark.slow
def test_only_training_and_generation_request_gpus_at_full_scale() -> None:
    """The dry run of `snakemake --profile slurm reproduce_all` in the repository, with every job."""
    done = run_snakemake("-n", "-p", "--profile", "slurm", "reproduce_all")
    assert done.returncode == 0, done.stderr
    holders, rule = Counter[str](), ""
    for line in (done.stdout + done.stderr).splitlines():
        if match := re.match(r"(?:local)?rule (\w+):", line):
            rule = match[1]
        if "gres=gpu" in line:
            holders[rule] += 1
    runs = loaded_runs.runs("full")
    warmed = {run.model for run in runs if models.pretrained(run.model) != run.model}
    stages = sum(len(run.stages) for run in runs)
    assert holders == {"train": stages, "generate_samples": len(runs), "warm_up": len(warmed)}


def test_attempts_are_those_of_the_profile() -> None:
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    assert profile["retries"] + 1 == ATTEMPTS

"""Runs on one GPU: which fit, that their updates stay what they are, and what one command then does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster import gpu_memory, one_gpu
from contracts.run_file import ROOT
from frameworks import adapter, run_settings
from tests import loaded_runs
from tests.forked_command import run_snakemake
from tests.user_errors import printed_code, refused

SIZES = (24, 48, 80)
RUNS = {run.name: run for run in loaded_runs.runs("full")}
FITS = {size: one_gpu.fitting_runs(RUNS, size, "full") for size in SIZES}
FITTING = [(size, name) for size in SIZES for name in FITS[size]]


def test_larger_gpus_fit_more() -> None:
    assert {name for name in RUNS if name.startswith("gsm8k/qwen")} <= set(FITS[24])
    assert set(FITS[24]) < set(FITS[48]) < set(FITS[80])
    assert not any(RUNS[name].model.startswith(("qwen2.5-7b", "qwen2.5-math-7b")) for name in FITS[80])


@pytest.mark.parametrize(("size", "name"), FITTING)
def test_updates_stay_those_of_the_run_file(size: int, name: str) -> None:
    written, variant = RUNS[name], FITS[size][name].run
    assert (variant.hardware["gpus"], variant.hardware["nodes"]) == (1, 1) and variant.evaluation["gpus"] <= 1
    need = gpu_memory.fullest_stage(variant, size)
    assert need and gpu_memory.fit_verdict(need, size, variant.hardware["memory_gb"]) == "yes"
    for before, after in zip(written.stages, variant.stages, strict=True):
        assert run_settings.updates_per_step(variant, after) == run_settings.updates_per_step(written, before)
        for key in ("prompts_per_step", "prompts_per_update", "samples_per_prompt"):
            assert after.batch.get(key) == before.batch.get(key)
        assert (after.optimizer, after.objective, after.lora) == (before.optimizer, before.objective, before.lora)
        per_update = after.batch["prompts_per_update"] * after.batch["samples_per_prompt"]
        assert run_settings.check_batch(variant, after, 1) * after.batch["samples_per_device"] == per_update
        assert adapter.load(variant.framework).stated_settings(variant, after)


def test_a_server_of_its_own_becomes_a_sampler_that_sleeps() -> None:
    run = RUNS["openr1/qwen2.5-1.5b-instruct"]
    assert run.stages[0].rollout["engine"] == "vllm-server"
    (stage,) = FITS[80][run.name].run.stages
    assert stage.rollout["engine"] == "vllm-colocated" and "gpus" not in stage.rollout
    settings = adapter.load(run.framework).stated_settings(FITS[80][run.name].run, stage)
    assert settings["vllm_mode"] == "colocate" and settings["vllm_enable_sleep_mode"] is True


def test_what_does_not_fit_says_why() -> None:
    page, documented = (
        one_gpu.fits_page(list(RUNS.values()), 24),
        " ".join((ROOT / "docs" / "how-to/first-gpu.md").read_text().split()),
    )
    assert page.startswith(f"# {len(FITS[24])} of {len(RUNS)} runs fit one GPU of 24 GB")
    assert f"{len(FITS[24])} of the {len(RUNS)} runs fit 24 GB" in documented
    assert all(f"{len(FITS[size])} fit {size} GB" in documented for size in (48, 80))
    fits = [line.split(" | ")[3] == "yes" for line in page.splitlines() if line.startswith("| ")][2:]
    assert fits == sorted(fits, reverse=True)  # what fits is first
    for name in RUNS:
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
        fits, reason = line.split(" | ")[3], line.split(" | ")[6].rstrip(" |")
        assert (fits, reason == "–") == (("yes", True) if name in FITS[24] else ("no", False))


def test_other_scales_and_sizes_are_refused() -> None:
    with refused("no-gpu-at-scale", scale="demo"):
        one_gpu.fitting_runs(RUNS, 24, "demo")
    with refused("no-run-fits", gpu_gb=2):
        one_gpu.fitting_runs(RUNS, 2, "full")


def dry_run(*arguments: str) -> tuple[int, str]:
    done = run_snakemake("-n", "reproduce_one_gpu", *arguments)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("size", [24, *(pytest.param(size, marks=pytest.mark.long) for size in SIZES if size > 24)])
def test_one_command_trains_the_runs_that_fit(size: int, tmp_path: Path) -> None:
    arguments = (
        "--config",
        "scale=full",
        f"gpu_memory_gb={size}",
        f"results={tmp_path}/results",
        f"work={tmp_path}/work",
    )
    status, output = dry_run(*arguments, "--printshellcmds")
    assert status == 0, output
    trained = re.findall(r"-m frameworks train --run (\S+) .*--one-gpu (\d+)", output)
    assert dict(trained) == {name: str(fit.samples_per_device) for name, fit in FITS[size].items()}
    assert output.count("-m frameworks train") == len(trained) == len(FITS[size])


@pytest.mark.slow
def test_without_a_size_it_says_what_to_add() -> None:
    status, output = dry_run()
    assert status != 0 and printed_code(output) == "missing-setting"


def test_a_run_for_one_gpu_keeps_its_sampler() -> None:
    for name in ("gsm8k/qwen2.5-0.5b-instruct", "gsm8k/qwen2.5-0.5b-instruct-vllm"):
        (variant,), (written,) = FITS[24][name].run.stages, RUNS[name].stages
        assert (variant.rollout, variant.native) == (written.rollout, written.native)

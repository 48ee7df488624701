"""What a dry run says of many jobs, the cost before anything is queued, and the page of a set of runs."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster import run_plan
from recipes.run_sets import run_set_name
from recipes.runs import load_run, run_names
from tests.forked_command import run_snakemake
from tests.user_errors import printed_code

RUNS = {name: load_run(name, "full") for name in ("logicrl/qwen2.5-7b", "simplerl/qwen2.5-math-7b")}


def train_job(name: str, stage: int, seed: int = 0) -> SimpleNamespace:
    recipe, _, run = name.partition("/")
    wildcards = SimpleNamespace(recipe=recipe, run=run, stage=str(stage), seed=str(seed))
    return SimpleNamespace(rule=SimpleNamespace(name="train"), wildcards=wildcards)


def test_the_cost_of_what_is_left_to_train() -> None:
    simplerl, logicrl = RUNS["simplerl/qwen2.5-math-7b"], RUNS["logicrl/qwen2.5-7b"]
    jobs = [train_job(simplerl.name, 1), train_job(simplerl.name, 1, 1), train_job(logicrl.name, 3)]
    first, second = run_plan.run_plans(jobs, RUNS)
    assert (first.run, second.run) == (logicrl, simplerl)
    steps = [stage.steps for stage in logicrl.stages]
    published = 4 * logicrl.hardware["expected_hours"] * steps[2] / sum(steps)
    assert first.hours_published == pytest.approx(published)
    assert second.cells() == (
        simplerl.name, "2 stages, 2 seeds", "4 nodes × 8 GPUs", "72 h a stage", "3,072 h", "4,608 h", "512 GB"
    )  # fmt: skip
    table = run_plan.plan_table(jobs, RUNS)
    assert f"To be trained: 2 runs, {published + 3072:,.0f} GPU-hours as published" in table and "train 3" in table


def test_runs_on_gpus_have_to_be_chosen() -> None:
    plans = run_plan.run_plans([train_job("simplerl/qwen2.5-math-7b", 1)], RUNS)
    error = run_plan.refusal_of_all(plans, chosen=False)
    assert error and error.code == "runs-not-chosen" and "1 run, 1,536 GPU-hours as published" in str(error)
    assert run_plan.refusal_of_all(plans, chosen=True) is None
    demo = {"openr1/qwen2.5-math-7b": load_run("openr1/qwen2.5-math-7b", "demo")}
    assert run_plan.refusal_of_all(run_plan.run_plans([train_job(*demo, 1)], demo), chosen=False) is None


def test_each_set_of_runs_has_a_name_of_its_own() -> None:
    every = ["a/x", "a/y", "b/z", "c/1.5b", "c/7b"]
    named = {"all": ["a/x", "b/z"], "a": ["a/x"], "b": ["b/z"]}
    sets = [["a/x", "b/z"], ["a/x"], ["a/y"], ["a/x", "a/y"], ["c/7b", "c/1.5b"], ["c/1.5b", "b/z"], every]
    names = [run_set_name(runs, named, every) for runs in sets]
    assert names == ["all", "a", "a_y", "a_all", "c", "b+c_1.5b", "a_all+b+c"]
    long = [f"r/run-number-{number}" for number in range(9)]
    assert run_set_name(long[:8], {}, long).startswith("r_run-number-0+7-more-")
    assert run_set_name(reversed(long[:8]), {}, long) == run_set_name(long[:8], {}, long)
    assert len({run_set_name([name], {}, run_names()) for name in run_names()}) == len(run_names())


def snakemake(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of Snakemake in the repository."""
    done = run_snakemake(*arguments)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_a_dry_run_at_full_scale_is_a_table(tmp_path: Path) -> None:
    folders = (f"results={tmp_path}/results", f"work={tmp_path}/work")
    status, output, messages = snakemake("-n", "reproduce_all", "--config", "scale=full", *folders)
    assert status == 0, messages
    lines = output[output.index("\nrun  ") + 1 : output.index("This was a dry-run")].splitlines()
    assert lines[0].split()[0] == "run" and [line.split()[0] for line in lines[1:5]] == [
        "logicrl/qwen2.5-7b", "openr1/qwen2.5-math-7b", "simplerl/qwen2.5-math-7b", "tinyzero/grpo-3b"
    ]  # fmt: skip
    assert lines[-2].startswith("To be trained: 4 runs, ") and "jobs: export " in lines[-1]
    assert "rule " not in output and "report/all" not in output and not re.search("^Reasons", output, re.MULTILINE)


@pytest.mark.slow
def test_a_dry_run_of_few_jobs_that_are_not_listed_is_a_table(tmp_path: Path) -> None:
    folders = (f"results={tmp_path}/results", f"work={tmp_path}/work")
    status, output, messages = snakemake("-n", "reproduce_openr1", "--quiet", "rules", "--config", *folders)
    assert status == 0, messages
    assert "\nopenr1/qwen2.5-math-7b  1 stage, 1 seed " in output and "Job stats" not in output


@pytest.mark.slow
def test_recipes_with_one_seed_are_not_compared(tmp_path: Path) -> None:
    status, _, messages = snakemake(
        "compare_recipes", "--config", "recipe_a=[tinyzero/grpo-3b]", "recipe_b=[tinyzero/ppo-3b]"
    )
    assert status == 1 and printed_code(messages) == "too-few-seeds"


@pytest.mark.slow
def test_help_is_all_that_is_printed_and_names_every_target() -> None:
    status, output, messages = snakemake("help")
    assert status == 0 and len(messages.splitlines()) <= 1, messages  # which profile is used
    rules = snakemake("--list-target-rules")[1].split()
    internal = {"job_kinds", "validate_evaluations"}
    targets = {rule for rule in rules if not rule.startswith(("study_", "reproduce_"))} - internal
    assert not [target for target in targets if f"snakemake {target}" not in output]
    assert not [rule for rule in rules if rule.startswith("study_") and rule.removeprefix("study_") not in output]

"""A run of a demo model is never called by the name of a published model; every title of a page is another one."""

import re
from pathlib import Path

import pytest
from synthetic_results import write_run

from analysis.load_results import load_results
from analysis.pages import run_titles
from analysis.report.build import report
from recipes import models
from recipes.runs import load_run, run_names

RUNS = run_names()


@pytest.mark.slow
def test_no_demo_run_has_the_name_of_a_published_model() -> None:
    titles = run_titles.titles([f"{run}/seed-{seed}" for run in RUNS for seed in (0, 1)], "demo")
    assert len(set(titles.values())) == len(titles) == 2 * len(RUNS)
    for name, title in titles.items():
        run, _ = name.rsplit("/", 1)
        published = load_run(run, "full").model
        assert "demo" in title and published not in title and not re.search(r"\d[bB]\b", title)
        assert not [model for model, entry in models.library().items() if "hub" in entry and model in title]


def test_titles_say_no_more_than_needed() -> None:
    one = run_titles.titles(["tinyzero/grpo-3b/seed-0", "tinyzero/ppo-3b/seed-0"], "demo")
    assert list(one.values()) == ["tinyzero demo, GRPO (verl)", "tinyzero demo, PPO (verl)"]
    two = run_titles.titles(["tinyzero/ppo-3b/seed-0", "tinyzero/ppo-3b/seed-1"], "demo")
    assert [title.rpartition(", ")[2] for title in two.values()] == ["seed 0", "seed 1"]


def test_titles_name_the_estimator_or_the_loss_where_it_has_a_name() -> None:
    runs = ("reinforce/deepseek-r1-distill-qwen-1.5b", "gspo/qwen2.5-3b-instruct", "cispo/qwen2.5-0.5b-instruct")
    titles = run_titles.titles([f"{run}/seed-0" for run in runs], "demo").values()
    assert [title.partition(" demo, ")[2].partition(" (")[0] for title in titles] == [
        "REINFORCE++ with a baseline", "GSPO", "CISPO"
    ]  # fmt: skip


def test_runs_of_one_recipe_are_named_by_their_own_words_before_their_seeds() -> None:
    runs = ("grpo-0.5b", "grpo-0.5b-no-std", "grpo-0.5b-process", "ppo-0.5b-same-samples")
    titles = run_titles.titles([f"maze/{run}/seed-{seed}" for run in runs for seed in (0, 1)], "demo")
    grpo = "maze demo, GRPO (verl)"
    assert list(titles.values())[::2] == [
        f"{grpo}, seed 0", f"{grpo}, no std, seed 0", f"{grpo}, process, seed 0", "maze demo, PPO (verl), seed 0"
    ]  # fmt: skip


@pytest.mark.parametrize("scale", ["demo", "full"])
def test_other_runs_keep_their_names(scale: str) -> None:
    names = ["imported/mine", "recipe/that-is-gone/seed-0", *([f"{RUNS[0]}/seed-0"] if scale == "full" else [])]
    assert run_titles.titles(names, scale) == {name: name for name in names}


@pytest.mark.slow
@pytest.mark.long
def test_the_legends_of_a_demo_report_do_not_name_a_published_model(tmp_path: Path) -> None:
    name = "logicrl/qwen2.5-7b/seed-0"
    write_run(tmp_path / "demo", name, 0.6, steps=(0, 20), problems=6, repeats=2)
    report([load_results(tmp_path / "demo", name)], tmp_path / "report", "t", "demo")
    figures = {file.name: file.read_text() for file in (tmp_path / "report" / "figures").glob("*.svg")}
    assert "logicrl demo, GRPO (verl)" in figures["overview.svg"]
    assert [file for file, text in figures.items() if "qwen2.5-7b" in text] == []


def test_a_model_has_its_own_name_and_the_hashes_only_where_two_share_it() -> None:
    model, other = "models/Qwen-Qwen2.5-0.5B-b3a114d7-01759ed7", "models/Qwen-Qwen2.5-0.5B-b3a114d7-8e1f0a22"
    assert run_titles.titles([model], "full") == {model: "Qwen-Qwen2.5-0.5B"}
    assert list(run_titles.titles([model, other], "full").values()) == [
        "Qwen-Qwen2.5-0.5B, b3a114d7-01759ed7", "Qwen-Qwen2.5-0.5B, b3a114d7-8e1f0a22"
    ]  # fmt: skip


def test_a_title_says_how_weights_came_quantised_before_the_seed() -> None:
    assert run_titles.with_quantisation("a demo, seed 1", "Q4_1") == "a demo, from Q4_1 weights, seed 1"
    assert run_titles.with_quantisation("a demo", "Q4_1") == "a demo, from Q4_1 weights"
    assert run_titles.with_quantisation("a demo", "") == "a demo"

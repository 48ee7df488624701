"""What is made again after a change: dry runs of the real workflow over a finished graph whose artefacts are empty.

Each input is changed in turn, and the jobs that Snakemake would run are exactly those that depend on it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from contracts.run_file import Run
from recipes.runs import load_run
from tests.workflow import miniature

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
MATH, COUNTDOWN, PUZZLES = RUNS = ("openr1/qwen2.5-math-7b", "tinyzero/grpo-3b", "logicrl/qwen2.5-7b")
LOADED: dict[str, Run] = {name: load_run(name, "demo") for name in RUNS}
MODELS = {name: f"base_model {run.model}" for name, run in LOADED.items()}
# When artefacts of a kind were made, in minutes after the first.
MADE = {
    "report": 9,
    "data": 0,
    "models": 1,
    "stage-": 2,
    "checkpoints": 2,
    "samples": 3,
    "graded": 4,
    "scores": 5,
    "training_log": 5,
}
FIRST_MADE = 1_750_000_000  # seconds since 1970


def outputs(project: Path) -> list[Path]:
    """All outputs of the graph."""
    status, output = miniature.snakemake(project, "--summary", "reproduce_all")
    assert status == 0, output
    return [project / line.split("\t")[0] for line in output.split("\n") if "\t" in line and "output_file" not in line]


def make(path: Path) -> None:
    """An artefact without content, with the record of when it was made."""
    text = str(path)
    minute = next((minute for kind, minute in MADE.items() if f"/{kind}" in text), 9)
    record = {"made_at": datetime.fromtimestamp(FIRST_MADE + 60 * minute, UTC).isoformat(timespec="seconds")}
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".parquet", ".csv"):
        path.touch()
        path.with_name(f"{path.name}.provenance.json").write_text(json.dumps(record))
    elif path.name in ("samples", "graded") and "report" not in text:
        (path / "step-0").mkdir(parents=True)
        (path / "step-0/some.parquet.provenance.json").write_text(json.dumps(record))
    elif path.suffix in (".html", ".md", ".json") or path.name == ".stamp":
        path.touch() if path.suffix != ".json" else path.write_text(json.dumps(record))
    else:
        path.mkdir()
        (path / "provenance.json").write_text(json.dumps(record))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which everything is made, as Snakemake's own records say."""
    project = miniature.copy_sources(tmp_path_factory.mktemp("finished"))
    miniature.edit(project / "config/config.yaml", reproduce=list(RUNS))
    for path in outputs(project):
        if not path.exists():
            make(path)
    status, output = miniature.snakemake(project, "--touch", "--forceall", "reproduce_all")
    assert status == 0, output
    assert planned(project) == set()
    return project


def planned(project: Path, *arguments: str) -> set[str]:
    """The jobs that a dry run would run, as `<rule> <run or name> <stage, step or nothing>`."""
    status, output = miniature.snakemake(project, "-n", "-p", "reproduce_all", *arguments)  # -p: all jobs
    assert status == 0, output
    jobs = set()
    for block in re.split(r"\n(?=(?:local)?rule \w+:)", output)[1:]:
        rule = block.split("rule ", 1)[1].split(":")[0]
        values = dict(re.findall(r"(\w+)=([^,\s]+)", next(re.finditer(r"wildcards: (.*)", block), [""])[0]))
        named = f"{values['recipe']}/{values['run']}" if "recipe" in values else ""
        rest = [values[key] for key in ("dataset", "model", "which", "env", "stage", "step") if key in values]
        jobs.add(" ".join([rule, *filter(None, [named]), *rest]))
    return jobs - {"reproduce_all"}


@contextmanager
def changed(*edits: tuple[Path, Callable[[str], str]]) -> Iterator[None]:
    """Files with other contents, which are put back with their times."""
    before = [(file, file.read_text(encoding="utf-8"), file.stat()) for file, _ in edits]
    try:
        for file, edit in edits:
            text = edit(file.read_text(encoding="utf-8"))
            assert text != file.read_text(encoding="utf-8"), file
            file.write_text(text, encoding="utf-8")
        yield
    finally:
        for file, text, stat in before:
            file.write_text(text, encoding="utf-8")
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def swap(old: str, new: str, times: int = 1) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, times)


def graded(*runs: str) -> set[str]:
    return {f"{rule} {run}" for rule in ("grade_samples", "score_run") for run in runs} | {"report_page all"}


def sampled(*runs: str) -> set[str]:
    return graded(*runs) | {f"generate_samples {run}" for run in runs}


def trained(*runs: str, stages: Iterable[int] | None = None) -> set[str]:
    jobs = sampled(*runs) | {f"training_log {run}" for run in runs}
    for run in runs:
        for stage in LOADED[run].stages:
            if stages is None or stage.number in stages:
                jobs.add(f"train {run} {stage.number}")
                jobs |= {f"export {run} {stage.steps_before + step}" for step in stage.checkpoints}
    return jobs


def everything_of(*runs: str) -> set[str]:
    return trained(*runs) | {f"export {run} 0" for run in runs} | {MODELS[run] for run in runs}


def run_file(run: str) -> str:
    return f"recipes/{run}.yaml"


CHANGES: dict[str, tuple[str, Callable[[str], str], set[str]]] = {
    "a protocol's temperature": (
        "eval/protocols.yaml", lambda text: text.replace("temperature: 1.0", "temperature: 0.9"), sampled(*RUNS)),
    "a benchmark's rows": (
        "eval/benchmarks/countdown_demo.yaml", swap("rows: 200", "rows: 150"),
        {"problems countdown_demo", "overlap all"} | sampled(COUNTDOWN)),
    "a training set's rows": (
        "tasks/countdown/task.yaml", swap("rows: 600", "rows: 500"),
        {"problems countdown_demo_train", "overlap all"} | trained(COUNTDOWN)),
    "all demo models": ("recipes/demo_model.yaml", swap("warmup_steps: 50", "warmup_steps: 40"), everything_of(*RUNS)),
    "a task's demo model": ("tasks/countdown/task.yaml", swap("steps: 600", "steps: 500"), everything_of(COUNTDOWN)),
    "a prompt": ("tasks/countdown/task.yaml", swap("Show your work", "Show all work"), everything_of(COUNTDOWN)),
    "a task's verdicts": (
        "tasks/countdown/__init__.py", swap('answer_format = "tagged"', 'version = 2\n    answer_format = "tagged"'),
        graded(COUNTDOWN)),
    "a learning rate": (
        run_file(MATH), swap("learning_rate: 4.0e-4", "learning_rate: 5.0e-4"), trained(MATH)),
    "a reward's weight": (run_file(MATH), swap("weight: 1.0", "weight: 2.0"), trained(MATH)),
    "an override of the sampling": (run_file(MATH), swap("max_tokens: 96", "max_tokens: 90"), sampled(MATH)),
    "an override of the extraction": (
        run_file(MATH), swap("max_tokens: 96", "max_tokens: 96, extraction: last-number"), graded(MATH)),
    "the published table": (run_file(MATH), swap("reference: 3.2.2(1)", "reference: 3.2.2(2)"), {"report_page all"}),
    "the keyword lists": (
        "analysis/measures/reasoning_patterns.yaml", swap("title: ", "title: New "), {"report_page all"}),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_exactly_what_depends_on_an_input_is_made_again(finished: Path, what: str) -> None:
    file, edit, expected = CHANGES[what]
    with changed((finished / file, edit)):
        assert planned(finished) == expected


def test_a_later_stage_alone_is_trained_again(finished: Path) -> None:
    def edit(text: str) -> str:
        content = yaml.safe_load(text)
        last = content["demo"]["stages"][-1]
        last["optimizer"] = {**last.get("optimizer", {}), "learning_rate": 1e-6}
        return yaml.safe_dump(content)

    with changed((finished / run_file(PUZZLES), edit)):
        assert planned(finished) == trained(PUZZLES, stages=[len(LOADED[PUZZLES].stages)])


def test_comments_sources_limits_and_places_make_nothing_again(finished: Path) -> None:
    def comment(text: str) -> str:
        return f"# a comment\n{text}"

    with changed(
        (finished / "eval/protocols.yaml", lambda text: comment(text).replace("source: our own", "source: us")),
        (finished / "eval/benchmarks/countdown_demo.yaml", comment),
        (finished / "eval/benchmarks/_base_yaml", comment),
        (
            finished / "tasks/countdown/task.yaml",
            lambda text: comment(text).replace("source: TinyZero", "source: Tiny"),
        ),
        (finished / "recipes/demo_model.yaml", comment),
        (
            finished / "recipes/models.yaml",
            lambda text: re.sub("revision: [0-9a-f]{40}", f"revision: {'a' * 40}", text),
        ),
        (
            finished / run_file(MATH),
            lambda text: re.sub("hours: [0-9.]+", "hours: 9", re.sub("title: ", "title: A ", comment(text))),
        ),
        (finished / run_file(PUZZLES), lambda text: re.sub("memory_gb: [0-9.]+", "memory_gb: 3", text)),
        (finished / "cluster/models.yaml", comment),
        (finished / "envs/base/cpu.lock", comment),
    ):
        assert planned(finished) == set()
    elsewhere = ("work=elsewhere", "data_mirror=../mirror", "stop_on_collapse=True")
    assert planned(finished, "--config", *elsewhere) == set()


def test_settings_of_a_cluster_make_nothing_again(finished: Path) -> None:
    profile = finished / "profiles/slurm/cluster.yaml"
    with changed((profile, swap("max_hours: null", "max_hours: 2"))):
        assert planned(finished, "--configfile", str(profile)) == set()


def copied(finished: Path, to: Path, *, records: bool) -> Path:
    """The project without its time stamps: what was made last is the oldest, and what was made first the newest."""
    ignored = shutil.ignore_patterns() if records else shutil.ignore_patterns(".snakemake")
    shutil.copytree(finished, to, copy_function=shutil.copyfile, ignore=ignored)
    for path in to.rglob("*"):
        minute = next((minute for kind, minute in MADE.items() if f"/{kind}" in str(path)), 9)
        os.utime(path, (2_000_000_000 - 60 * minute,) * 2)
    return to


@pytest.mark.parametrize("records", [True, False], ids=["whole", "without Snakemake's records"])
def test_a_copy_without_time_stamps_makes_nothing_again(finished: Path, tmp_path: Path, records: bool) -> None:
    copy = copied(finished, tmp_path / "copy", records=records)
    assert planned(copy) == set()
    if records:
        with changed((copy / "eval/protocols.yaml", CHANGES["a protocol's temperature"][1])):
            assert planned(copy) == sampled(*RUNS)


def test_finished_results_are_kept_where_an_environment_is_missing(finished: Path, tmp_path: Path) -> None:
    copy = copied(finished, tmp_path / "copy", records=True)
    shutil.rmtree(copy / "logs", ignore_errors=True)
    for stamp in copy.glob(".envs/trl-*/.stamp"):
        stamp.unlink()
    with changed((copy / run_file(MATH), CHANGES["a learning rate"][1])):
        status, output = miniature.snakemake(copy, "reproduce_all")
    assert status != 0 and "envs/build.py trl --device cpu" in output and "Traceback" not in output, output
    assert not any(copy.glob("logs/**/*.log")), "something ran"


def test_an_artefact_that_was_replaced_is_noticed(finished: Path) -> None:
    table = finished / "results/demo/data/train/countdown_demo_train.parquet"
    before = table.stat()
    try:
        table.write_text("another")
        assert planned(finished) == {"overlap all"} | trained(COUNTDOWN)
    finally:
        table.write_text("")
        os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))

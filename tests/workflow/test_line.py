"""The whole line for real, in miniature: from nothing to a report, and nothing done twice.

Killed on the way in `make test-long`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.benchmark import exchange
from contracts import tables
from tests import needs
from tests.waiting import WORKFLOW_LIMIT
from tests.workflow import miniature

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
RUN_FOLDER = Path("results/demo/runs") / miniature.RUN / "seed-0"
BENCHMARKS, PROBLEMS, REPEATS = ("arithmetic_expressions", "arithmetic_words"), 12, 2


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs.skip_without("trl", "eval")
    project = miniature.copy(tmp_path_factory.mktemp("project"))
    status, output = miniature.snakemake_process(project, "reproduce_all")
    assert status == 0, output
    return project


def children(pid: int) -> list[int]:
    """All descendants of a process."""
    descendants, todo = [], [pid]
    while todo:
        parent = todo.pop()
        try:
            below = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        except OSError:
            continue
        descendants += map(int, below)
        todo += map(int, below)
    return descendants


def kill_when(project: Path, target: str, ready: str, pattern: str) -> None:
    """Start the workflow, wait until `pattern` below the work folder holds `ready`, and kill everything at once."""
    process = miniature.start(project, target)
    deadline = time.monotonic() + WORKFLOW_LIMIT
    try:
        while not any(ready in file.read_text(errors="replace") for file in (project / "work").glob(pattern)):
            assert process.poll() is None, (
                process.stdout.read() if process.stdout else "",
                "ended before it was killed",
            )
            assert time.monotonic() < deadline, f"{ready!r} never came"
            time.sleep(0.05)
    finally:
        for pid in [*children(process.pid), process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()


@pytest.mark.long
def test_killed_in_training_and_in_generation_it_finishes_and_repeats_nothing(tmp_path: Path) -> None:
    needs.skip_without("trl", "eval")
    project = miniature.copy(tmp_path)
    target = "results/demo/report/all/index.html"
    stage = f"demo/runs/{miniature.RUN}/seed-0/stage-1-*"
    kill_when(project, target, "global_step", f"{stage}/native/checkpoint-3/trainer_state.json")
    kill_when(project, target, "problem_id", f"demo/runs/{miniature.RUN}/seed-0/samples/**/*.jsonl")
    said = (project / f"logs/demo/train/{miniature.RUN}/seed-0/stage-1.log").read_text()
    # TRL saves the step that it is at, if it gets to it
    assert re.search("resuming from step [3-6]", said), said
    trained_at = (project / RUN_FOLDER / "stage-1/training_log.parquet").stat().st_mtime_ns
    model_at = (project / "results/demo/models/demo/model.safetensors").stat().st_mtime_ns

    status, output = miniature.snakemake_process(project, "reproduce_all")
    assert status == 0, output
    started = {
        rule: miniature.jobs_started(output, rule) for rule in ("train", "base_model", "score_run", "report_page")
    }
    assert started == {"train": 0, "base_model": 0, "score_run": 1, "report_page": 1}, output
    assert (project / RUN_FOLDER / "stage-1/training_log.parquet").stat().st_mtime_ns == trained_at
    assert (project / "results/demo/models/demo/model.safetensors").stat().st_mtime_ns == model_at


def test_completions_of_every_step_are_kept_with_their_verdicts(project: Path) -> None:
    rows = tables.read(project / RUN_FOLDER / "stage-1/rollouts.parquet", tables.ROLLOUT).to_pylist()
    kept = Counter(row["step"] for row in rows)
    assert sorted(kept) == list(range(1, miniature.STEPS + 1)) and max(kept.values()) <= tables.ROLLOUTS_PER_STEP
    assert all(row["problem_id"] and row["prompt"] and row["verdict"] in tables.VERDICTS for row in rows)
    log = tables.read(project / RUN_FOLDER / "training_log.parquet", tables.TRAINING_LOG).to_pylist()
    for of_step in log:
        lengths = [row["completion_tokens"] for row in rows if row["step"] == of_step["step"]]
        # The text is split anew, and does not show the token that ends it where it was not cut.
        ends = 1 - of_step["truncated_rate"]
        assert sum(lengths) / len(lengths) + ends == pytest.approx(of_step["response_length_mean"], rel=0.1)


def test_the_training_log_has_every_step_once(project: Path) -> None:
    log = tables.read(project / RUN_FOLDER / "training_log.parquet", tables.TRAINING_LOG).to_pydict()
    assert log["step"] == list(range(1, miniature.STEPS + 1))
    assert all(seconds > 0 for seconds in log["wall_time"]) and log["wall_time"] == sorted(log["wall_time"])
    assert set(log["run"]) == {f"{miniature.RUN}/seed-0"}
    for column in ("reward_mean", "accuracy", "response_length_mean", "entropy", "grad_norm", "tokens_per_second"):
        assert all(value == value and value is not None for value in log[column]), column


def test_the_tokens_of_every_step_are_counted(project: Path) -> None:
    log = tables.read(project / RUN_FOLDER / "training_log.parquet", tables.TRAINING_LOG).to_pylist()
    batch = 4 * 8  # of the miniature
    for of_step in log:
        assert of_step["sampled_tokens"] == pytest.approx(batch * of_step["response_length_mean"])
        assert of_step["trained_tokens"] > of_step["sampled_tokens"]  # prompts, too
        assert 0 < of_step["padding_share"] < 0.9


def test_what_it_cost(project: Path) -> None:
    status, output = miniature.snakemake(project, "benchmark", "--config", f"reproduce=[{miniature.RUN}]", "price=2")
    assert status == 0 and "minutes to" in output and miniature.jobs_started(output, "train") == 0, output
    page = project / "results/demo/benchmark" / miniature.RUN.replace("/", "_")
    (one,) = exchange.read(page / "benchmark.json")
    assert one.run == miniature.RUN and one.steps == miniature.STEPS and 0 < (one.padding_share or 0) < 0.9
    assert "Padding" in (page / "index.html").read_text(encoding="utf-8")


def test_every_checkpoint_has_every_sample_once_and_is_graded_and_scored(project: Path) -> None:
    scores = tables.read(project / RUN_FOLDER / "scores.parquet", tables.SCORE).to_pylist()
    assert {(s["step"], s["benchmark"]) for s in scores} == {
        (step, name) for step in (0, *miniature.CHECKPOINTS) for name in BENCHMARKS
    }
    for score in scores:
        assert (score["n_problems"], score["k_repeats"]) == (PROBLEMS, REPEATS)
        graded = pq.read_table(
            project / RUN_FOLDER / f"graded/step-{score['step']}/{score['benchmark']}.parquet"
        ).to_pylist()
        assert len({(row["problem_id"], row["repeat"]) for row in graded}) == len(graded) == PROBLEMS * REPEATS
        assert len({row["seed"] for row in graded}) == PROBLEMS * REPEATS
        assert sum(row["verdict"] == "correct" for row in graded) == score["n_correct"]


def test_the_protocol_is_recorded_with_every_score(project: Path) -> None:
    record = json.loads((project / RUN_FOLDER / "scores.parquet.provenance.json").read_text())
    assert len(record["scored"]) == len(BENCHMARKS) * (1 + len(miniature.CHECKPOINTS))
    for scored in record["scored"]:
        sampling = scored["samples"]
        expected = {
            "prompt": "boxed",
            "chat_template": True,
            "temperature": 1.0,
            "top_p": 1.0,
            "max_tokens": 40,
            "stop": [],
        }
        assert expected.items() <= sampling["protocol"].items()
        assert "boxed" in json.dumps(sampling["prompt"]) and len(sampling["chat_template_sha256"]) == 64
        assert sampling["repeats"] == REPEATS and sampling["seed"]["base"] == 0
        assert scored["grader"].startswith("math-verify") and scored["extraction"] == "none"


def test_graded_again_by_another_grader_beside_the_first(project: Path) -> None:
    first = project / RUN_FOLDER / "graded/step-0" / f"{BENCHMARKS[0]}.parquet"
    before = first.read_bytes()
    status, output = miniature.snakemake(project, "grade", "--config", "grader=strict", "extraction=last-number")
    assert status == 0 and miniature.jobs_started(output, "regrade_samples") == 1, output
    assert miniature.jobs_started(output, "generate_samples") == 0, output
    folder = project / RUN_FOLDER / "regraded/strict+last-number"
    again = folder / "graded/step-0" / first.name
    record = json.loads(again.with_name(f"{again.name}.provenance.json").read_text())
    assert (record["grader"].partition(",")[0], record["extraction"]) == ("strict", "last-number")
    kept = ("problem_id", "repeat", "seed", "completion")
    assert pq.read_table(again).select(kept) == pq.read_table(first).select(kept)
    assert len(pq.read_table(folder / "scores.parquet")) == len(BENCHMARKS) * (1 + len(miniature.CHECKPOINTS))
    assert first.read_bytes() == before
    status, output = miniature.snakemake(project, "grade")
    assert status == 0 and "Nothing to be done" in output, output


def test_a_score_can_be_followed_back_to_its_checkpoint(project: Path) -> None:
    step = miniature.CHECKPOINTS[-1]
    samples = json.loads(
        (project / RUN_FOLDER / f"samples/step-{step}/{BENCHMARKS[0]}.parquet.provenance.json").read_text()
    )
    checkpoint = json.loads((project / RUN_FOLDER / f"checkpoints/step-{step}/provenance.json").read_text())
    assert checkpoint["sha256"] in json.dumps(samples)
    training = json.loads((project / RUN_FOLDER / "stage-1/training_log.parquet.provenance.json").read_text())
    assert training["run_file"]["framework"] == "trl" and training["environment"]["environment"] == "trl"


def test_the_report_is_there_and_asked_again_there_is_nothing_to_do(project: Path) -> None:
    page = (project / "results/demo/report/all/index.html").read_text(encoding="utf-8")
    assert miniature.RUN in page and "Held-out accuracy" in page
    status, output = miniature.snakemake(project, "reproduce_all")
    assert status == 0 and "Nothing to be done" in output, output


@pytest.mark.long
def test_verdicts_that_were_deleted_are_made_again_and_nothing_else(project: Path) -> None:
    """What the errors about damaged tables advise."""
    before = tables.read(project / RUN_FOLDER / "scores.parquet", tables.SCORE)
    shutil.rmtree(project / RUN_FOLDER / "graded")
    status, output = miniature.snakemake(project, "report")
    rules = {"train": 0, "generate_samples": 0, "grade_samples": 1, "score_run": 1, "report_page": 1}
    assert status == 0 and {rule: miniature.jobs_started(output, rule) for rule in rules} == rules, output
    assert tables.read(project / RUN_FOLDER / "scores.parquet", tables.SCORE) == before


def test_snakemakes_own_report_is_one_file_with_figures_tables_and_captions(project: Path) -> None:
    status, output = miniature.snakemake(project, "reproduce_all", "--report", "packed.html")
    assert status == 0 and "Report created" in output, output
    packed = (project / "packed.html").read_text(encoding="utf-8")
    report = project / "results/demo/report/all"
    for file in (
        "index.html",
        *(f"figures/{path.name}" for path in report.glob("figures/*.svg")),
        "tables/accuracy.html",
    ):
        assert f"results/demo/report/all/{file}" in packed, file
    assert "Overlapping bars do not mean" in packed and "A row is bold only if" in packed  # captions


def check(project: Path, **sides: object) -> tuple[int, str, dict[str, Any]]:
    """Exit status and output of `snakemake compare_checkpoints`, and the comparison that it wrote last."""
    run = miniature.snakemake_process if isinstance(sides["checkpoint"], Path) else miniature.snakemake  # it samples
    status, output = run(project, "compare_checkpoints", "--config", *(f"{k}={v}" for k, v in sides.items()))
    written = sorted(
        project.glob("results/demo/compare/checkpoints/*/comparison.json"), key=lambda file: file.stat().st_mtime_ns
    )
    return status, output, json.loads(written[-1].read_text()) if written else {}


@pytest.mark.long  # samples once more
def test_a_checkpoint_against_itself_differs_by_exactly_nothing(project: Path) -> None:
    stored, last = f"{miniature.RUN}/seed-0/step-{miniature.CHECKPOINTS[-1]}", miniature.CHECKPOINTS[-1]
    folder = RUN_FOLDER / f"checkpoints/step-{last}"  # a model like one from elsewhere: sampled and graded first
    status, output, comparison = check(project, checkpoint=folder, baseline=stored)
    assert status == 0 and "cannot tell" in output, output
    assert [line["difference"]["value"] for line in comparison["lines"]] == [0.0, 0.0, 0.0]
    # Its samples are there, so that this makes scores and a page.
    status, output = miniature.snakemake(project, "evaluate", "--config", f"checkpoint={folder}")
    (scores,) = project.glob("results/demo/runs/models/*/scores.parquet")
    (page,) = project.glob("results/demo/report/models/*/index.html")
    assert status == 0 and page.parent.name == scores.parent.name and "eval.generate" not in output, output
    own, comparison = (
        {row["benchmark"]: row["avg_at_k"] for row in tables.read(file, tables.SCORE).to_pylist() if row["step"] == at}
        for file, at in ((project / RUN_FOLDER / "scores.parquet", last), (scores, 0))
    )
    assert own == comparison and own
    assert (page.parent / "samples" / "index.html").is_file()
    assert str(folder) in page.read_text() and "Evaluated without a training: " in page.read_text()


@pytest.mark.long
def test_comparing_ends_with_failure_where_a_checkpoint_is_worse_or_the_baseline_has_other_problems(
    project: Path,
) -> None:
    stored = f"{miniature.RUN}/seed-0/step-{miniature.CHECKPOINTS[-1]}"
    step = project / "worse/step-0"
    step.mkdir(parents=True)
    for name in BENCHMARKS:
        graded = tables.read(
            project / RUN_FOLDER / f"graded/step-{miniature.CHECKPOINTS[-1]}/{name}.parquet", tables.GRADED
        )
        rows = graded.to_pylist()
        right = [{**row, "step": 0, "verdict": "correct"} for row in rows]
        tables.write(
            pa.Table.from_pylist(right, tables.GRADED), tables.GRADED, project / f"better/step-0/{name}.parquet"
        )
        wrong = [{**row, "step": 0, "verdict": "wrong"} for row in rows]
        tables.write(pa.Table.from_pylist(wrong, tables.GRADED), tables.GRADED, step / f"{name}.parquet")
    status, output, comparison = check(project, checkpoint="worse", baseline="better")
    assert status == 1 and comparison["exit_status"] == 1 and "▼ worse" in output, output
    status, output, comparison = check(project, checkpoint=stored, baseline="sober/Qwen2.5-Math-7B")
    assert status == 1 and comparison["exit_status"] == 2 and "not comparable" in output, output
    status, output, _ = check(project, checkpoint=stored, baseline="sober/Qwen2.5Math-7B")
    assert status == 1 and "sober/Qwen2.5-Math-7B" in output, output


def test_another_seed_is_another_run_even_where_a_report_is_there(project: Path) -> None:
    (project / "recipes" / f"{miniature.RUN}.yaml").touch()
    status, output = miniature.snakemake(project, "-n", "reproduce_all", "--config", "seeds=[1]")
    assert status == 0, output
    assert "seed-1/scores.parquet" in output and "rule train:" in output


def test_another_learning_rate_trains_again_and_another_comment_does_not(project: Path) -> None:
    file = project / "recipes" / f"{miniature.RUN}.yaml"
    before = file.read_text()
    file.write_text(f"# a comment\n{before}")
    status, output = miniature.snakemake(project, "-n", "reproduce_all")
    assert status == 0 and "rule train:" not in output, output
    file.write_text(before.replace("learning_rate: 0.0004", "learning_rate: 0.0005"))
    assert file.read_text() != before
    status, output = miniature.snakemake(project, "-n", "reproduce_all")
    file.write_text(before)
    assert status == 0 and "rule train:" in output, output

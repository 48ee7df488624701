"""Progress with the real Snakemake: the live view in a terminal, and plain lines elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from cluster.progress import Progress, duration_text, job_label
from contracts.run_file import ROOT
from tests.forked_command import run_snakemake

STEP = "openr1/a: step 7/20, reward 0.25, length 30, 2.0 s per step, 26 s left"
SNAKEFILE = f"""
from cluster import live_view, progress_lines
live_view.show() or progress_lines.show()
rule all:
    input: expand("{{run}}.txt", run=["a", "b"])
rule train:
    output: "{{run}}.txt"
    log: "{{run}}.log"
    shell: "(echo '{STEP}'; echo 'WARNING: openr1/a: format errors at step 5'; echo 'said by {{wildcards.run}}';"
           " sleep 2) 2>&1 | tee {{log}} && touch {{output}}"
"""
WORDS = [sys.executable, "-m", "snakemake", "--cores", "1"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "120", "NO_COLOR": "1"}


def in_a_terminal(folder: Path) -> tuple[int, str]:
    """The exit status and what a terminal is sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(WORDS, cwd=folder, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    sent = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        sent += part
    os.close(ours)
    return process.wait(), re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", sent.decode("utf-8", "replace"))


@pytest.mark.slow
def test_a_terminal_shows_stages_steps_rewards_and_warnings_and_the_log_the_rest(project: Path) -> None:
    status, sent = in_a_terminal(project)
    assert status == 0, sent
    assert "train 0/2 → all 0/1" in sent and "train 1/2" in sent
    assert re.search(r"train a +7/20 +0\.25 .* 26 s", sent)
    assert "warning: openr1/a: format errors at step 5" in sent
    assert re.search(r"1 of 3 jobs, at least \d+ s left", sent)
    assert "said by a" in sent and "said by b" in sent and "2.0 s per step" not in sent
    assert "Finished jobid" not in sent
    (log,) = (project / ".snakemake" / "log").glob("*.log")
    assert log.read_text(encoding="utf-8").count("Finished jobid") == 3


def without_a_terminal(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    done = run_snakemake("--cores", "1", *options, cwd=folder, environment=environment())
    done.check_returncode()
    return done


@pytest.mark.slow
def test_without_a_terminal_a_plain_line_for_each_job_that_starts_or_ends(project: Path) -> None:
    done = without_a_terminal(project)
    assert done.stdout.count(STEP) == 2 and "\x1b" not in done.stdout + done.stderr
    lines = [line.partition(" ")[2] for line in done.stderr.split("\n") if re.match(r"\d\d:\d\d:\d\d ", line)]
    trained, ended = lines[:4], lines[4:]
    assert sorted({line.partition(":")[0] for line in trained}) == ["train a", "train b"]
    for job in (trained[:2], trained[2:]):
        assert job[0].endswith(": started") and re.search(
            r": done after \d+ s; [12] of 3 jobs(, at least \d+ s left)?$", job[1]
        )
    assert ended[0] == "all: started" and re.fullmatch(r"all: done after \d+ s; 3 of 3 jobs", ended[1])
    assert "Finished jobid" not in done.stderr and "Select jobs" not in done.stderr.partition(": started")[2]
    (log,) = (project / ".snakemake" / "log").glob("*.log")
    assert log.read_text(encoding="utf-8").count("Finished jobid") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "there"), [("--quiet=progress", False), ("--quiet=rules", True), ("--dry-run", False)]
)
def test_plain_lines_unless_snakemake_is_told_to_be_quiet(project: Path, option: str, there: bool) -> None:
    done = without_a_terminal(project, option)
    said = done.stdout + done.stderr  # a dry run prints to the former
    assert (": started" in said) == there and ("train a: done" in said) == there
    assert ("rule train:" in said) == (option == "--dry-run")


@pytest.mark.slow
def test_a_failed_job_is_shown_and_the_status_kept(project: Path) -> None:
    (project / "Snakefile").write_text(SNAKEFILE.replace("sleep 2", "sleep 1; exit 3"), encoding="utf-8")
    status, sent = in_a_terminal(project)
    assert status == 1 and "Error in rule train" in sent


def info(job: int, rule: str, log: Path | None = None) -> dict[str, object]:
    logs = [str(log)] if log else []
    return {"event": LogEvent.JOB_INFO, "jobid": job, "rule_name": rule, "log": logs, "wildcards": {}}


def test_time_left_of_the_whole(tmp_path: Path) -> None:
    progress = Progress(lambda: {"all": True, "train": False, "score": False})
    progress.add({"event": LogEvent.RUN_INFO, "stats": {"score": 3, "train": 3, "all": 1, "total": 7}}, 0)
    assert [*progress.total] == ["all", "train", "score"]
    progress.add(info(1, "train"), 0)
    assert progress.left(50) is None  # nothing has ended
    progress.add({"event": LogEvent.JOB_FINISHED, "job_id": 1}, 100)
    assert progress.left(100) == (200, False)  # 2 more trainings, and 3 scores that may take any time
    assert progress.summary(100) == "1 of 7 jobs, at least 3 min left"
    progress.add(info(2, "score"), 100)
    progress.add({"event": LogEvent.JOB_FINISHED, "job_id": 2}, 110)
    assert progress.left(110) == (220, True)
    assert progress.summary(110) == "2 of 7 jobs, about 4 min left"
    (tmp_path / "log").write_text("x: step 3/9, reward 1, 2.0 s per step, 30 s left\n")
    progress.add(info(3, "train", tmp_path / "log"), 110)
    assert progress.left(130) == (150, True)  # as the training says: 30, then 100, then twice 10
    progress.add(info(4, "train"), 130)
    assert progress.left(130) == (75, True)  # two at once


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("openr1/a: step 3/9, reward 1, 2.0 s per step, 30 s left", ("3/9", "1", 30)),
        ("demo: step 100/900, loss 2.41, 177 s left", ("100/900", "", 177)),
        ("generate: 1169/1800 samples, 58.3 samples/s, 1:02:11 left", ("1169/1800", "", 3731)),
        ("generate: 0/1800 samples", ("0/1800", "", None)),
        ("so 3/4 of it: step by step", ("", "", None)),
    ],
)
def test_progress_of_base_models_trainings_and_evaluations(tmp_path: Path, line: str, columns: object) -> None:
    progress = Progress()
    (tmp_path / "log").write_text(f"{line}\n")
    progress.add(info(1, "any", tmp_path / "log"), 0)
    assert progress.step(1) == columns


@pytest.mark.parametrize(("seconds", "text"), [(40, "40 s"), (720, "12 min"), (11_100, "3 h 05 min")])
def test_duration(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("wildcards", "text"),
    [
        ({"recipe": "openr1", "run": "a", "seed": "0", "stage": "1"}, "any openr1/a/seed-0 stage 1"),
        ({"recipe": "openr1", "run": "a", "seed": "0"}, "any openr1/a/seed-0"),
        ({"kind": "train", "dataset": "gsm8k"}, "any train gsm8k"),
        ({"which": "all\x1b[2J"}, "any all\u241b[2J"),
        (None, "any"),
    ],
)
def test_a_job_for_readers(wildcards: dict[str, str] | None, text: str) -> None:
    assert job_label({"rule_name": "any", "wildcards": wildcards}) == text

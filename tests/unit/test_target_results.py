"""A command ends with the results of its targets, also where nothing is to be done; Ctrl-C is no failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from cluster import target_results
from contracts import tables
from contracts.paths import ResultsFolder
from contracts.run_file import ROOT
from tests.forked_command import run_snakemake
from tests.waiting import LIMIT, wait_until

SNAKEFILE = f"""
from cluster import interrupt
INTERRUPT = interrupt.Interrupt(lambda: workflow.scheduler is not None)
include: {str(ROOT / "workflows" / "progress_and_failures.smk")!r}
rule all:
    input: "study.csv", "report/all/index.html"
rule study:
    output: "study.csv"
    log: "study.log"
    shell: "echo 'the best is b' > {{log}}; touch {{output}}"
rule page:
    output: "report/{{which}}/index.html"
    shell: "touch {{output}}"
rule slow:
    output: "slow.txt"
    log: "slow.log"
    shell: "touch started; sleep 60 2>&1 | tee {{log}}; touch {{output}}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    return tmp_path


OPTIONS = ("--cores", "1", "--config", "cluster=", "--")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "snakemake", *OPTIONS, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes)  # type: ignore[call-overload, no-any-return]


@pytest.mark.slow
def test_results_are_the_last_words_also_where_nothing_is_to_be_done(project: Path) -> None:
    expected = ["the best is b", str(project / "study.csv"), str(project / "report/all/index.html")]
    for _ in range(2):
        done = run_snakemake(*OPTIONS, "study", "all", cwd=project)
        assert done.stdout.splitlines() == [expected[0], expected[2]]
    assert "Nothing to be done" in done.stderr
    assert run_snakemake(*OPTIONS, "study", cwd=project).stdout.splitlines() == expected[:2]


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_workflow_has_not_failed(project: Path, times: int) -> None:
    process = start(project, "slow")
    wait_until(lambda: (project / "started").exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    _, messages = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "failed" not in messages and "Traceback" not in messages and "rror" not in messages, messages
    assert messages.rstrip().splitlines()[-1].startswith("Interrupted. What is finished is kept")
    assert "This continues: snakemake --cores 1" in messages


PRESSED = """
import hashlib, os, signal, threading
from cluster import interrupt
INTERRUPT = interrupt.Interrupt(lambda: True)
calculates = threading.Event()
def report_job():
    calculates.wait()
    os.kill(os.getpid(), signal.SIGINT)
    print(INTERRUPT.was_pressed())
print(INTERRUPT.was_pressed())
job = threading.Thread(target=report_job)
job.start()
try:
    calculates.set()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)  # lets the other thread go on, and takes no signal
    job.join()
except KeyboardInterrupt:
    pass
"""


@pytest.mark.slow
def test_a_job_that_ends_before_ctrl_c_is_taken_was_interrupted() -> None:
    done = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True, timeout=LIMIT, cwd=ROOT)
    assert (done.stdout.split(), done.returncode) == (["False", "True"], 0), done


ASKED_WHILE_THE_MAIN_THREAD_BEGINS_TO_WAIT = """
import threading
from cluster import interrupt
INTERRUPT = interrupt.Interrupt(lambda: True)
ended, reported = threading.Semaphore(0), threading.Semaphore(0)
def report_jobs():
    while ended.acquire():
        INTERRUPT.was_pressed()
        reported.release()
threading.Thread(target=report_jobs, daemon=True).start()
for _ in range(300):
    ended.release()
    reported.acquire()
"""


@pytest.mark.slow
def test_a_job_is_reported_while_the_main_thread_waits_for_it() -> None:
    code = ASKED_WHILE_THE_MAIN_THREAD_BEGINS_TO_WAIT
    subprocess.run([sys.executable, "-c", code], timeout=LIMIT, cwd=ROOT, check=True)


def test_scores_are_shown_from_the_first_checkpoint_to_the_last(tmp_path: Path) -> None:
    run = ResultsFolder(tmp_path).run("openr1/small/seed-0")
    common = {"run": "openr1/small/seed-0", "benchmark": "math500", "protocol": "demo", "n_problems": 150}
    common |= {"k_repeats": 2, "ci_low": 0.61, "ci_high": 0.731}
    rows = [common | {"step": step, "avg_at_k": value} for step, value in ((0, 0.0), (24, 0.672))]
    run.path.mkdir(parents=True)
    tables.write(pa.Table.from_pylist(rows, schema=tables.SCORE), tables.SCORE, run.scores)
    assert target_results.files_text([run.graded, run.scores]) == [
        "openr1/small/seed-0  math500  0.0 → 67.2 % [61.0, 73.1] at step 24, 150 problems × 2, protocol demo",
        str(run.scores),
    ]
    assert target_results.run_label(run.regraded("strict", "protocol").path).endswith("graded by strict+protocol")


def test_many_rows_are_cut() -> None:
    assert target_results.aligned([["a", "b"], ["ccc", "d"], ["e", "f"]], most=2) == [
        "a    b",
        "ccc  d",
        "… and 1 more",
    ]


def test_contamination_is_shown_with_its_twin(tmp_path: Path) -> None:
    file = ResultsFolder(tmp_path).contamination("openr1/small/seed-0")
    file.parent.mkdir(parents=True)
    measures = "exact,rouge_l,right\n0,math500,benchmark,40,150,0.041,0.5,0.3\n0,math500,twin,40,150,0.0,0.25,0.1\n"
    file.write_text(f"step,benchmark,kind,share,problems,{measures}")
    first, twin, path = target_results.files_text([file])
    assert first.split("  ")[0] == "openr1/small/seed-0" and "exact 4.1 %, rouge l 50.0 %, right 30.0 %" in first
    assert "twin" in twin and "first 40 % shown" in twin and path == str(file)

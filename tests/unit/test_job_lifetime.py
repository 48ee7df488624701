"""Jobs end with the workflow that started them: with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from system import job_lifetime
from tests.waiting import LIMIT, wait_until

pytestmark = pytest.mark.slow

SNAKEFILE = """
rule job:
    output: "never"
    shell: "{python} job.py 2>&1 | tee job.log"
"""
JOB = """
import os, sys, time
sys.path.insert(0, {root!r})
from system import job_lifetime
job_lifetime.end_with_workflow()
print(os.getpid(), flush=True)
time.sleep(600)
"""


def gone(pid: int) -> bool:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_a_job_ends_when_its_snakemake_is_killed(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("{python}", sys.executable))
    (tmp_path / "job.py").write_text(JOB.format(root=str(ROOT)))
    snakemake = subprocess.Popen(
        [Path(sys.executable).with_name("snakemake"), "--cores", "1"], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    log = tmp_path / "job.log"
    wait_until(lambda: log.is_file() and log.read_text().strip())
    pid = int(log.read_text())
    snakemake.send_signal(signal.SIGKILL)
    snakemake.wait()
    assert gone(pid)


def test_a_process_that_no_workflow_started_watches_nothing() -> None:
    code = "from system import job_lifetime; print([p.pid for p in job_lifetime.chain_to_snakemake()])"
    done = subprocess.run(["setsid", "--wait", sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() in ("[]", str([process.pid for process in job_lifetime.chain_to_snakemake()]))


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time; from system.job_lifetime import die_with_parent;"
        "c = subprocess.Popen(['sleep', '600'], preexec_fn=die_with_parent); print(c.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    assert gone(child)

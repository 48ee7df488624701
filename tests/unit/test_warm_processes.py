"""Jobs of a real workflow are forks of one process, which ends with the workflow, however that ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from contracts.run_file import ROOT
from system import warm_processes
from tests import needs
from tests.waiting import LIMIT, wait_until

pytestmark = [pytest.mark.slow, needs.linux]

JOB = f"cd {ROOT} && OWN=yes {sys.executable} -m tests.unit.warm_program"


def start(folder: Path, *jobs: str) -> subprocess.Popen[str]:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
    rules = [f"rule job_{n}:\n    output: 'job_{n}'\n    shell: {job!r}\n" for n, job in enumerate(jobs)]
    wanted = ", ".join(f"'job_{n}'" for n in range(len(jobs)))
    bound = ROOT / "workflows" / "job_lifetime.smk"
    text = f"include: {str(bound)!r}\nrule all:\n    input: {wanted}\n" + "\n".join(rules)
    (folder / "Snakefile").write_text(text)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--quiet", "all"]
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def warm(workflow: int) -> list[psutil.Process]:
    """The warm processes of a workflow and their forks, none of which is below it."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            if "warm_processes.serve" in command and f"({workflow}, " in command:
                processes.append(process)
    return processes


def test_the_jobs_of_a_workflow_import_once_and_nothing_is_left(tmp_path: Path) -> None:
    # A training notes when its job started, which is another time for each.
    jobs = [
        f"export {warm_processes.JOB_STARTED}={n}; {JOB} {tmp_path}/job_{n} tests.unit.imported_once" for n in range(3)
    ]
    process = start(tmp_path, *jobs)
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    outputs = [(tmp_path / f"job_{n}").read_text().split() for n in range(3)]
    importers, own, arguments = zip(*outputs, strict=True)
    assert len(set(importers)) == 1 and len({*importers, *own}) == 4 and set(arguments) == {"yes"}
    wait_until(lambda: not warm(process.pid))


def test_a_job_that_starts_after_a_source_was_edited_has_a_warm_process_of_its_own(tmp_path: Path) -> None:
    for name in ("system/a.py", "eval/inner/b.py", "eval/c.py", "results/demo/notes.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    before = warm_processes.sources(tmp_path)
    (tmp_path / "results" / "demo" / "notes.py").write_text("x = 2\n")
    assert warm_processes.sources(tmp_path) == before
    (file := tmp_path / "eval" / "inner" / "b.py").write_text("x = 2\n")  # of the same size
    assert (edited := warm_processes.sources(tmp_path)) != before
    file.rename(file.with_name("d.py"))
    assert warm_processes.sources(tmp_path) not in (before, edited)


def test_signals_do_in_a_job_what_they_do_in_an_interpreter(tmp_path: Path) -> None:
    process = start(tmp_path, f"{JOB} signals tests.unit.imported_once > {tmp_path}/said; touch {tmp_path}/job_0")
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    plain = [sys.executable, "-c", "from tests.unit.warm_program import handlers; print(handlers())"]
    expected = subprocess.run(plain, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert (tmp_path / "said").read_text() == expected


def test_a_package_that_cannot_be_imported_is_said(tmp_path: Path) -> None:
    process = start(tmp_path, f"{JOB} {tmp_path}/job_0 tests.unit.is_not_there 2> {tmp_path}/said")
    process.communicate(timeout=LIMIT)
    assert process.returncode != 0
    assert "No module named 'tests.unit.is_not_there'" in (tmp_path / "said").read_text()


@pytest.mark.parametrize("killed", ["workflow", "job", "warm process"])
def test_a_job_ends_with_its_workflow_its_own_process_and_the_warm_one(tmp_path: Path, killed: str) -> None:
    process = start(tmp_path, f"{JOB} wait tests.unit.imported_once > {tmp_path}/said")
    wait_until(lambda: (tmp_path / "said").exists() and "waiting" in (tmp_path / "said").read_text())
    processes = warm(process.pid)
    (forking,) = [one for one in processes if one.ppid() not in {each.pid for each in processes}]
    folder = Path(re.findall(r"serve\('(.+?)'", " ".join(forking.cmdline()))[0])
    assert folder.is_dir()
    below = forking.children(recursive=True)
    assert len(below) == 3  # the subreaper, the job's server, the program
    if killed == "workflow":
        process.kill()
    elif killed == "warm process":
        forking.kill()
    else:
        jobs = psutil.Process(process.pid).children(recursive=True)
        next(one for one in jobs if "tests.unit.warm_program" in one.cmdline()).send_signal(signal.SIGKILL)
    assert psutil.wait_procs(below, LIMIT)[1] == []
    process.communicate(timeout=LIMIT)
    assert process.returncode != 0
    wait_until(lambda: not warm(process.pid))
    assert killed == "warm process" or not folder.exists()

"""Jobs end with the workflow that started them, however that ends: shell commands of the real rules, real processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from contracts.run_file import ROOT
from tests import needs
from tests.forked_command import run_snakemake
from tests.waiting import LIMIT, wait_until
from tests.workflow import miniature

pytestmark = [pytest.mark.slow, needs.linux]

# A job's program: it says that it runs, and what it was told.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
folder = Path(__file__).parent
signal.signal(signal.SIGTERM, lambda *_: ((folder / f"{sys.argv[1]}.asked").touch(), sys.exit(1)))
if sys.argv[2:] == ["detached"]:
    if os.fork():
        os._exit(os.wait()[1])
    os.setsid()
(folder / f"{sys.argv[1]}.new").write_text(str(os.getpid()))
(folder / f"{sys.argv[1]}.new").rename(folder / f"{sys.argv[1]}.pid")
time.sleep(600)
"""
STARTS = re.compile(r"(OMP_\w+=\S+ )*\{params\.(base|python|command|grade):q\}")  # a program of the project


def shell_commands(folder: Path) -> dict[str, str]:
    """The shell command of every rule of the workflow, those of the studies included."""
    (project := folder / "project").mkdir()
    miniature.copy_sources(project)
    listing = "import json\nPath('rules.json').write_text(json.dumps({r.name: r.shellcmd for r in workflow.rules}))\n"
    with (project / "Snakefile").open("a") as file:
        file.write(listing)
    done = run_snakemake("--list-rules", cwd=project)
    assert done.returncode == 0, done.stderr
    return json.loads((project / "rules.json").read_text())


def start(folder: Path, commands: dict[str, str]) -> subprocess.Popen[bytes]:
    """Snakemake with a job for each command; a terminal that closes ends it, even where nohup started the tests."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    (folder / "program.py").write_text(PROGRAM)
    rules = [f"include: {str(ROOT / 'workflows' / 'job_lifetime.smk')!r}", f"rule all:\n    input: {[*commands]}"]
    rules += [f"rule {name}:\n    output: {name!r}\n    shell: {text!r}" for name, text in commands.items()]
    (folder / "Snakefile").write_text("\n".join(rules))
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", str(len(commands)), "--quiet", "all"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


def program(folder: Path, *arguments: str) -> str:
    return shlex.join([sys.executable, str(folder / "program.py"), *arguments])


def running(folder: Path, names: list[str]) -> list[psutil.Process]:
    """The jobs' programs, when all of them run."""
    files = [folder / f"{name}.pid" for name in names]
    wait_until(lambda: all(file.exists() for file in files))
    return [psutil.Process(int(file.read_text())) for file in files]


def test_when_snakemake_is_killed_the_jobs_of_all_rules_end(tmp_path: Path) -> None:
    commands = {}
    for name, text in shell_commands(tmp_path).items():
        if text is None:  # rules that only collect files
            continue
        filled = STARTS.sub(lambda _, name=name: program(tmp_path, name), text)  # type: ignore[misc]
        commands[name] = re.sub(r"(?<!\{)\{[a-z][^{}]*\}", "/dev/null", filled)
    programs = [name for name, text in commands.items() if "program.py" in text]
    assert set(commands) - set(programs) == {"help", "job_kinds"}, "they only print"
    assert len(programs) > 30 and {"grade_samples", "score_run", "report_page", "overlap", "problems"} < set(programs)
    snakemake = start(tmp_path, commands)
    jobs = running(tmp_path, programs)
    snakemake.send_signal(signal.SIGKILL)
    snakemake.wait()
    assert psutil.wait_procs(jobs, LIMIT)[1] == []
    assert all((tmp_path / f"{name}.asked").exists() for name in programs), "a trainer may save its work"


def kill_shell(snakemake: psutil.Process) -> None:
    next(process for process in snakemake.children(recursive=True) if process.name() == "bash").kill()


WAYS: dict[str, Callable[[psutil.Process], None]] = {
    "terminal closed": lambda snakemake: os.killpg(snakemake.pid, signal.SIGHUP),
    "shell killed": kill_shell,
    "first supervisor killed": lambda snakemake: snakemake.children()[0].kill(),
    "second supervisor killed": lambda snakemake: snakemake.children()[0].children()[0].kill(),
}


@pytest.mark.parametrize(
    ("way", "arguments"),
    [
        *((way, []) for way in WAYS), ("second supervisor killed", ["detached"]),
        *(pytest.param(way, ["detached"], marks=pytest.mark.long) for way in list(WAYS)[:-1]),
    ],
)  # fmt: skip
def test_a_job_ends_when_a_process_above_it_ends(tmp_path: Path, way: str, arguments: list[str]) -> None:
    snakemake = start(tmp_path, {"job": f"{program(tmp_path, 'job', *arguments)} 2>&1 | tee job.log"})
    jobs = running(tmp_path, ["job"])
    WAYS[way](psutil.Process(snakemake.pid))
    assert psutil.wait_procs(jobs, LIMIT)[1] == []
    assert snakemake.wait(LIMIT) != 0


@pytest.mark.long
def test_a_job_whose_snakemake_ended_before_it_began_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = subprocess.Popen(["true"])
    ended.wait()
    shell = ROOT / "system" / "job_shell" / "bash"
    environment = {**os.environ, "CROSSZERO_PYTHON": sys.executable, "CROSSZERO_WORKFLOW": str(ended.pid)}
    done = subprocess.run([shell, "-c", program(tmp_path, "job")], env=environment, timeout=LIMIT)
    assert done.returncode != 0


def test_output_and_status_of_a_job_are_its_own(tmp_path: Path) -> None:
    shell = ROOT / "system" / "job_shell" / "bash"
    environment = {**os.environ, "CROSSZERO_PYTHON": sys.executable, "CROSSZERO_WORKFLOW": str(os.getpid())}
    for code, status in (("exit 7", 7), ("kill -9 $$", 137), ("false | true; exit 0", 0)):
        done = subprocess.run([shell, "-c", f"echo out; echo err >&2; {code}"], env=environment, capture_output=True)
        assert (done.returncode, done.stdout, done.stderr) == (status, b"out\n", b"err\n")


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time; from system.subreaper import die_with_parent;"
        "c = subprocess.Popen(['sleep', '600'], preexec_fn=die_with_parent); print(c.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    assert psutil.wait_procs([child], LIMIT)[1] == []

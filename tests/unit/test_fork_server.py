"""The interpreter that forks: scripts, code and modules run in it as in any other, to the same exit status."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from contracts.run_file import ROOT
from envs import build
from system import fork_client, fork_server
from tests import needs
from tests.waiting import LIMIT, wait_until

pytestmark = [pytest.mark.slow, needs.linux]


PROGRAM = [sys.executable, "-m", "tests.unit.forking_program"]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    python = tmp_path_factory.mktemp("forking") / "python"
    process = subprocess.Popen([*PROGRAM, python, "wait"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def forked(job: subprocess.Popen[str]) -> str:
    assert job.stdout is not None
    return job.stdout.readline().strip()


def run(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT, check=False, **settings)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("python", ["forked", sys.executable])
def test_it_does_what_an_interpreter_does(python: str, forked: str, tmp_path: Path) -> None:
    program = forked if python == "forked" else python
    (tmp_path / "beside.py").write_text("WORD = 'beside'")
    (tmp_path / "script.py").write_text(
        "import multiprocessing, os, sys\n"
        "from beside import WORD\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    print(WORD, sys.argv[1:], os.environ['GIVEN'], os.getcwd(), sys.stdin.read())\n"
        "    print('to stderr', file=sys.stderr)\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(double, [1, 2]))\n"
        "    sys.exit(7)\n"
    )
    done = run(program, "-u", "script.py", "a", cwd=tmp_path, input="input", env={"GIVEN": "there", "PATH": "/bin"})
    assert done.stdout.splitlines() == [f"beside ['a'] there {tmp_path} input", "[2, 4]"]
    assert done.returncode == 7 and done.stderr == "to stderr\n"
    assert run(program, "-c", "import sys; print(sys.argv)", "b").stdout == "['-c', 'b']\n"
    assert run(program, "-m", "json.tool", "--compact", input='{"a" : 1}').stdout == '{"a":1}\n'
    assert run(program, "-c", "raise ValueError('no')").returncode == 1
    assert "ValueError: no" in run(program, "-c", "raise ValueError('no')").stderr
    assert run(program, "-c", "import os; os.kill(os.getpid(), 9)").returncode in (-9, 128 + 9)


def test_packages_are_there_before_it_starts(forked: str) -> None:
    assert run(forked, "-c", "import sys; print('wave' in sys.modules)").stdout == "True\n"


@needs.environments("trl")
def test_torch_computes_on_the_cores_that_the_job_may_use(tmp_path: Path) -> None:
    program = (
        "import os, subprocess\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from pathlib import Path\n"
        "from system import fork_server, forked_job\n"
        "forked_job.fork_processes(['torch'], {})\n"
        "python = str(fork_server.write_interpreter(Path('python').absolute()))\n"
        "subprocess.run([python, '-c', 'import torch; print(torch.get_num_threads())'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    python = build.folder("trl", "cpu") / "bin" / "python"
    ended = run(str(python), "-c", program, cwd=tmp_path, env=environment | {"PYTHONPATH": str(ROOT)})
    assert ended.stdout == "1\n", ended.stderr


def test_a_fork_ends_with_its_client(forked: str) -> None:
    command = [forked, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    client.kill()
    client.wait()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_signal_reaches_the_fork(forked: str) -> None:
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(5)); print('ready', flush=True); signal.pause()"
    client = subprocess.Popen([forked, "-c", code], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None and client.stdout.readline() == "ready\n"
    client.terminate()
    assert client.wait(LIMIT) == 5


def test_a_signal_before_the_fork_reaches_it(tmp_path: Path) -> None:
    """A fork may be at work before its client knows its process id."""
    first, other = socket.socketpair()
    sleeper = subprocess.Popen(["sleep", "600"])
    pid = os.fork()
    if pid == 0:
        try:
            fork_client.send_request(first, {}, [])
            (tmp_path / "asked").touch()
        finally:
            os._exit(0)
    fork_server.receive_request(other)
    os.kill(pid, signal.SIGTERM)
    other.sendall(sleeper.pid.to_bytes(8, "big"))
    assert sleeper.wait(LIMIT) == -signal.SIGTERM
    assert os.waitpid(pid, 0)[1] == 0 and (tmp_path / "asked").exists()


def below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_job_that_is_ended(tmp_path: Path, number: int) -> None:
    process = subprocess.Popen([*PROGRAM, tmp_path / "python", "wait"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    python = Path(process.stdout.readline().strip())
    other = subprocess.Popen([python, "-c", "import time; time.sleep(600)"])
    wait_until(lambda: len(below(process.pid)) == 7)  # two subreapers, server, program, its client, and two forks
    processes = below(process.pid)
    process.send_signal(number)
    process.wait()
    assert psutil.wait_procs(processes, LIMIT)[1] == []
    assert other.wait(LIMIT) != 0
    server = Path(shlex.split(python.read_text().splitlines()[1])[1])
    assert not server.parent.exists()


def test_its_exit_status_and_last_words_are_the_programs(tmp_path: Path) -> None:
    for word, status in (("a sentence", 1), ("0", 1)):
        done = run(*PROGRAM, tmp_path / "python", word, cwd=ROOT)
        assert done.returncode == status and done.stderr == f"{word}\n"

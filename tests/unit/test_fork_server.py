"""The interpreter that forks: scripts, code and modules run in it as in any other, to the same exit status."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from frameworks.verl.cpu import fork_server

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the CPU demo's Ray is on Linux")]


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    socket = tmp_path_factory.mktemp("forking") / "socket"
    server = subprocess.Popen([sys.executable, "-m", "frameworks.verl.cpu.fork_server", socket, "wave"], cwd=ROOT)
    deadline = time.monotonic() + 30
    while not socket.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield str(fork_server.script(socket))
    server.kill()
    server.wait()


def run(*words: str, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, **settings)  # type: ignore[call-overload, no-any-return]


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


def test_a_fork_ends_with_its_client(forked: str) -> None:
    words = [forked, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]
    client = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    client.kill()
    client.wait()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_signal_reaches_the_fork(forked: str) -> None:
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(5)); print('ready', flush=True); signal.pause()"
    client = subprocess.Popen([forked, "-c", code], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None and client.stdout.readline() == "ready\n"
    client.terminate()
    assert client.wait(30) == 5

"""An interpreter of an environment that starts in a tenth of a second: its packages are imported once for all tests.

As in a workflow, commands run as forks of a process that has imported the packages (system/fork_server.py).
Both processes of pytest use the same one; it ends with pytest. Where the import itself, or what is done before it, is
tested, and where the tree of processes counts, tests use the plain interpreter.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import psutil

from contracts.run_file import ROOT
from envs.build import python
from eval import vllm_settings
from frameworks import adapter, trainer_environment
from tests.made_once import CACHE
from tests.waiting import wait_until

SERVER = """
import sys
from system import fork_server
fork_server.preload(sys.argv[5:])
fork_server.serve({"words": ["-c", open(sys.argv[1]).read(), *sys.argv[2:5]], "folder": "."})
"""
# The program of the server's first fork, with which it ends.
UNTIL_PYTEST_ENDS = """
import pathlib, sys, time
import psutil
from system import fork_server
folder, pid, started = sys.argv[1:]
pathlib.Path(folder, "path.partial").write_text(str(fork_server._forks))
pathlib.Path(folder, "path.partial").rename(pathlib.Path(folder, "path"))
while psutil.pid_exists(int(pid)) and str(psutil.Process(int(pid)).create_time()) == started:
    time.sleep(0.5)
"""


@cache
def warm_python(environment: str) -> Path:
    """The executable; it takes an interpreter's arguments."""
    if environment == "eval":
        modules, settings = (*vllm_settings.PRELOADED, "lm_eval.evaluator"), vllm_settings.environment("cpu")
    else:
        framework = adapter.load(environment)
        modules = tuple(framework.preloaded)
        settings = {**trainer_environment.ONE_CPU, **framework.preload_environment}
    pytest_process = psutil.Process(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid())
    folder = CACHE / f"warm-{environment}-{pytest_process.pid}-{int(pytest_process.create_time())}"
    folder.mkdir(parents=True, exist_ok=True)
    for earlier in CACHE.glob("warm-*-*-*"):
        if not psutil.pid_exists(int(earlier.name.split("-")[2])):
            shutil.rmtree(earlier, ignore_errors=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "path").exists():
            (folder / "until_pytest_ends.py").write_text(UNTIL_PYTEST_ENDS)
            arguments = [folder / "until_pytest_ends.py", folder, pytest_process.pid, pytest_process.create_time()]
            with (folder / "log").open("w") as log:
                server = subprocess.Popen(
                    [python(environment), "-c", SERVER, *map(str, arguments), *modules],
                    cwd=ROOT, env={**os.environ, "HF_HUB_OFFLINE": "1", **settings, "PYTHONPATH": str(ROOT)},
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
            wait_until(lambda: (folder / "path").exists() or server.poll() is not None)
            assert server.poll() is None, (folder / "log").read_text()
    return Path((folder / "path").read_text())

"""Ray starts although one of its own processes takes longer than Ray allows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from envs.build import python
from frameworks import loopback, ray_patience
from tests import needs
from tests.waiting import WORKFLOW_LIMIT

pytestmark = [pytest.mark.contract, pytest.mark.slow, pytest.mark.long]
# The raylet waits for its agents. Of these the first one does nothing until its raylet has ended.
STARTUP = """
import os, sys, time
from frameworks import loopback, ray_patience
loopback.keep_to_loopback()
ray_patience.install()
if any(word.endswith("dashboard/agent.py") for word in sys.orig_argv):
    try:
        os.close(os.open(os.environ["FIRST_AGENT"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    else:
        raylet = os.getppid()
        while os.getppid() == raylet:
            time.sleep(0.1)
        os._exit(1)
"""
USES_RAY = """
import ray
ray.init(num_cpus=1, log_to_driver=False)
print("ALIVE", [node["Alive"] for node in ray.nodes()], "SUM", ray.get(ray.remote(lambda: 1 + 2).remote()))
"""


@pytest.mark.parametrize("framework", ["verl", "openrlhf"])
def test_a_raylet_that_waited_in_vain_is_started_again(short: Path, framework: str) -> None:
    needs.skip_without(framework)
    (short / "sitecustomize.py").write_text(STARTUP)
    settings = loopback.environment(short) | ray_patience.VARIABLES | {"FIRST_AGENT": str(short / "first")}
    settings["PYTHONPATH"] = loopback.python_path(short, ROOT)
    command = [str(python(framework)), "-c", USES_RAY]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=WORKFLOW_LIMIT,
        check=False,
    )
    assert done.stdout.strip() == "ALIVE [True] SUM 3", done.stderr
    assert done.stderr.count("ended and is started again") == 1 and (short / "first").exists()

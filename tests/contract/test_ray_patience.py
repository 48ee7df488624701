"""Ray starts although its own processes take longer than Ray allows, or end."""

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
# Ray's agents, each first process of which does something else; its file says that it was the first.
STARTUP = """
import os, sys, time
from frameworks import loopback, ray_patience
loopback.keep_to_loopback()
ray_patience.install()
for agent in ("dashboard/agent.py", "agent/main.py"):
    if any(word.endswith(agent) for word in sys.orig_argv):
        try:
            os.close(os.open(os.path.join(os.environ["FIRST"], agent.replace("/", "-")), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            exec(os.environ["FIRST_DOES"])
"""
USES_RAY = """
import ray
ray.init(num_cpus=1, log_to_driver=False)
print("ALIVE", [node["Alive"] for node in ray.nodes()].count(True), "SUM", ray.get(ray.remote(lambda: 1 + 2).remote()))
"""


@pytest.mark.parametrize("framework", ["verl", "openrlhf"])
@pytest.mark.parametrize(("first_does", "started_again"), [("time.sleep(40)", False), ("os._exit(1)", True)])
def test_agents_that_are_slow_or_end(short: Path, framework: str, first_does: str, started_again: bool) -> None:
    needs.skip_without(framework)
    (short / "sitecustomize.py").write_text(STARTUP)
    (firsts := short / "firsts").mkdir()
    settings = loopback.environment(short) | ray_patience.VARIABLES | {"FIRST": str(firsts), "FIRST_DOES": first_does}
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
    assert done.stdout.strip() == "ALIVE 1 SUM 3", done.stderr
    assert ("ended and is started again" in done.stderr) == started_again
    assert sorted(path.name for path in firsts.iterdir()) == ["agent-main.py", "dashboard-agent.py"]

"""What torch listens on in a training of several processes on one node, started as TRL's adapter starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from envs.build import python
from frameworks import loopback
from tests import needs
from tests.waiting import WORKFLOW_LIMIT

pytestmark = [pytest.mark.contract, pytest.mark.slow]
# Each of two processes joins the group, as accelerate does; the first lists what both and their launcher listen on.
TRAINS = """
import os, psutil, torch
torch.distributed.init_process_group("gloo")
torch.distributed.new_group([0, 1])
torch.distributed.all_reduce(torch.ones(1))
if os.environ["RANK"] == "0":
    launcher = psutil.Process(os.getppid())
    for process in (launcher, *launcher.children(recursive=True)):
        for found in process.net_connections("inet"):
            if found.status == "LISTEN":
                print("LISTENS", found.laddr.ip, flush=True)
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="gloo's interface has another name")
@pytest.mark.parametrize("guarded", [True, pytest.param(False, marks=pytest.mark.long)])
def test_torch_listens_on_loopback_only(tmp_path: Path, guarded: bool) -> None:
    needs.skip_without("trl")
    (tmp_path / "trains.py").write_text(TRAINS)
    command = [python("trl"), "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", tmp_path / "trains.py"]
    settings = os.environ | {"OMP_NUM_THREADS": "1"} | (loopback.environment(tmp_path) if guarded else {})
    done = subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False, timeout=WORKFLOW_LIMIT
    )
    assert done.returncode == 0, done.stderr
    places = [line.split()[1] for line in done.stdout.split("\n") if line.startswith("LISTENS")]
    assert len(places) >= 3
    assert ({*places} <= {"127.0.0.1", "::ffff:127.0.0.1"}) == guarded, places  # as released, the store is on all

"""Memory on fake tensors, of a small model."""

from __future__ import annotations

import json
import subprocess

import pytest

from cluster import memory
from contracts.run_file import ROOT
from envs.build import python

pytestmark = [pytest.mark.contract, pytest.mark.slow]
SCRIPT = """
import json
from cluster import memory
from cluster.fake_memory import Pass, measure
shape = memory.shape("gpu-smoke")
cases = [Pass(2, 4, 256, 256), Pass(4, 4, 256, 256), Pass(2, 4, 256, 16), Pass(2, 4, 256, 256, checkpointing=False)]
print(json.dumps([measure(shape, one) for one in cases]))
"""


def test_what_each_rank_holds() -> None:
    if not (python("trl").parent.parent / ".stamp").is_file():
        pytest.skip("environment trl is not built; make test builds it")
    done = subprocess.run([python("trl"), "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True)
    two, four, few, all_kept = json.loads(done.stdout.strip().split("\n")[-1])
    shape = memory.shape("gpu-smoke")
    assert shape is not None
    for found, gpus in ((two, 2), (four, 4)):
        # float32: weights, and Adam's two moments
        assert found["sharded_param"] == pytest.approx(4 * shape["parameters"] / gpus, rel=0.05)
        assert found["opt"] == pytest.approx(8 * shape["parameters"] / gpus, rel=0.05)
    assert four["total"] < two["total"] and few["total"] < two["total"] < all_kept["total"]

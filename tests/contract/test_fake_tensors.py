"""Memory on fake tensors, of a small model."""

from __future__ import annotations

import json
import subprocess

import pytest

from cluster import gpu_memory
from contracts.run_file import ROOT
from tests import needs
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow, pytest.mark.long]
SCRIPT = """
import json
from cluster import gpu_memory
from studies.gpu_memory.study import Pass, peak_bytes, working_bytes
shape = gpu_memory.model_shape("gpu-smoke")
cases = [Pass(2, 4, 256, 256), Pass(4, 4, 256, 256), Pass(2, 4, 256, 16), Pass(2, 4, 256, 256, checkpointing=False)]
wide = {**shape, "vocabulary": 60_000, "layers": 2}
few, many = (working_bytes(peak_bytes(wide, Pass(8, 2, 512, scored))) for scored in (256, 512))
print(json.dumps([peak_bytes(shape, one) for one in cases]))
print(json.dumps([few, many, *(gpu_memory.working_bytes(wide, 1024, scored, True) for scored in (512, 1024))]))
"""


def test_what_each_rank_holds() -> None:
    needs.skip_without("trl")
    done = subprocess.run([warm_python("trl"), "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True)
    *_, first, second = done.stdout.strip().split("\n")
    two, four, few, all_kept = json.loads(first)
    shape = gpu_memory.model_shape("gpu-smoke")
    assert shape is not None
    for bytes_by_kind, gpus in ((two, 2), (four, 4)):
        # float32: weights, and Adam's two moments
        assert bytes_by_kind["sharded_param"] == pytest.approx(4 * shape["parameters"] / gpus, rel=0.05)
        assert bytes_by_kind["opt"] == pytest.approx(8 * shape["parameters"] / gpus, rel=0.05)
    measured_few, measured_many, few_by_formula, many_by_formula = json.loads(second)
    assert many_by_formula == pytest.approx(measured_many, rel=0.05)
    assert few_by_formula == pytest.approx(measured_few, rel=0.05)
    assert many_by_formula - few_by_formula == pytest.approx(measured_many - measured_few, rel=0.02)  # logits alone
    assert four["total"] < two["total"] and few["total"] < two["total"] < all_kept["total"]

"""What the rehearsal asks installed packages, asked of those of the CPU."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from contracts.run_file import ROOT
from tests import needs
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]


def ask(environment: str, expression: str) -> list[Any]:
    """Lines of the rehearsal, in an environment's own Python."""
    needs.skip_without(environment)
    script = f"import json; from cluster.rehearsal import *; print(json.dumps(list({expression})))"
    done = subprocess.run(
        [warm_python(environment), "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines: list[Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return lines


def test_vllm_knows_every_argument_of_the_evaluation_s_engine() -> None:
    planted = "'no_such_thing': 1, 'dtype': 'bfloat17', 'max_model_len': 64"
    lines = ask("eval", "check_engine_arguments({**vllm_settings.engine('cuda'), **EVALUATION_OPTIONS})")
    assert len(lines) > 4 and all(well for well, *_ in lines), lines
    # vLLM for CUDA without a GPU knows no device
    unknown = "setattr(importlib.import_module('vllm.platforms').current_platform, 'device_type', '')"
    lines = ask("eval", f"[{unknown}] and check_engine_arguments({{{planted}}})")
    assert [well for well, *_ in lines] == [False, False, True]


def test_attention_resolves_where_its_package_is_here() -> None:
    lines = ask("trl", "map(check_attention, ('sdpa', 'eager', 'flash_attention_2', 'of_my_own'))")
    assert [well for well, *_ in lines] == [True, True, False, False]

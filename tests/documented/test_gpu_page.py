"""frameworks/gpu_differences.yaml names what differs between the scales: replaced code and settings."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from contracts.run_file import ROOT, Run
from frameworks.adapter import Paths
from frameworks.openrlhf import command as openrlhf
from frameworks.openrlhf.cpu import rewrites
from frameworks.trl import command as trl
from frameworks.verl import command as verl
from system.yaml_files import read_yaml
from tests import loaded_runs

ENTRIES = read_yaml(ROOT / "frameworks" / "gpu_differences.yaml")["differences"]
TABLE = "\n".join(" ".join(entry.values()) for entry in ENTRIES)
NAMED = re.findall(r"`([^`]+)`", TABLE)
HERE = Path("here")


def names_of(run: Run) -> list[str]:
    """Settings that a demo run has because it has no GPU."""
    stage = run.stages[0]
    if run.framework == "trl":
        options = trl.trainer_flags(run, stage, 0, HERE, HERE, HERE)
    elif run.framework == "verl":
        options = verl.trainer_overrides(run, stage, 0, Paths(HERE, HERE, HERE), HERE)
    else:
        options = openrlhf.trainer_flags(run, stage, 0, HERE, HERE, HERE)
    return [key.lstrip("+") for key, (_, source) in options.items() if source == "demo.hardware.gpus"]


@pytest.mark.parametrize("run", loaded_runs.runs("demo"), ids=lambda run: str(run.name))
def test_every_setting_of_the_demo_alone_has_a_row(run: Run) -> None:
    settings = names_of(run)
    assert settings
    assert not [name for name in settings if not any(fnmatch(name, pattern) for pattern in NAMED)]


def test_every_shim_has_a_row() -> None:
    source = (ROOT / "frameworks" / "verl" / "cpu" / "cpu_platform.py").read_text(encoding="utf-8")
    assigned = [node for node in ast.parse(source).body if isinstance(node, ast.AnnAssign)]
    (replaced,) = [node.value for node in assigned if ast.unparse(node.target) == "REPLACEMENTS"]
    assert isinstance(replaced, ast.Dict) and replaced.values
    assert {ast.unparse(value) for value in replaced.values} <= set(NAMED)
    rules = {rule.name for rule in rewrites.RULES} | {name for name, _, _ in rewrites.FLOAT32_RULES}
    assert rules <= set(re.findall(r'"([^"]+)"', TABLE))

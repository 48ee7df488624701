"""`str.splitlines` also splits at U+0085, U+2028 and others, which model text and data sets hold: never use it there.

Text that our own tools or commands wrote may be split so; it is listed here.
"""

import ast
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from tests.source_folders import FOLDERS

ALLOWED = {
    "analysis/compare_checkpoints/published_baselines.py": "results/reference/baselines.yaml",
    "analysis/statistics/published_tables.py": "a YAML file of the project",
    "cluster": "what Slurm's commands print",
    "system/gpu_locks.py": "what nvidia-smi prints",
    "contracts/provenance.py": "what nvidia-smi prints",
    "envs": "what pip prints, and lock files",
    "frameworks/verl/parser_check.py": "a message of Hydra's",
}


def on_docstring(call: ast.Call) -> bool:
    return "__doc__" in ast.unparse(call.func)


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_the_output_of_tools_is_split_by_splitlines(folder: str) -> None:
    uses = []
    for file in sorted((ROOT / folder).rglob("*.py")):
        name = str(file.relative_to(ROOT))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if called and node.func.attr == "splitlines" and not on_docstring(node):
                uses += [] if any(Path(name).is_relative_to(allowed) for allowed in ALLOWED) else [name]
    assert not uses

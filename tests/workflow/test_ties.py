"""Ties of maj@k are broken as the configuration says, in `check` and in `compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import tables
from tests.workflow import miniature

pytestmark = pytest.mark.slow
ANSWERS = ("5", "7")  # one vote each: right at first, wrong then
ROW = dict.fromkeys(tables.GRADED.names) | {
    "run": "r", "step": 0, "benchmark": "gsm8k", "prompt": "How many?", "finish_reason": "stop", "gold": "5",
    "completion_tokens": 9, "protocol": "greedy-boxed", "grader": "math-verify 1",
}  # fmt: skip


def graded(folder: Path) -> Path:
    rows = [
        ROW | {"problem_id": f"p{problem}", "repeat": repeat, "answer": answer, "completion": f"\\boxed{{{answer}}}"}
        | {"verdict": "correct" if answer == "5" else "wrong"}
        for problem in range(3) for repeat, answer in enumerate(ANSWERS)
    ]  # fmt: skip
    tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, folder / "gsm8k.parquet")
    return folder


def test_a_check_breaks_ties_as_it_is_told(tmp_path: Path) -> None:
    project = miniature.copy_sources(tmp_path)
    (project / ".envs").symlink_to(miniature.ROOT / ".envs")
    sides = [graded(project / name) for name in ("one", "two")]
    settings = [f"checkpoint={sides[0].name}", f"baseline={sides[1].name}", "accept=[subset]", "ties=first"]
    status, output = miniature.snakemake(project, "compare_checkpoints", "--config", *settings)
    assert status == 0, output
    (stored,) = (project / "results").rglob("comparison.json")
    (line,) = json.loads(stored.read_text())["lines"]
    values = {one["measure"]: one["checkpoint"]["value"] for one in line["passes"]}
    assert values["maj@2 (ties: first)"] == 1.0  # by chance it would be a half


def test_recipes_are_compared_with_the_configured_ties(tmp_path: Path) -> None:
    project = miniature.copy(tmp_path)
    settings = [f"recipe_{side}=[{miniature.RUN}]" for side in "ab"]
    status, output = miniature.snakemake(
        project, "-n", "-p", "compare_recipes", "--config", *settings, "seeds=[0,1]", "ties=first"
    )
    assert status == 0, output
    assert "--ties first" in next(line for line in output.splitlines() if "analysis.compare_recipes" in line)
    status, output = miniature.snakemake(project, "-n", "compare_recipes", "--config", *settings, "ties=second")
    assert status != 0 and "ties" in output and "Traceback" not in output

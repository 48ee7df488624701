"""Sampling in rounds with the real vLLM: rounds add completions, and nothing is sampled twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts import tables
from tests import needs
from tests.contract.test_generate import environment, problem
from tests.contract.tiny_model import copy_model
from tests.warm_python import warm_python

PROBLEMS = 12
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    pytest.mark.long,  # what a round asks for is tested in tests/unit/test_sequential.py
    needs.environments("eval"),
]


def check(folder: Path) -> tuple[str, str]:
    command = [
        sys.executable, "-m", "analysis.compare_checkpoints", "sequential", "--python", warm_python("eval"),
        "--checkpoint", folder / "model", "--baseline", folder / "model", "--benchmark", "arithmetic_words",
        "--most", "2", "--data", folder / "data", "--work", folder / "work", "--output", folder / "comparison",
        "--", "--protocol", "demo", "--set", "max_tokens=16", "--seed", "0", "--device", "cpu",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_a_model_against_itself_is_sampled_to_the_end_and_each_round_adds_to_the_last(
    tmp_path: Path,
) -> None:
    copy_model(tmp_path / "model")
    rows = [problem(n, f"What is {n}+{n}?") for n in range(PROBLEMS)]
    path = tmp_path / "data" / "arithmetic_words.parquet"
    tables.write(pa.Table.from_pylist(rows, tables.PROBLEM), tables.PROBLEM, path)

    output, progress = check(tmp_path)
    assert "1 per problem: cannot tell; open: arithmetic_words" in output  # equal models, whatever they wrote
    assert progress.count(f"{PROBLEMS}/{PROBLEMS} samples") >= 4 and f"/{2 * PROBLEMS} samples" not in progress
    samples = pq.read_table(tmp_path / "work/checkpoint/samples/step-0/arithmetic_words.parquet").to_pylist()
    assert Counter((row["problem_id"], row["repeat"]) for row in samples) == Counter(
        (f"p{n}", repeat) for n in range(PROBLEMS) for repeat in range(2)
    )
    result = json.loads((tmp_path / "comparison" / "comparison.json").read_text())
    (line,) = result["lines"]
    assert (result["verdict"], result["exit_status"], line["repeats"]) == ("cannot tell", 0, [2, 2])
    assert (tmp_path / "comparison" / "index.html").is_file()

    _, progress = check(tmp_path)  # as after an interruption
    again = pq.read_table(tmp_path / "work/checkpoint/samples/step-0/arithmetic_words.parquet").to_pylist()
    assert "samples/s" not in progress and again == samples

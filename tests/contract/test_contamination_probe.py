"""The contamination probe with the real vLLM tells a model that learned half of a benchmark from one that did not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from contracts import tables
from eval import contamination, statistics
from eval.statistics import Estimate
from tasks import registry
from tasks.problems import Problem, to_table
from tests import needs
from tests.contract.test_generate import ROOT, environment
from tests.contract.tiny_model import copy_reader
from tests.warm_python import warm_python

NAME, PROBLEMS = "arithmetic_words", 20
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    pytest.mark.long,
    needs.environments("eval"),
]


def run(*command: str | Path) -> str:
    done = subprocess.run([*command], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def texts(problems: Sequence[Problem]) -> list[str]:
    return [rf"{problem.question} \boxed{{{problem.answer}}}" for problem in problems]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark, and two models: step 0 learned half of it by heart, step 1 other texts of the same kind."""
    folder, task = tmp_path_factory.mktemp("contamination"), registry.get("arithmetic")
    generated = task.generate(rows=PROBLEMS, split="test", seed=1, kinds=["words"])
    other = task.generate(rows=PROBLEMS // 2, split="train", seed=2, kinds=["words"])
    tables.write(to_table(generated), tables.PROBLEM, folder / "data" / f"{NAME}.parquet")
    for step, learned in ((0, generated[: PROBLEMS // 2]), (1, other)):
        copy_reader(folder / f"model-{step}", texts(learned), seed=step)
    return folder


def test_a_model_that_learned_half_of_a_benchmark_is_told_from_one_that_did_not(project: Path) -> None:
    beginnings = project / "contamination" / f"{NAME}.parquet"
    run(
        sys.executable, "-m", "eval.contamination", "problems", NAME, "--data", project / "data", "--output", beginnings
    )  # fmt: skip
    models = [word for step in (0, 1) for word in ("--checkpoint", f"{step}={project / f'model-{step}'}")]
    data, python = ["--data", project / "contamination"], warm_python("eval")
    run(
        python, "-m", "eval.generate", "--run", "test/reader/seed-0", *models, "--benchmark", NAME, "--protocol",
        "partial-question", "--set", "max_tokens=160", "--set", "repeats=2", *data, "--work", project / "work",
        "--output", project / "samples", "--device", "cpu",
    )  # fmt: skip
    run(
        warm_python("eval"), "-m", "eval.grade", "--samples", project / "samples", *data, "--output", project / "graded"
    )
    run(
        python, "-m", "eval.contamination", "measure", "--graded", project / "graded", *data,
        "--output", project / "contamination.csv",
    )  # fmt: skip
    measured = pd.read_csv(project / "contamination.csv")
    assert len(measured) == 2 * len(contamination.KINDS) * len(contamination.SHARES) and set(measured["problems"]) == {
        PROBLEMS
    }
    rows = {(row["step"], row["kind"]): row for row in measured[measured["share"] == 60].to_dict("records")}
    changes = []
    for step in (0, 1):
        own, twin = (
            Estimate(*(rows[step, kind][name] for name in ("exact", "exact_low", "exact_high")))
            for kind in contamination.KINDS
        )
        changes.append(statistics.independent_difference(twin, own).change)
    assert changes[0] == "rose" and changes[1] != "rose"
    read = rows[0, "benchmark"]
    assert 0.4 <= read["exact"] <= 0.6 and read["rouge_l"] > rows[0, "twin"]["rouge_l"]
    assert read["right"] >= 0.4  # the answers that it learned follow, although the questions were not asked to the end

    graded = pq.read_table(project / f"graded/step-0/{NAME}.parquet").to_pandas()
    assert not graded["prompt"].str.contains("<|im_start|>", regex=False).any(), "without the chat template"
    assert (graded.groupby("problem_id")["completion"].agg(["size", "nunique"]) == [2, 1]).all().all(), "greedy"
    learned = set(pq.read_table(project / "data" / f"{NAME}.parquet")["problem_id"].to_pylist()[: PROBLEMS // 2])
    at_60 = graded[graded["problem_id"].str.endswith("@benchmark-60")]
    right = at_60[at_60["verdict"] == "correct"]["problem_id"].str.partition("@")[0]
    assert len(set(right) & learned) >= 8

"""Sampling in rounds: what is still open, what is compared, and which sides can be sampled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.compare_checkpoints import comparison_request, sequential
from analysis.compare_checkpoints.comparison import Comparison
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from analysis.compare_checkpoints.sequential import Rules
from contracts.paths import ResultsFolder
from recipes.runs import load_run
from tests.user_errors import refused

RUN = load_run("openr1/qwen2.5-math-7b", "demo")


def side(name: str, **accuracy: tuple[float, int]) -> GradedCheckpoint:
    """Graded samples of 200 problems per benchmark, from accuracies and repeats."""
    random, tables_by_benchmark = np.random.default_rng(len(name)), {}
    for benchmark, (chance, repeats) in accuracy.items():
        rows = [(f"p{i}", r) for i in range(200) for r in range(repeats)]
        right = random.random(len(rows)) < chance
        frame = pd.DataFrame(rows, columns=["problem_id", "repeat"])
        tables_by_benchmark[benchmark] = frame.assign(
            run=name, step=0, gold="4", prompt="?", completion=[f"{name} {i}" for i in range(len(rows))],
            protocol="demo", grader="g", verdict=np.where(right, "correct", "wrong"), benchmark=benchmark,
        )  # fmt: skip
    return GradedCheckpoint(name, tables_by_benchmark, {benchmark: {} for benchmark in tables_by_benchmark}, {})


def compared(new: GradedCheckpoint, old: GradedCheckpoint) -> Comparison:
    return sequential.compare(new, old, list(new.tables), Rules(8))


def test_a_benchmark_with_a_clear_verdict_is_sampled_no_more() -> None:
    result = compared(side("new", words=(0.8, 1), sums=(0.5, 1)), side("old", words=(0.3, 1), sums=(0.5, 1)))
    assert result.verdict == "better" and sequential.undecided_benchmarks(result) == ["sums"]
    later = compared(side("new", words=(0.8, 1), sums=(0.5, 8)), side("old", words=(0.3, 1), sums=(0.5, 8)))
    assert {line.benchmark: line.repeats for line in later.lines} == {"words": (1, 1), "sums": (8, 8)}
    assert "1,800 completions a side, of 3,200 with 8 per problem (44 % saved)" in " ".join(later.notes)


def test_one_that_is_worse_ends_the_check() -> None:
    result = compared(side("new", words=(0.2, 1), sums=(0.5, 1)), side("old", words=(0.8, 1), sums=(0.5, 1)))
    assert (result.verdict, result.exit_status, sequential.undecided_benchmarks(result)) == ("worse", 1, [])


def request(**config: str) -> comparison_request.ComparisonRequest:
    return comparison_request.ComparisonRequest(config, {RUN.name: RUN}, ResultsFolder(Path("results/demo")))


def test_sides_are_models_or_stored_checkpoints(tmp_path: Path) -> None:
    check = request(checkpoint="acme/model-7b", baseline=f"{RUN.name}/seed-1/step-0")
    assert check.model_to_sample("baseline") == f"results/demo/runs/{RUN.name}/seed-1/checkpoints/step-0"
    assert check.model_to_sample("checkpoint").startswith("results/demo/compare/models/")
    assert check.most_repeats(8) == 8
    for baseline in (str(tmp_path), "sober/Qwen2.5-Math-7B"):
        with refused("not-a-model", key="baseline"):
            request(checkpoint=f"{RUN.name}/seed-1/step-0", baseline=baseline).model_to_sample("baseline")


def test_a_greedy_protocol_is_refused() -> None:
    check = request(checkpoint="acme/model-7b", baseline=f"{RUN.name}/seed-1/step-0", protocol="greedy-boxed")
    with refused("greedy-protocol"):
        check.most_repeats(8)


def test_rounds_end_with_the_last_that_both_sides_have_whole() -> None:
    new, old = side("new", sums=(0.5, 10)), side("old", sums=(0.4, 12))
    (line,) = sequential.compare(new, old, ["sums"], Rules(64, stored=True), ["grader"]).lines
    assert line.repeats == (8, 8) and line.difference is not None
    first = [
        table[table["repeat"] < 8]["verdict"].eq("correct").mean() for table in (old.tables["sums"], new.tables["sums"])
    ]
    assert line.difference.value == pytest.approx(first[1] - first[0])
    assert (line.baseline.value, line.checkpoint.value) == pytest.approx(tuple(first))  # type: ignore[union-attr]


def test_rounds_say_what_was_accepted() -> None:
    new, old = side("new", sums=(0.5, 2)), side("old", sums=(0.4, 2))
    accepted = [
        note
        for table in (old.tables["sums"], old.tables["sums"].assign(grader="h"))
        for note in sequential.compare(
            new, replace(old, tables={"sums": table}), ["sums"], Rules(2, stored=True), ["grader"]
        ).notes
        if "accepted" in note
    ]
    assert len(accepted) == 1 and accepted[0].startswith("sums: different grader: ")

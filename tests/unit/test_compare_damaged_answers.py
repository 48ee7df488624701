"""The gate on real generations against copies of which a share of the answers is broken, graded for real."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.compare_checkpoints import paired_comparison
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from eval.importers.import_samples import import_samples
from eval.statistics import significance
from grading import Item, grade
from tests.stand_ins import qwen_generations

pytestmark = pytest.mark.slow


def judged(samples):
    grades = grade([Item("math", row.gold, row.completion) for row in samples.itertuples()])
    return samples.assign(**{name: [getattr(g, name) for g in grades] for name in ("answer", "verdict", "grader")})


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    files = sorted(qwen_generations(tmp_path_factory.mktemp("mirror")).glob("*.jsonl"))
    frames = [import_samples("qwen-math", [path], path.stem, "qwen")[0].to_pandas() for path in files]
    return {
        frame["benchmark"].iloc[0]: judged(frame).sort_values(["problem_id", "repeat"], ignore_index=True)
        for frame in frames
    }


def side(name, frames):
    return GradedCheckpoint(name, frames, {key: {} for key in frames}, {})


@pytest.mark.parametrize("share", [0.01, pytest.param(0.03, marks=pytest.mark.long), 0.1])
def test_verdicts_on_a_damaged_copy_are_those_of_its_lost_problems(original, share):
    random, damaged = np.random.default_rng(int(1000 * share)), {}
    for name, frame in original.items():
        broken = random.random(len(frame)) < share
        again = judged(frame.assign(completion=frame["completion"] + "\n\\boxed{-987654321}")[broken])
        damaged[name] = pd.concat([frame[~broken], again]).sort_index()
    result = paired_comparison.compare(side("damaged", damaged), side("original", original))
    assert result.verdict == "worse" and result.exit_status == 1  # GSM8K alone shows 1 %
    for line in result.lines[:-1]:
        assert line.gained == 0
        unknown = max(line.ungradable)  # each counts as gained where that makes the verdict weaker
        expected = stats.binomtest(unknown, unknown + line.lost).pvalue if unknown + line.lost else 1.0
        assert line.p_value == pytest.approx(expected)
        if abs(line.difference.value) > 1.5 * line.detectable:
            assert line.verdict == "worse"
    if share == 0.01:
        assert {line.benchmark for line in result.lines if line.verdict == "cannot tell"} >= {"aime24", "amc23"}


@pytest.mark.parametrize("share", [0.01, pytest.param(0.03, marks=pytest.mark.long), 0.1])
def test_damage_is_found_as_often_as_the_power_calculation_says(original, share):
    random, level = np.random.default_rng(7), 0.05 / 7
    for frame in original.values():
        right = frame["verdict"].eq("correct").to_numpy()
        lost = random.binomial(right.sum(), share, 2000)
        hits = np.mean([significance.permutation(np.full(m, -1)) <= level for m in lost])
        # Which problems are right is given here, and random in the formula: a binomial of the same mean
        difference = share * right.mean()
        assert significance.mcnemar_power(len(right), difference, difference, level) == pytest.approx(hits, abs=0.06)


def test_the_original_against_itself_differs_by_exactly_nothing(original):
    result = paired_comparison.compare(side("again", original), side("original", original))
    assert result.verdict == "cannot tell"
    assert all(line.difference.value == 0.0 for line in result.lines)
    json.dumps(result.to_json())

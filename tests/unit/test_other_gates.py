"""The simulated checkpoints on which this gate and others are compared."""

import sys
from pathlib import Path

import numpy as np
import pytest

from analysis.compare_checkpoints import graded_checkpoint
from studies.other_gates import study
from tests.user_errors import refused


def test_ungradable_answers_are_known_as_such_and_only_on_the_checkpoint():
    case = next(case for case in study.CASES if case.ungradable)
    for baseline, checkpoint in study.draw(case, np.random.default_rng(0))[2:]:
        assert not graded_checkpoint.ungradable(baseline[0]).any()
        assert 0 < graded_checkpoint.ungradable(checkpoint[0]).mean() < 0.1


@pytest.mark.parametrize("gain", [-0.3, 0.0, 0.3])
def test_a_seed_changes_the_accuracy_by_its_gain(gain):
    chances = np.random.default_rng(0).beta(0.5, 0.5, 200_000)
    shifted = study._shifted(chances, gain, 0.5)
    assert shifted.min() >= 0 and shifted.max() <= 1
    assert shifted.mean() - chances.mean() == pytest.approx(gain, abs=0.01)


def test_a_python_without_the_other_tools_is_an_error_that_names_it():
    with refused("missing-package"):
        study.ask(Path(sys.executable), [])

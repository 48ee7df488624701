"""Killed at a random moment, in any stage: the same command again ends as if nothing had happened."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults import bed
from tests.faults.book import Book

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
TRIALS = int(os.environ.get("FAULT_TRIALS", "60"))  # of a night's run
EACH = -(-TRIALS // len(bed.STAGES))  # of a stage


QUICKEST = {"grade", "import"}


def marks(stage: str, trial: int) -> Sequence[pytest.MarkDecorator]:
    """The first trial of the quickest stages is part of make test, of quick ones of make test-all."""
    if trial or stage not in bed.LIGHT:
        return [pytest.mark.faults_long]
    return [] if stage in QUICKEST else [pytest.mark.long]


def params() -> list[object]:
    """The trials of each stage."""
    return [
        pytest.param(stage, trial, id=f"{stage}-{trial}", marks=marks(stage, trial))
        for stage in bed.STAGES
        for trial in range(EACH)
    ]


@pytest.mark.parametrize(("stage", "trial"), params())
def test_killed_at_a_random_moment(bed_of: bed.Bed, book: Book, tmp_path: Path, stage: str, trial: int) -> None:
    draw = bed.rng("kill", stage, trial)
    way = list(bed.WAYS)[draw.randrange(len(bed.WAYS))]
    with book.trial(f"killed by {way}", stage, trial) as outcome:
        project = bed_of.without(stage, tmp_path)
        with bed.cleared(project):
            command = bed.Command(project, stage)
            if draw.random() < 0.8:  # else while Snakemake starts
                command.wait_for(lambda: not command.stage.rule or command.times_run())
            time.sleep(draw.random() * bed_of.seconds[stage])
            if command.process.is_alive():
                bed.WAYS[way](command)
            command.wait()
            outcome.append(bed_of.same_command_again(project, stage))

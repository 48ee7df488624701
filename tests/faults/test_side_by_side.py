"""Two Snakemakes at once, a worker that is killed, and a clock that was set back."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import psutil
import pytest

from tests.faults import bed
from tests.faults.book import Book

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
WITH_RULE = [name for name, stage in bed.STAGES.items() if stage.rule]
WORKERS = {"grade": "grading.sandboxed_worker", "generate": "eval.vllm_worker"}


def params(stages: list[str], trials: int, quick: str) -> list[object]:
    return [
        pytest.param(stage, n, id=f"{stage}-{n}", marks=() if (stage, n) == (quick, 0) else pytest.mark.faults_long)
        for stage in stages
        for n in range(trials)
    ]


@pytest.mark.parametrize(("stage", "trial"), params(WITH_RULE, 2, "grade"))
def test_two_snakemakes_at_once_do_each_job_once(
    bed_of: bed.Bed, book: Book, tmp_path: Path, stage: str, trial: int
) -> None:
    draw = bed.rng("two", stage, trial)
    with book.trial("two Snakemakes at once", stage, trial) as outcome:
        project = bed_of.without(stage, tmp_path)
        with bed.cleared(project):
            first = bed.Command(project, stage, 1)
            if trial:  # else both start at the same moment
                first.wait_for(first.times_run)
                time.sleep(draw.random() * bed_of.seconds[stage])
            second = bed.Command(project, stage, 2)
            statuses = [first.wait(), second.wait()]
            refusals = [bed.clear_sentence(command.output()) for command in (first, second)]
            for status, refusal, command in zip(statuses, refusals, (first, second), strict=True):
                if status != bed_of.status[stage] and refusal is None:
                    raise bed.Fault(f"status {status} without a clear sentence: {command.output()[-1500:]}")
            if bed_of.status[stage] not in statuses:
                raise bed.Fault(f"neither of the two finished: {refusals}")
            bed.compare(bed_of.expected[stage], bed.state(project, stage))
            if (jobs := [first.times_run(), second.times_run()]) and min(jobs) and sum(jobs) > 1:
                raise bed.Fault(f"both ran the job: {jobs}")
            outcome.append("one clear sentence" if any(refusals) else "same result")


@pytest.mark.parametrize(("stage", "trial"), params(list(WORKERS), 3, "grade"))
def test_a_killed_worker_costs_nothing(bed_of: bed.Bed, book: Book, tmp_path: Path, stage: str, trial: int) -> None:
    draw = bed.rng("worker", stage, trial)
    with book.trial("worker killed", stage, trial) as outcome:
        project = bed_of.without(stage, tmp_path)
        with bed.cleared(project):
            command = bed.Command(project, stage)
            if not command.wait_for(lambda: workers(project, stage)):
                raise bed.Fault(f"no worker was seen: {command.output()[-1500:]}")
            time.sleep(draw.random() * bed_of.seconds[stage] * 0.7)
            bed.end(draw.sample(candidates, 1) if (candidates := workers(project, stage)) else [])
            if (status := command.wait()) != 0:
                raise bed.Fault(f"status {status}: {command.output()[-1500:]}")
            bed.compare(bed_of.expected[stage], bed.state(project, stage))
            outcome.append("same result")


def workers(project: Path, stage: str) -> list[psutil.Process]:
    """The living workers of a project; those of warm processes are not below its command."""
    processes = []
    for process in bed.remaining(project):
        with contextlib.suppress(psutil.Error):
            if WORKERS[stage] in process.cmdline():
                processes.append(process)
    return processes


@pytest.mark.parametrize(("stage", "trial"), params(list(bed.STAGES), 1, ""))
def test_a_clock_that_was_set_back(bed_of: bed.Bed, book: Book, tmp_path: Path, stage: str, trial: int) -> None:
    """All files are newer than now, as after a clock is set back: a kill, then the same command again."""
    draw = bed.rng("clock", stage, trial)
    with book.trial("clock set back", stage, trial) as outcome:
        project = bed_of.without(stage, tmp_path)
        with bed.cleared(project):
            command = bed.Command(project, stage)
            command.wait_for(lambda: not command.stage.rule or command.times_run())
            time.sleep(draw.random() * bed_of.seconds[stage])
            bed.kill_all(command)
            command.wait()
            ahead = draw.uniform(60, 86400 * 365)
            for top in ("results", "work", "recipes", "eval", "tasks"):
                for path in (project / top).rglob("*"):
                    was = path.lstat().st_mtime
                    os.utime(path, (was + ahead, was + ahead), follow_symlinks=False)
            outcome.append(bed_of.same_command_again(project, stage))

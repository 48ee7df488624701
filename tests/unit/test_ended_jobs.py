"""Jobs that Slurm has forgotten have ended as their files say; a controller that is away says nothing about them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster import ended_jobs, retry_interrupted, slurm


class Controller:
    """What squeue and sacct answer."""

    def __init__(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said = list[str]()
        self.queue = ended_jobs.Queue(work, self.said.append)
        self.listed, self.status, self.state, self.now = ["7"], 0, "", 100.0
        self.shown = "RUNNING"
        self.reason, self.cancelled = "None", list[str]()
        monkeypatch.setattr(slurm, "run", self.run)
        monkeypatch.setattr(ended_jobs.shutil, "which", lambda name: "/bin/sacct" if self.state else None)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        retry_interrupted.status_folder(work).mkdir(parents=True)
        self.file = retry_interrupted.status_folder(work) / "7"

    def run(self, command: list[str], timeout: float = 0) -> tuple[int, str, str]:
        self.cancelled += command[1:] if command[0] == "scancel" else []
        listed = "\n".join(f"{job}|{self.shown}|{self.reason}" for job in self.listed)
        return self.status, listed if command[0] == "squeue" else self.state, ""

    def polls(self, count: int, seconds: float = 60) -> str | None:
        for _ in range(count):
            self.now += seconds
            self.queue.look(["7"])
            ending = self.queue.ending("7", 60)
        return ending


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    return Controller(tmp_path, monkeypatch)


def test_a_job_that_is_forgotten_has_ended_as_its_file_says(controller: Controller) -> None:
    assert controller.polls(500) is None
    controller.listed = []
    controller.file.write_text("0\n")
    assert controller.polls(1) == "" and controller.polls(1) == ""
    controller.file.write_text("3\n")
    failed = controller.polls(1)
    assert failed and "status 3" in failed and not retry_interrupted.worth_retrying(failed, "", 3)


def test_a_job_that_left_nothing_is_lost_and_tried_again(controller: Controller) -> None:
    controller.listed = []
    assert controller.polls(1) is None, "sbatch may have answered before the queue has it"
    lost = controller.polls(1)
    assert lost and retry_interrupted.worth_retrying(lost, "", None)
    controller.state = "CANCELLED by 1000\n"
    cancelled = controller.polls(1)
    assert cancelled and "'CANCELLED'" in cancelled and not retry_interrupted.worth_retrying(cancelled, "", None)


@pytest.mark.parametrize("reason", ["launch failed requeued held", "launch_failed_requeued_held", "JobHoldMaxRequeue"])
def test_a_job_that_is_held_for_ever_has_ended_as_its_file_says_or_is_lost(controller: Controller, reason: str) -> None:
    controller.reason = "Resources"
    assert controller.polls(500) is None
    controller.reason = reason
    assert controller.polls(1) is None and not controller.cancelled
    lost = controller.polls(1)
    assert lost and retry_interrupted.worth_retrying(lost, "", None) and controller.cancelled == ["7"]
    controller.file.write_text("0\n")
    assert controller.polls(1) == "" and controller.cancelled == ["7", "7"]


def test_a_controller_that_is_away_says_nothing_until_no_job_can_run_any_more(controller: Controller) -> None:
    controller.polls(1)
    controller.status, controller.listed = 1, []
    assert controller.polls(119) is None
    assert controller.polls(1, 3 * 3600) is None, "this machine slept"
    lost = controller.polls(121)
    assert lost and retry_interrupted.worth_retrying(lost, "", None)
    controller.status, controller.listed = 0, ["7"]
    assert controller.polls(1) is None


@pytest.mark.parametrize("state", ended_jobs.FAILED)
def test_how_a_job_failed_is_said_with_its_status(controller: Controller, state: str) -> None:
    controller.shown = state
    controller.file.write_text("3\n")
    failed = controller.polls(1)
    assert failed and f"'{state}'" in failed and "status 3" in failed
    assert retry_interrupted.worth_retrying(failed, "", 3) == (state in retry_interrupted.INTERRUPTED)


@pytest.mark.parametrize("state", ended_jobs.RESTARTED)
def test_a_job_that_slurm_restarts_is_waited_for_and_tried_again_where_it_does_not(
    controller: Controller, state: str
) -> None:
    controller.shown = state
    controller.file.write_text("143\n")  # of the attempt that was stopped
    assert controller.polls(1) is None
    controller.shown = "PENDING"
    assert controller.polls(500) is None
    controller.shown = state
    lost = controller.polls(2)
    assert lost and f"'{state}'" in lost and retry_interrupted.worth_retrying(lost, "", None)


def test_a_job_whose_node_never_ends_it(controller: Controller) -> None:
    controller.shown = "COMPLETING"
    assert controller.polls(ended_jobs.COMPLETING_POLLS) is None
    lost = controller.polls(1)
    assert lost and retry_interrupted.worth_retrying(lost, "", None)
    controller.file.write_text("0\n")
    assert controller.polls(1) == ""


def test_a_queue_that_does_not_answer_is_said_once(controller: Controller) -> None:
    controller.polls(1)
    controller.status = 1
    controller.polls(5)
    controller.status, controller.listed = 0, []
    controller.file.write_text("0\n")
    assert controller.polls(1) == ""
    assert [line.split()[1] for line in controller.said] == ["does", "answers"]


def test_a_job_that_never_starts_by_itself_is_said_once(controller: Controller) -> None:
    controller.shown = "PENDING"
    for reason in ("Priority", "Resources", "QOSMaxJobsPerUserLimit", "PartitionTimeLimit", "PartitionTimeLimit"):
        controller.reason = reason
        assert controller.polls(3) is None
    assert len(controller.said) == 1 and "PartitionTimeLimit" in controller.said[0]


def test_the_executor_reports_what_has_ended_and_keeps_the_rest(controller: Controller, tmp_path: Path) -> None:
    (log := tmp_path / "log").touch()
    settings = SimpleNamespace(init_seconds_before_status_checks=15, keep_successful_logs=False)

    class Executor:
        next_seconds_between_status_checks, reported = 15.0, list[tuple[str, str]]()
        workflow = SimpleNamespace(executor_settings=settings)

        async def check_active_jobs(self, active_jobs: list[Any]) -> Any:
            raise AssertionError("the plugin's own polls")
            yield

        def report_job_success(self, each: Any) -> None:
            self.reported.append((each.external_jobid, "success"))

        def report_job_error(self, each: Any, msg: str, aux_logs: list[str]) -> None:
            self.reported.append((each.external_jobid, msg))

    async def poll() -> list[str]:
        return [each.external_jobid async for each in executor.check_active_jobs(jobs)]

    for _ in range(2):
        ended_jobs.notice_ended(Executor, tmp_path, controller.said.append)
    executor: Any = Executor()
    controller.listed = ["7", "8"]
    job = SimpleNamespace(resources={"runtime": 60})
    jobs: Any = [SimpleNamespace(external_jobid=number, job=job, aux={"slurm_logfile": log}) for number in ("7", "8")]
    for status in (0, 1, 1, 1, 1, 1, 1, 1, 0):  # a controller that is away loses no job
        controller.status = status
        assert asyncio.run(poll()) == ["7", "8"]
    assert executor.next_seconds_between_status_checks == ended_jobs.POLL_SECONDS
    controller.shown = "COMPLETED"
    assert asyncio.run(poll()) == [] and executor.reported == [("7", "success"), ("8", "success")]
    assert not log.exists() and executor.next_seconds_between_status_checks == 15

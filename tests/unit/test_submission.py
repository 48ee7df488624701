"""Refused submissions, with an sbatch and a squeue that do what a busy controller does."""

from __future__ import annotations

import shlex
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_slurm

from cluster import orphaned_jobs, slurm, submission

# Each call takes the next line of `plan`: `ok`, `taken TEXT` (a job is queued, and the text printed), or a text.
SBATCH = """
import re, sys
from pathlib import Path
folder = Path(__file__).parent
plan = (folder / "plan").read_text().splitlines()
step = plan[0] if plan else "ok"
(folder / "plan").write_text("\\n".join(plan[1:]))
with (folder / "calls").open("a") as file:
    file.write("call\\n")
queue = folder / "queue"
jobs = queue.read_text().splitlines() if queue.exists() else []
if step == "ok" or step.startswith("taken "):
    comment = sys.argv[sys.argv.index("--comment") + 1]
    queue.write_text("\\n".join([*jobs, f"{len(jobs) + 98} {comment}"]) + "\\n")
    if step == "ok":
        print(len(jobs) + 98)
        sys.exit()
    step = step.removeprefix("taken ")
print(f"sbatch: error: {step}", file=sys.stderr)
sys.exit(1)
"""
SQUEUE = """
import sys
from pathlib import Path
folder = Path(__file__).parent
away = folder / "away"
if away.exists() and int(away.read_text()):
    away.write_text(str(int(away.read_text()) - 1))
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
print((folder / "queue").read_text() if (folder / "queue").exists() else "", end="")
"""
SCANCEL = """
import sys
from pathlib import Path
queue = Path(__file__).parent / "queue"
queue.write_text("".join(line for line in queue.read_text().splitlines(True) if line.split()[0] not in sys.argv[1:]))
"""
NO_ANSWER = (
    "Batch job submission failed: Socket timed out on send/recv operation",
    "Batch job submission failed: Unable to contact slurm controller (connect failure)",
    "Batch job submission failed: Unexpected message received",
    "Batch job submission failed: Zero Bytes were transmitted or received",
    "Batch job submission failed: Message receive failure",
    "Batch job submission failed: Header lengths are longer than data received",
    "Batch job submission failed: Connection forced closed by quiesce timeout",
    "Batch job submission failed: Process is shutting down and closing all communications",
)
FULL = (
    "QOSMaxSubmitJobPerUserLimit",
    "AssocMaxSubmitJobLimit",
    "Batch job submission failed: Resource temporarily unavailable",
    "Slurm temporarily unable to accept job, sleeping and retrying",
    "Batch job submission failed: I/O error writing script/environment to file",
    "Batch job submission failed: Protocol authentication error",
    "If munged is up, restart with --num-threads=10",
    "Batch job submission failed: Required partition not available (inactive or drain)",
    "fatal: Unable to process configuration file",
    "Batch job submission failed: MaxJobCount limit reached",
    "Batch job submission failed: Rate limit exceeded, please retry later",
    "Batch job submission failed: Licenses currently unavailable",
    "Batch job submission failed: Partition in DOWN state",
)


class Cluster:
    """Slurm's commands as programs in a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.said, self.stop = folder, list[str](), threading.Event()
        for name, code in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
            (folder / name).write_text(f"#!{sys.executable}\n{code}")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        monkeypatch.setattr(submission, "FIRST_PAUSE", 0.01)

    def submit(self, *plan: str) -> tuple[int, str, str]:
        (self.folder / "plan").write_text("\n".join(plan))
        call = f'sbatch --parsable --comment {shlex.quote("rule_a_wildcards_it is")} --wrap="true"'
        one = submission.Submission(call, self.said.append, self.stop)
        output, error = one.communicate()
        return one.returncode, output.strip(), error

    def lines(self, name: str) -> list[str]:
        return (self.folder / name).read_text().splitlines() if (self.folder / name).exists() else []


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(tmp_path, monkeypatch)


@pytest.mark.parametrize("text", [*NO_ANSWER, *FULL])
def test_a_refusal_that_passes_is_waited_for(cluster: Cluster, text: str) -> None:
    assert cluster.submit(text, text) == (0, "98", "")
    assert len(cluster.lines("calls")) == 3 and len(cluster.lines("queue")) == 1
    assert len(cluster.said) == 2 and text in cluster.said[0]


@pytest.mark.parametrize("text", NO_ANSWER)
def test_a_job_that_was_taken_without_an_answer_is_not_queued_twice(cluster: Cluster, text: str) -> None:
    assert cluster.submit(f"taken {text}") == (0, "98", "")
    assert len(cluster.lines("calls")) == 1 and len(cluster.lines("queue")) == 1


def test_a_queue_that_does_not_answer_is_waited_for(cluster: Cluster) -> None:
    (cluster.folder / "away").write_text("3")
    assert cluster.submit(f"taken {NO_ANSWER[0]}") == (0, "98", "")
    assert len(cluster.lines("calls")) == 1 and len(cluster.said) == 4


def test_a_job_that_was_taken_late_is_cancelled(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = iter([False]), submission.Submission.queued
    monkeypatch.setattr(submission.Submission, "queued", lambda self: look(self) if next(looks, True) else [])
    assert cluster.submit(f"taken {NO_ANSWER[0]}", "ok") == (0, "99", "")
    assert [line.split()[0] for line in cluster.lines("queue")] == ["99"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Batch job submission failed: Invalid account or account/partition combination specified", "account"),
        ("invalid partition specified: gpus", "partition"),
        ("Batch job submission failed: Invalid qos specification", "qos"),
        ("Batch job submission failed: User's group not permitted to use this partition", "partition"),
        ("Batch job submission failed: Requested reservation is invalid", "extra"),
        ("unrecognized option '--gpu'", "extra"),
        ("Batch job submission failed: More processors requested than permitted", "max_cpus"),
        ("Batch job submission failed: Memory specification can not be satisfied", "max_memory_gb"),
        ("Batch job submission failed: Requested node configuration is not available", "gpu_type"),
        ("Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)", "max_hours"),
        ("QOSMaxWallDurationPerJobLimit", "max_hours"),
        ("Batch job submission failed: Job violates accounting/QOS policy (job submit limit, time limits)",
         "qos"),
        ("Batch job submission failed: Something that nobody knows", ""),
    ],
)  # fmt: skip
def test_a_refusal_that_stays_fails_at_once_with_what_to_do(cluster: Cluster, text: str, key: str) -> None:
    status, output, error = cluster.submit(text)
    assert (status, output) == (1, "") and text in error and key in error.partition("\n")[2]
    assert len(cluster.lines("calls")) == 1 and not cluster.said


def test_nothing_is_submitted_after_the_workflow_has_ended(cluster: Cluster) -> None:
    cluster.stop.set()
    assert cluster.submit(FULL[0], "ok")[0] == 1
    assert len(cluster.lines("calls")) == 1


def test_the_plugin_submits_patiently(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    plugin: Any = SimpleNamespace(subprocess=snakemake_executor_plugin_slurm.subprocess)
    plugin.Executor = type("Executor", (), {"cancel": lambda self: 1, "shutdown": lambda self: 2})
    for _ in range(2):
        submission.be_patient(plugin, cluster.said.append)
    call = "sbatch --parsable --comment rule_a -t 5"
    assert isinstance(plugin.subprocess.Popen(call, shell=True, text=True), submission.Submission)
    assert plugin.subprocess.check_output(["echo", "x"]) == b"x\n"
    assert plugin.Executor().cancel() == 1 and plugin.subprocess._stop.is_set()


def test_a_snakefile_that_is_read_twice_has_one_list_of_what_it_submits(tmp_path: Path) -> None:
    executor = type(
        "Executor", (), {"run_job": lambda self, job: None, "report_job_submission": lambda self, job: None}
    )
    assert orphaned_jobs.pick_up(executor, tmp_path) is orphaned_jobs.pick_up(executor, tmp_path)


def test_jobs_have_the_folder_s_prefix_and_are_no_array(tmp_path: Path) -> None:
    said, settings = list[str](), SimpleNamespace(jobname_prefix="", array_jobs="all")
    executor = type("Executor", (), {"__post_init__": lambda self: None})
    orphaned_jobs.name_jobs(executor, tmp_path)
    one: Any = executor()
    one.workflow, one.logger = SimpleNamespace(executor_settings=settings), SimpleNamespace(warning=said.append)
    one.__post_init__()
    assert settings.jobname_prefix == orphaned_jobs.job_name_prefix(tmp_path)
    assert settings.array_jobs is None and len(said) == 1


def test_the_limit_of_jobs_is_the_least_that_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "user": "one\n",
        "assoc user": "one|normal|30\ntwo||\nthree||7\n",
        "assoc account=one": "|20\nme|\n",
        "assoc account=two": "|\nme|\n",
        "qos normal": "||25\n",
        "qos short": "5|9|\n",
        "qos busy": "|4|\n",
        "partition": "PartitionName=main Default=YES QoS=N/A\nPartitionName=gpu Default=NO QoS=busy\n",
    }

    def run(command: list[str]) -> tuple[int, str, str]:
        query = " ".join(command[2:]).removeprefix("show ")
        return 0, next((text for key, text in answers.items() if query.startswith(key)), ""), ""

    monkeypatch.setattr(slurm, "run", run)
    limits = {
        (None, None, ""): 20, ("two", None, ""): None, ("three", None, "gpu"): 4, (None, "short", "main"): 5,
    }  # fmt: skip
    assert {names: slurm.submit_limit(*names[:2], names[2:]) for names in limits} == limits
    monkeypatch.setattr(slurm, "run", lambda command: (127, "", "sacctmgr is not installed"))
    assert slurm.submit_limit(None, "short", ("",)) is None

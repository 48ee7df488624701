"""The fault test bed: a finished line, its stages, and what is compared with an undisturbed run after a fault.

A trial copies the finished project, deletes what one stage made, runs the stage's command with a fault, gives the same
command again, and compares what is on disk. Nothing here knows how a stage works inside.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from tests import forked_command
from tests.waiting import LIMIT
from tests.workflow import miniature

SEED = int(os.environ.get("FAULT_SEED", "0"))
RUN = Path("results/demo/runs") / miniature.RUN / "seed-0"
WORK = Path("work/demo/runs") / miniature.RUN / "seed-0"
REGRADED = RUN / "regraded/math-verify+none"
BENCHMARK, STEPS = "arithmetic_words", (0, miniature.CHECKPOINTS[-1])
TABLES = tuple(f"results/demo/data/benchmarks/{name}.parquet" for name in (BENCHMARK, "arithmetic_expressions"))
PROBLEMS = TABLES[0]
PATIENCE_SECONDS = 900
TRIES = 3  # of the same command after a fault; each but the last may refuse in one clear sentence
# A killed vLLM is tried again with smaller batches; the hash of a file beside its record is of its times, too.
VOLATILE_KEYS = {"made_at", "git_dirty", "job_seconds", "file_sha256", "max_num_seqs"}
RESUMED = "--resume_from_checkpoint"
VOLATILE_COLUMNS = ["wall_time", "tokens_per_second", "phases", "host_memory_gb", "gpu_memory_gb", "gpu_utilisation",
                    "trained_tokens", "padding_share", "step_seconds"]  # fmt: skip


class Fault(AssertionError):
    """Something was lost, doubled or changed, or an error was not one clear sentence."""


@dataclass(frozen=True)
class Stage:
    """What a trial disturbs: a command, the rule that it is about, and what that makes."""

    arguments: tuple[str, ...]  # of `snakemake`, or of this Python where there is no rule
    rule: str
    outputs: tuple[str, ...]  # deleted before a trial, compared after it
    work: tuple[str, ...] = ()  # deleted before a trial


def importing(step: int) -> tuple[str, ...]:
    """The words that import the project's completions as those of a checkpoint."""
    names = "completion=text,gold=gold,problem_id=id"
    return (
        "-m", "eval.importers", "--format", "jsonl", "--input", "completions.jsonl", "--benchmark", BENCHMARK,
        "--run", "imported/mine", "--step", str(step), "--problems", PROBLEMS, "--match", "id", "--map", names,
        "--output", str(RUN / f"samples/step-{step}/{BENCHMARK}.parquet"),
    )  # fmt: skip


REGRADING = ("--config", "grader=math-verify", "extraction=none")
SIDES = (f"baseline={REGRADED}/graded/step-{STEPS[0]}", f"checkpoint={REGRADED}/graded/step-{STEPS[1]}")
LIGHT = {  # seconds each: everything from imported samples on
    "data": Stage((*TABLES, "--allowed-rules", "problems"), "problems", ("results/demo/data/benchmarks",)),
    "import": Stage(importing(STEPS[1]), "", (f"{RUN}/samples/step-{STEPS[1]}",)),
    "grade": Stage(
        (f"{REGRADED}/graded", *REGRADING, "--allowed-rules", "regrade_samples"),
        "regrade_samples",
        (f"{REGRADED}/graded",),
    ),
    "score": Stage(
        (f"{REGRADED}/scores.parquet", *REGRADING, "--allowed-rules", "score_regraded"),
        "score_regraded",
        (f"{REGRADED}/scores.parquet", f"{REGRADED}/scores.parquet.provenance.json"),
    ),
    "gate": Stage(
        ("compare_checkpoints", "--allowed-rules", "compare_pair", "compare_checkpoints", "--config", *SIDES),
        "compare_pair",
        ("results/demo/compare",),
    ),
}
HEAVY = {  # up to a minute each: the model, its training, and vLLM
    "base model": Stage(("results/demo/models/demo",), "base_model", ("results/demo/models",)),
    "train": Stage(
        (f"{RUN}/stage-1/training_log.parquet",), "train", (f"{RUN}/stage-1",), (f"{WORK}/stage-1-*",)
    ),
    "export": Stage(
        tuple(f"{RUN}/checkpoints/step-{step}" for step in (0, *miniature.CHECKPOINTS)),
        "export",
        (f"{RUN}/checkpoints",),
    ),
    "generate": Stage((f"{RUN}/samples",), "generate_samples", (f"{RUN}/samples",), (f"{WORK}/samples",)),
    "report": Stage(("report",), "report_page", ("results/demo/report",)),
}  # fmt: skip
STAGES = LIGHT | HEAVY


def rng(*names: object) -> random.Random:
    """The random numbers of one trial: by the seed and the trial's name alone."""
    return random.Random(f"{SEED} {names}")


def light_project(folder: Path) -> Path:
    """The project with problems and imported completions, graded, scored and compared; no training, no vLLM."""
    project = miniature.copy(folder)
    finish(project, "data")
    draw, lines = random.Random(0), []
    for problem in pq.read_table(project / PROBLEMS).to_pylist():
        for _ in range(20):
            value = int(problem["answer"]) + draw.choice([0, 0, 1])
            text = draw.choice([r"\boxed{%d}", r"So it is \boxed{x+%d-x}.", "no\u2028box %d"]) % value
            lines.append(json.dumps({"id": problem["problem_id"], "text": text, "gold": problem["answer"]}) + "\n")
    (project / "completions.jsonl").write_text("".join(lines), encoding="utf-8")
    forked_command.run_module(*importing(STEPS[0])[1:], cwd=project).check_returncode()
    for name in ("import", "grade", "score", "gate"):
        finish(project, name)
    return project


def line_project(folder: Path) -> Path:
    """The project after `snakemake reproduce_all`."""
    project = miniature.copy(folder)
    status, output = miniature.snakemake_process(project, "reproduce_all")
    assert status == 0, output
    return project


def finish(project: Path, stage: str) -> None:
    """Run a stage's command undisturbed."""
    command = Command(project, stage)
    command.wait()
    assert (project / STAGES[stage].outputs[0]).exists(), command.output()


class Command:
    """A stage's command, running in a process group of its own; its output goes to a file."""

    def __init__(self, project: Path, stage: str, number: int = 0) -> None:
        """Start it."""
        self.stage, self._log = STAGES[stage], project / f"output-{number}.txt"
        module, *options = ["snakemake", *self.stage.arguments] if self.stage.rule else self.stage.arguments[1:]
        self.process = forked_command.start_module(module, *options, cwd=project, log=self._log)

    def output(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        """Its exit status; one that does not end is a fault."""
        self.process.join(PATIENCE_SECONDS)
        if self.process.exitcode is None:
            end(self.processes())
            raise Fault(f"it did not end within {PATIENCE_SECONDS} s")
        return self.process.exitcode

    def processes(self) -> list[psutil.Process]:
        """It and its descendants."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.process.pid)
            return [process, *process.children(recursive=True)]
        return []

    def times_run(self) -> int:
        """How often its rule was started, as far as the output says: Snakemake's own, where it is the only job."""
        output = self.output()
        alone = len(re.findall(rf"^(?:local)?rule {self.stage.rule}:$", output, re.MULTILINE))
        return alone + miniature.jobs_started(output, self.stage.rule)

    def wait_for(self, condition: Callable[[], object]) -> bool:
        """Wait until the condition holds; False if the command ended first."""
        while not condition():
            if not self.process.is_alive():
                return False
            time.sleep(0.02)
        return True


def end(processes: list[psutil.Process]) -> None:
    """SIGKILL to each of these processes."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def remaining(project: Path) -> list[psutil.Process]:
    """Living processes that work in this copy of the project."""
    left_over = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(project):
                left_over.append(process)
    return left_over


def clear_sentence(output: str) -> str | None:
    """The sentence with which a command refused; None if there is none, or a traceback beside it."""
    if "Traceback (most recent call last)" in output:
        return None
    for line in map(str.strip, output.split("\n")):  # the end of a job's log is shown indented
        if line.startswith(("Error: ", "Stopped: ")):
            return line
    own = re.findall(r"^(?:WorkflowError|WildcardError|ProtectedOutputException)[^\n]*:\n(.+)", output, re.MULTILINE)
    return next((said.strip() for said in own if "At least one job did not complete" not in said), None)


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items() if key not in VOLATILE_KEYS}
    if isinstance(value, list):
        if RESUMED in value:  # the command of a training says from which checkpoint its last attempt started
            at = value.index(RESUMED)
            value = value[:at] + value[at + 2 :]
        return [_steady(item) for item in value]
    return value


def content(file: Path, project: Path) -> object:
    """What a file says, without what differs between any two runs, such as times and the place of the project."""
    if file.suffix == ".parquet":
        table = pq.read_table(file)
        return repr(table.drop_columns([name for name in VOLATILE_COLUMNS if name in table.column_names]).to_pylist())
    if file.suffix == ".json":
        return _steady(json.loads(file.read_text(encoding="utf-8").replace(str(project), "")))
    if file.suffix == ".html":
        return re.sub(r"made [-\d]{10} \d\d:\d\d UTC", "", file.read_text(encoding="utf-8"))
    return file.read_bytes()


def state(project: Path, stage: str) -> dict[str, object]:
    """All that a stage made, by path; a killed writer's hidden partial files do not count."""
    contents = {}
    for output in map(project.joinpath, STAGES[stage].outputs):
        for file in [output] if output.is_file() else output.rglob("*"):
            if file.is_file() and not any(part.startswith(".") for part in file.relative_to(project).parts):
                contents[str(file.relative_to(project))] = content(file, project)
    return contents


def compare(expected: dict[str, object], actual: dict[str, object]) -> None:
    """Raise Fault unless both are the same."""
    lost, more = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
    changed = sorted(name for name in expected.keys() & actual.keys() if expected[name] != actual[name])
    said = [f"{what}: {', '.join(n)}" for what, n in (("lost", lost), ("more", more), ("changed", changed)) if n]
    if said:
        raise Fault("; ".join(said))


@dataclass
class Bed:
    """A finished project, and what its stages make undisturbed."""

    project: Path
    expected: dict[str, dict[str, object]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # that a stage's job takes undisturbed
    status: dict[str, int] = field(default_factory=dict)

    def without(self, stage: str, folder: Path) -> Path:
        """A copy of the project in which a stage is to be done; the stage is done undisturbed once for comparison."""
        if stage not in self.expected:
            first = self._copy(stage, folder / "undisturbed")
            command = Command(first, stage)
            command.wait_for(lambda: not command.stage.rule or command.times_run())
            started = time.monotonic()
            self.status[stage] = command.wait()
            self.seconds[stage] = time.monotonic() - started
            self.expected[stage] = state(first, stage)
            assert self.expected[stage], command.output()
            shutil.rmtree(first)
        return self._copy(stage, folder / "disturbed")

    def _copy(self, stage: str, folder: Path) -> Path:
        shutil.copytree(self.project, folder, symlinks=True)
        for pattern in (*STAGES[stage].outputs, *STAGES[stage].work):
            for path in folder.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return folder

    def same_command_again(self, project: Path, stage: str) -> str:
        """Give the command until it succeeds; raises Fault unless it ends as if nothing had happened."""
        for number in range(1, TRIES + 1):
            command = Command(project, stage, number)
            status = command.wait()
            if status == self.status[stage] and (status == 0 or not clear_sentence(command.output())):
                compare(self.expected[stage], state(project, stage))
                return "same result" if number == 1 else "refused, then the same result"
            if clear_sentence(command.output()) is None:
                raise Fault(f"status {status} without a clear sentence: {command.output()[-1500:]}")
        raise Fault(f"refused {TRIES} times: {clear_sentence(command.output())}")


@contextlib.contextmanager
def cleared(project: Path) -> Iterator[None]:
    """End what still runs in a project after a trial; that it runs minutes after it is a fault."""
    try:
        yield
        deadline = time.monotonic() + LIMIT
        while (left := remaining(project)) and time.monotonic() < deadline:
            time.sleep(0.2)
        if left:
            raise Fault(f"still running: {[' '.join(process.cmdline())[:80] for process in left]}")
    finally:
        end(remaining(project))


def kill_all(command: Command) -> None:
    """As when the machine dies: every process at once."""
    end(command.processes())


def kill_group(command: Command) -> None:
    """SIGKILL to Snakemake and what is in its process group."""
    os.killpg(command.processes()[0].pid, signal.SIGKILL)


def terminate(command: Command) -> None:
    """SIGTERM to Snakemake, as a scheduler or `kill` sends it."""
    command.process.terminate()


WAYS = {"SIGKILL to all": kill_all, "SIGKILL to the group": kill_group, "SIGTERM": terminate}

"""Runs the rows: which jobs of the workflow each asks for, and what is looked at afterwards."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cluster import gpu_memory, machine
from cluster.gpu_smoke import table, watched_command
from cluster.gpu_smoke.table import Row
from contracts import tables
from contracts.paths import ResultsFolder, RunFolder
from contracts.run_file import Run
from contracts.seeds import run_id
from envs import build
from frameworks import adapter
from frameworks.adapter import Paths
from recipes.runs import load_run, smoke_run_names
from system import gpu_locks
from system.errors import ROOT, UserError

DEVICE, EVALUATION = "device", "evaluation"
HERE, LOCKED = "here", "locked"
INTERPRETERS = (LOCKED, HERE)  # those of the locked environments, or the one that runs this
LIMITS = {DEVICE: 120.0, EVALUATION: 240.0}  # seconds on a GPU; a training's is its run file's
CPU_LIMIT = 3600.0
LEAST_SECONDS = 15.0
FARTHEST = 0.1  # of the sampler's probabilities from the trainer's; bfloat16 rounds to some 1e-3
EVALUATION_MODULES = ("vllm", "lm_eval", "transformers")


class Failed(Exception):
    """A row is wrong; the message is its error."""


def smoke_runs(scale: str) -> dict[str, Run]:
    """The trainings by row, the quickest first."""
    runs = [load_run(name, scale) for name in smoke_run_names()]
    ordered = sorted(runs, key=lambda run: (run.hardware["expected_hours"], run.name))
    return {run.name.partition("/")[2]: run for run in ordered}


def row_names() -> list[str]:
    """All rows in their order."""
    return [DEVICE, EVALUATION, *smoke_runs("full")]


def rows_with_server() -> set[str]:
    """The rows whose vLLM is a server with GPUs of its own."""
    return {name for name, run in smoke_runs("full").items() if run.stages[0].rollout.get("engine") == "vllm-server"}


def last_json(printed: str) -> dict[str, Any]:
    """The facts in the last line of a command's output; raises Failed where it holds none."""
    try:
        return dict(json.loads(printed.strip().split("\n")[-1]))
    except (ValueError, TypeError):
        raise Failed(table.first_error(printed)) from None


class SmokeTest:
    """The rows of one call, and the time that is left for them.

    Args:
        folder: for results, native files and the table; nothing else uses it.
        scale: full on GPUs, demo without.
        interpreter: one of INTERPRETERS.
        minutes: for all rows. The clock starts with the first command that is not an environment's build.
    """

    def __init__(self, folder: Path, scale: str, interpreter: str, minutes: float) -> None:
        """See the class."""
        self.folder, self.scale, self.interpreter, self.minutes = folder, scale, interpreter, minutes
        self.device = "cuda" if scale == "full" else "cpu"
        self.runs = smoke_runs(scale)
        self.results = ResultsFolder(folder / "results" / scale)
        self.end = self.started = self.deadline = 0.0  # of all rows; of the one that runs
        self.gpus = len(gpu_locks.visible()) if self.device == "cuda" else 0
        self.gpu_gb = min((gpu.memory_gb for gpu in machine.nvidia()[1]), default=0.0)
        self.about = self.device

    def log(self, row: Row) -> Path:
        """What a row's commands print."""
        return self.folder / "logs" / f"{row.name}.log"

    def stored(self, run: Run) -> RunFolder:
        """Where the workflow puts a training's results."""
        return self.results.run(run_id(run.name, 0))

    def native_folders(self, run: Run) -> list[Path]:
        """The folder of a training's native files, once it has begun."""
        return [*ResultsFolder(self.folder / "work" / self.scale).run(run_id(run.name, 0)).path.glob("stage-1-*")]

    def job_logs(self, run: Run) -> list[Path]:
        """The logs of the jobs of a training and its evaluation: the trainer's own, then those of the workflow."""
        native = [folder / "train.log" for folder in self.native_folders(run)]
        return [file for file in native if file.is_file()] + sorted(
            (ROOT / "logs" / self.scale).glob(f"*/{run.name}/**/*.log")
        )

    def python(self, environment: str) -> Path:
        """The interpreter of an environment."""
        return Path(sys.executable) if self.interpreter == HERE else build.python(environment, self.device)

    def run_command(
        self, row: Row, command: Sequence[str | Path], until: Callable[[], bool] = lambda: False
    ) -> watched_command.Ended:
        """Run a command of a row.

        Args:
            row: its memory is noted.
            command: the program and its arguments.
            until: where the command should be stopped.

        Raises:
            Failed: it did not end well, or in time.
        """
        ended = watched_command.run(command, self.log(row), self.deadline - time.monotonic(), until)
        row.peak_gb = max(row.peak_gb, ended.peak_gb)
        if ended.late:
            raise Failed(f"TimeoutError: ended after {time.monotonic() - self.started:.0f} s, its limit")
        if ended.status and not ended.stopped:
            logs = self.job_logs(self.runs[row.name]) if row.name in self.runs else []
            raise Failed(table.first_error(*(log.read_text(errors="replace") for log in logs), ended.output))
        return ended

    def run_workflow(
        self,
        row: Row,
        run: Run,
        targets: Sequence[str | Path],
        settings: Sequence[str] = (),
        until: Callable[[], bool] = lambda: False,
    ) -> watched_command.Ended:
        """Have Snakemake make targets with a run's settings; see run_command."""
        folders = [f"results={self.folder / 'results'}", f"work={self.folder / 'work'}"]
        configuration = [f"scale={self.scale}", f"reproduce=[{run.name}]", f"interpreter={self.interpreter}", *folders]
        command = [sys.executable, "-m", "snakemake", *map(str, targets), "--config", *configuration, *settings]
        return self.run_command(row, command, until)

    def missing(self, environment: str, modules: Sequence[str]) -> str:
        """Why an environment cannot run a row; empty if it can. It is built where it is not there."""
        if self.interpreter == HERE:
            roots = dict.fromkeys(module.partition(".")[0] for module in modules)
            roots = roots if self.device == "cuda" else dict.fromkeys([*roots][:1])  # its shims need less
            absent = [name for name in roots if importlib.util.find_spec(name) is None]
            return f"not installed: {', '.join(absent)}" if absent else ""
        if (self.python(environment).parent.parent / ".stamp").is_file():
            return ""
        print(f"{environment}: building its environment", flush=True)
        log = self.folder / "logs" / f"build-{environment}.log"
        command: list[str | Path] = [sys.executable, ROOT / "envs" / "build.py", environment, "--device", self.device]
        ended = watched_command.run(command, log, float("inf"))
        return f"its environment could not be built: {table.first_error(ended.output)}" if ended.status else ""

    def obstacle(self, name: str) -> str:
        """Why a row is left out; empty if it can run."""
        run = self.runs.get(name)
        if run and run.hardware["gpus"] > self.gpus:
            return f"needs {run.hardware['gpus']} GPUs, and here is {self.gpus}"
        if self.device == "cpu" and name in rows_with_server():
            return "weights reach a vLLM server by NCCL, which needs GPUs"
        why = self.missing("eval", EVALUATION_MODULES)
        return why or (self.missing(run.framework, adapter.load(run.framework).entry_modules) if run else "")

    def run_row(self, name: str) -> Row:
        """Run one row."""
        row = Row(name)
        if why := self.obstacle(name):
            return row.left_out(why)
        self.end = self.end or time.monotonic() + 60 * self.minutes
        if self.end - time.monotonic() < LEAST_SECONDS:
            return row.left_out(f'no time was left of {self.minutes:g} minutes: make gpu-smoke SMOKE="rows={name}"')
        limit = 3600 * self.runs[name].hardware["hours"] if name in self.runs else LIMITS[name]
        self.started = time.monotonic()
        self.deadline = min(self.started + (limit if self.device == "cuda" else CPU_LIMIT), self.end)
        try:
            if name == DEVICE:
                self.look_at_device(row)
            elif name == EVALUATION:
                self.evaluate_untrained(row)
            else:
                self.train(row, self.runs[name])
        except (Failed, UserError) as error:
            row.wrong(str(error), table.advice(str(error), self.log(row)))
        row.seconds = time.monotonic() - self.started
        return row

    def look_at_device(self, row: Row) -> None:
        """The device, and a product in bfloat16."""
        command = [str(self.python("eval")), "-m", "cluster.gpu_smoke.bfloat16", self.device]
        facts = last_json(self.run_command(row, command).output)
        self.about = ", ".join(f"{name} {value}" for name, value in facts.items())
        row.remarks.append(self.about)

    def evaluate_untrained(self, row: Row) -> None:
        """The model that trainings start from, under the real protocol: `snakemake evaluate`."""
        run = next(iter(self.runs.values()))
        model = self.results.model(run.model)
        shutil.rmtree(self.results.path / "runs" / "models", ignore_errors=True)
        self.run_workflow(row, run, [model])
        self.run_workflow(row, run, ["evaluate"], [f"checkpoint={model}"])
        row.remarks += map(score_text, (self.results.path / "runs" / "models").glob("*/scores.parquet"))

    def train(self, row: Row, run: Run) -> None:
        """Train, with a kill and a resumption where there are two checkpoints; export and evaluate all of them."""
        stored, first, last = self.stored(run), run.stages[0].checkpoints[0], run.checkpoint_steps[-1]
        for folder in (stored.path, *self.native_folders(run)):
            shutil.rmtree(folder, ignore_errors=True)
        for log in self.job_logs(run):
            log.unlink()
        if estimate := gpu_memory.estimate_stage(run, run.stages[0], self.gpu_gb):
            row.estimated_gb = estimate.peak
        targets, killed = [stored.training_log, stored.scores], first < last
        if killed:
            killed = self.run_workflow(row, run, targets, until=lambda: self.printed_steps(run) > first).stopped
            row.remarks += [] if killed else ["not killed: it had ended"]
        self.run_workflow(row, run, targets)
        if killed:
            printed = "".join(log.read_text("utf-8", "replace") for log in self.job_logs(run))
            if not (match := re.search(r"resuming from step (\d+)", printed)):
                raise Failed(f"RuntimeError: it began again instead of resuming from step {first}")
            row.remarks.append(f"killed, resumed from step {match[1]}")
        row.figures = self.figures(run)
        row.remarks.append(score_text(stored.scores))
        farthest = row.figures["largest_distance"]
        if farthest is not None and farthest > FARTHEST:
            raise Failed(f"RuntimeError: sampler and trainer are {farthest:.2g} apart: weights do not reach vLLM")

    def printed_steps(self, run: Run) -> int:
        """Steps that the trainer printed so far, over all attempts."""
        framework, count = adapter.load(run.framework), 0
        for log in (folder / "train.log" for folder in self.native_folders(run)):
            lines = log.read_text(errors="replace").split("\n")[:-1] if log.is_file() else []
            count += sum(framework.metrics_in_line(line) is not None for line in lines)
        return count

    def figures(self, run: Run) -> dict[str, Any]:
        """What a training's log says: first and last reward, speed, and how far the sampler is from the trainer."""
        framework, stage = adapter.load(run.framework), run.stages[0]
        rows = tables.read(self.stored(run).training_log, tables.TRAINING_LOG).to_pylist()
        logged = framework.metrics_of_training(run, stage, Paths(Path(), Path(), self.native_folders(run)[0]))
        key = framework.sampler_distance
        distances = [abs(values[key]) for values in logged.values() if key in values]
        speeds = [row["tokens_per_second"] for row in rows[1:] if row["tokens_per_second"] is not None]  # 1: starts up
        return {
            "reward": [rows[0]["reward_mean"], rows[-1]["reward_mean"]],
            "tokens_per_second": statistics.median(speeds) if speeds else None,
            "sampler_distance": distances[-1] if distances else None,
            "largest_distance": max(distances, default=None),
        }


def score_text(scores: Path) -> str:
    """The accuracy of the last checkpoint, such as `step 10: countdown_demo 3.1 %`."""
    row = max(tables.read(scores, tables.SCORE).to_pylist(), key=lambda row: int(row["step"]))
    return f"step {row['step']}: {row['benchmark']} {100 * row['avg_at_k']:.1f} %"

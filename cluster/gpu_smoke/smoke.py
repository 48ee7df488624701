"""Runs the rows: what each needs, its commands in order, and what is looked at afterwards."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cluster import machine, memory
from cluster.gpu_smoke import commands, table, watched
from cluster.gpu_smoke.commands import HERE, Place, Words, row_of
from cluster.gpu_smoke.table import Row
from contracts.run_file import Run
from frameworks import adapter
from system import gpu_locks

DEVICE, EVALUATION = "device", "evaluation"
LIMITS = {DEVICE: 120.0, EVALUATION: 240.0}  # seconds on a GPU; a training's is its run file's
CPU_LIMIT = 3600.0
LEAST_SECONDS = 15.0
FARTHEST = 0.1  # of the sampler's probabilities from the trainer's; bfloat16 rounds to some 1e-3
EVALUATION_MODULES = ("vllm", "lm_eval", "transformers")


class Failed(Exception):
    """A row is wrong; the message is its error."""


def last_json(printed: str) -> dict[str, Any]:
    """The facts in the last line of a command's output; raises Failed where it holds none."""
    try:
        return dict(json.loads(printed.strip().split("\n")[-1]))
    except (ValueError, TypeError):
        raise Failed(table.first_error(printed)) from None


class Smoke:
    """The rows of one call, and the time that is left for them."""

    def __init__(self, place: Place, minutes: float, may_build: bool) -> None:
        """The clock starts with the first command that is not an environment's build."""
        self.place, self.minutes, self.may_build = place, minutes, may_build
        self.runs = {row_of(run): run for run in commands.runs(place.scale)}
        self.end = self.started = self.deadline = 0.0  # of all rows; of the one that runs
        self.gpus = len(gpu_locks.visible()) if place.device == "cuda" else 0
        self.size = min((gpu.memory_gb for gpu in machine.nvidia()[1]), default=0.0)
        self.about = place.device

    def log(self, row: Row) -> Path:
        """What a row's commands print."""
        return self.place.folder / "logs" / f"{row.name}.log"

    def call(self, row: Row, words: Words, until: Callable[[], bool] = lambda: False) -> str:
        """Run a command of a row; returns its output.

        Args:
            row: its memory is noted.
            words: the command.
            until: where the command should be stopped.

        Raises:
            Failed: it did not end well, or in time.
        """
        ended = watched.run(words, self.log(row), self.deadline - time.monotonic(), until)
        row.peak_gb = max(row.peak_gb, ended.peak_gb)
        if ended.late:
            raise Failed(f"TimeoutError: ended after {time.monotonic() - self.started:.0f} s, its limit")
        if ended.status and not ended.stopped:
            native = self.place.work(self.runs[row.name]) / "train.log" if row.name in self.runs else None
            logs = [native.read_text(errors="replace")] if native and native.is_file() else []
            raise Failed(table.first_error(*logs, ended.output))
        return ended.output

    def missing(self, environment: str, modules: Sequence[str]) -> str:
        """Why an environment cannot run a row; empty if it can. It is built where that is allowed."""
        if self.place.interpreter == HERE:
            roots = dict.fromkeys(module.partition(".")[0] for module in modules)
            roots = roots if self.place.device == "cuda" else dict.fromkeys([*roots][:1])  # its shims need less
            absent = [name for name in roots if importlib.util.find_spec(name) is None]
            return f"not installed: {', '.join(absent)}" if absent else ""
        stamp = self.place.python(environment).parent.parent / ".stamp"
        command = f"python3.11 envs/build.py {environment} --device {self.place.device}"
        if stamp.is_file():
            return ""
        if not self.may_build:
            return f"not built: {command}"
        print(f"{environment}: building its environment", flush=True)
        log = self.place.folder / "logs" / f"build-{environment}.log"
        ended = watched.run(self.place.build(environment), log, float("inf"))
        return f"its environment could not be built: {table.first_error(ended.output)}" if ended.status else ""

    def prepare(self, run: Run) -> list[Words]:
        """The commands that make a run's model and data, where they are not there."""
        place, found = self.place, list[Words]()
        if not place.model(run).is_dir():
            found.append(place.make_model(run))
        asked = [("train", run.stages[0].dataset), *(("benchmarks", name) for name in run.evaluation["benchmarks"])]
        return found + [place.make_problems(*one) for one in asked if not place.problems(*one).is_file()]

    def obstacle(self, name: str) -> str:
        """Why a row is left out; empty if it can run."""
        run = self.runs.get(name)
        if run and run.hardware["gpus"] > self.gpus:
            return f"needs {run.hardware['gpus']} GPUs, and here is {self.gpus}"
        why = self.missing("eval", EVALUATION_MODULES)
        why = why or (self.missing(run.framework, adapter.load(run.framework).entry_modules) if run else "")
        server = self.place.device == "cpu" and name in commands.servers()
        return why or ("weights reach a vLLM server by NCCL, which needs GPUs" if server else "")

    def row(self, name: str) -> Row:
        """Run one row."""
        row = Row(name)
        if why := self.obstacle(name):
            return row.left_out(why)
        self.end = self.end or time.monotonic() + 60 * self.minutes
        if self.end - time.monotonic() < LEAST_SECONDS:
            return row.left_out(f'no time was left of {self.minutes:g} minutes: make gpu-smoke SMOKE="--row {name}"')
        limit = 3600 * self.runs[name].hardware["hours"] if name in self.runs else LIMITS[name]
        limit = limit if self.place.device == "cuda" else CPU_LIMIT
        self.started = time.monotonic()
        self.deadline = min(self.started + limit, self.end)
        try:
            if name == DEVICE:
                self.look(row)
            elif name == EVALUATION:
                self.evaluate(row)
            else:
                self.train(row, self.runs[name])
        except Failed as error:
            row.wrong(str(error), table.advice(str(error), self.log(row)))
        row.seconds = time.monotonic() - self.started
        return row

    def look(self, row: Row) -> None:
        """The device, and a product in bfloat16."""
        facts = last_json(self.call(row, self.place.look()))
        self.about = ", ".join(f"{name} {value}" for name, value in facts.items())
        row.remarks.append(self.about)

    def evaluate(self, row: Row) -> None:
        """The model that trainings start from, under the real protocol."""
        run = next(iter(self.runs.values()))
        shutil.rmtree(self.place.results(run), ignore_errors=True)
        for words in [*self.prepare(run), *self.place.evaluate(run, 0)]:
            printed = self.call(row, words)
        row.remarks.append(printed.strip().split("\n")[-1])

    def train(self, row: Row, run: Run) -> None:
        """Train, with a kill and a resumption where there are two checkpoints; export and evaluate the last one."""
        place, last = self.place, run.checkpoint_steps[-1]
        for folder in (place.work(run), place.results(run)):
            shutil.rmtree(folder, ignore_errors=True)
        for words in self.prepare(run):
            self.call(row, words)
        if estimate := memory.estimate(run, run.stages[0], self.size):
            row.estimated_gb = estimate.peak
        first = run.stages[0].checkpoints[0]
        if first < last:
            self.call(row, place.train(run), until=lambda: self.steps(run) > first)
        printed = self.call(row, place.train(run))
        if first < last:
            resumed = re.search(r"resuming from step (\d+)", printed)
            if not resumed:
                raise Failed(f"RuntimeError: it began again instead of resuming from step {first}")
            early = int(resumed[1]) == last  # it was too quick to be killed
            row.remarks.append("not killed: it had ended" if early else f"killed, resumed from step {resumed[1]}")
        row.figures = last_json(self.call(row, place.figures(run)))
        for words in [place.export(run, last), *place.evaluate(run, last)]:
            printed = self.call(row, words)
        row.remarks.append(printed.strip().split("\n")[-1])
        farthest = row.figures["largest_distance"]
        if farthest is not None and farthest > FARTHEST:
            raise Failed(f"RuntimeError: sampler and trainer are {farthest:.2g} apart: weights do not reach vLLM")

    def steps(self, run: Run) -> int:
        """Steps that the trainer printed so far, over all attempts."""
        log, framework = self.place.work(run) / "train.log", adapter.load(run.framework)
        lines = log.read_text(errors="replace").split("\n")[:-1] if log.is_file() else []
        return sum(framework.printed(line) is not None for line in lines)

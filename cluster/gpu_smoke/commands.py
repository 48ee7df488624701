"""The project's own commands behind a row, as the workflow gives them, with the device and the interpreter chosen."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from contracts.run_file import Run
from contracts.seeds import run_id
from envs import build
from recipes.runs import load_run
from system.errors import ROOT

RUN_FILES = Path(__file__).resolve().parent
HERE, LOCKED = "here", "locked"
Words = list[str | Path]


def runs(scale: str) -> list[Run]:
    """The trainings, the quickest first."""
    found = [load_run(str(file), scale) for file in RUN_FILES.glob("*.yaml")]
    return sorted(found, key=lambda run: (run.hardware["expected_hours"], run.name))


def row_of(run: Run) -> str:
    """The name of a training's row."""
    return run.file.stem


def servers() -> set[str]:
    """The rows whose vLLM is a server with GPUs of its own."""
    return {row_of(run) for run in runs("full") if run.stages[0].rollout.get("engine") == "vllm-server"}


@dataclass(frozen=True)
class Place:
    """Where the commands run, and what they write to."""

    folder: Path
    device: str  # cuda or cpu
    interpreter: str  # HERE for this one, LOCKED for those of the locked environments

    @property
    def scale(self) -> str:
        """Whose values the device takes: a run at demo scale is without GPUs."""
        return "full" if self.device == "cuda" else "demo"

    def python(self, environment: str) -> Path:
        """The interpreter of an environment."""
        if self.interpreter == HERE:
            return Path(sys.executable)
        return build.python(environment, "cpu" if environment == "base" else self.device)

    def model(self, run: Run) -> Path:
        """Folder of the model that a run starts from."""
        return self.folder / "models" / run.model

    def problems(self, kind: str, name: str) -> Path:
        """The table of a training set or a benchmark."""
        return self.folder / "data" / kind / f"{name}.parquet"

    def work(self, run: Run) -> Path:
        """Folder of a training's native files."""
        return self.folder / "work" / row_of(run)

    def results(self, run: Run) -> Path:
        """Folder of what a training and its evaluation gave."""
        return self.folder / "runs" / row_of(run)

    def make_model(self, run: Run) -> Words:
        """Make the model, which needs torch and transformers alone."""
        return [self.python("eval"), "-m", "recipes.models", run.model, "--output", self.model(run)]

    def make_problems(self, kind: str, name: str) -> Words:
        """Make the table of a training set or a benchmark."""
        return [self.python("base"), "-m", "tasks.load_problems", name, "--output", self.problems(kind, name)]

    def train(self, run: Run) -> Words:
        """Train to the end, from the newest checkpoint."""
        tables: Words = ["--problems", self.problems("train", run.stages[0].dataset)]
        tables += ["--output", self.results(run) / "training_log.parquet"]
        tables += ["--rollouts", self.results(run) / "rollouts.parquet"]
        return [*self._frameworks(run, "train"), *tables]

    def export(self, run: Run, step: int) -> Words:
        """Write a checkpoint in Hugging Face format."""
        return [*self._frameworks(run, "export"), "--step", str(step), "--output", self.checkpoint(run, step)]

    def checkpoint(self, run: Run, step: int) -> Path:
        """Folder of an exported checkpoint; step 0 is the model that training starts from."""
        return self.results(run) / "checkpoints" / f"step-{step}" if step else self.model(run)

    def figures(self, run: Run) -> Words:
        """Print what the training's log says, as JSON."""
        words: Words = [self.python(run.framework), "-m", "cluster.gpu_smoke.figures", "--run", run.file]
        log = self.results(run) / "training_log.parquet"
        return [*words, "--scale", self.scale, "--work", self.work(run), "--log", log]

    def look(self) -> Words:
        """Print what the device is and whether it computes in bfloat16, as JSON."""
        return [self.python("eval"), "-m", "cluster.gpu_smoke.device", self.device]

    def evaluate(self, run: Run, step: int) -> list[Words]:
        """Generate, grade and score with the run's protocol.

        Args:
            run: whose evaluation.
            step: of its checkpoint.
        """
        folder, data, asked = self.results(run), self.folder / "data" / "benchmarks", run.evaluation
        generate: Words = [self.python("eval"), "-m", "eval.generate", "--run", run_id(run.name, 0)]
        generate += ["--checkpoint", f"{step}={self.checkpoint(run, step)}", "--benchmark", *asked["benchmarks"]]
        generate += ["--protocol", asked["protocol"], "--seed", "0", "--data", data, "--device", self.device]
        for key, value in asked.get("override", {}).items():
            generate += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        generate += ["--work", folder / "unfinished", "--output", folder / "samples"]
        grade: Words = [self.python("eval"), "-m", "eval.grade", "--samples", folder / "samples", "--data", data]
        score: Words = [self.python("base"), "-m", "eval.score", "--graded", folder / "graded", "--problems", data]
        return [
            generate,
            [*grade, "--output", folder / "graded"],
            [*score, "--output", folder / "scores.parquet"],
        ]

    def build(self, environment: str) -> Words:
        """Build a locked environment."""
        return [sys.executable, ROOT / "envs" / "build.py", environment, "--device", self.device]

    def _frameworks(self, run: Run, verb: str) -> Words:
        words: Words = [self.python(run.framework), "-m", "frameworks", verb, "--run", run.file, "--scale", self.scale]
        return [*words, "--seed", "0", "--model", self.model(run), "--work", self.work(run)]

"""The project in miniature: a copy with fewer steps, in which the real workflow runs in two minutes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from contracts.run_file import ROOT
from recipes.runs import run_names
from tests.forked_command import run_snakemake
from tests.waiting import WORKFLOW_LIMIT

RUN = "openr1/qwen2.5-math-7b"
STEPS, CHECKPOINTS = 6, [3, 6]
PARTS = (
    "Snakefile",
    "analysis",
    "cluster",
    "config",
    "contracts",
    "envs",
    "eval",
    "frameworks",
    "grading",
    "profiles",
    "recipes",
    "results/reference",
    "studies",
    "system",
    "tasks",
    "translate",
    "workflows",
)


def jobs_started(output: str, rule: str) -> int:
    """How many jobs of a rule were started, as the lines say that are printed without a terminal."""
    return len(re.findall(rf"^\d\d:\d\d:\d\d {rule}\b[^:\n]*: (?:started|submitted)$", output, re.MULTILINE))


def edit(file: Path, **changes: Any) -> None:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    for key, value in changes.items():
        at = content
        *path, last = key.split("__")
        for word in path:
            at = at[word]
        at[last] = value
    file.write_text(yaml.safe_dump(content), encoding="utf-8")


def copy_sources(folder: Path) -> Path:
    """A copy of the project's sources as they are."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)
    return folder


def copy(folder: Path) -> Path:
    """A copy of the project with one short run and a base model that is hardly trained; environments are shared."""
    copy_sources(folder)
    (folder / ".envs").symlink_to(ROOT / ".envs")
    for name in run_names():
        if name != RUN:
            (folder / "recipes" / f"{name}.yaml").unlink()
    edit(folder / "config" / "config.yaml", reproduce=[RUN])
    edit(folder / "recipes" / "demo_model.yaml", training__warmup_steps=10, seed=int(os.environ.get("TEST_SEED", "0")))
    edit(folder / "tasks" / "arithmetic" / "task.yaml", demo__steps=150, datasets__arithmetic__rows=200)
    edit(
        folder / "recipes" / f"{RUN}.yaml",
        demo__steps=STEPS,
        demo__checkpoints=CHECKPOINTS,
        demo__batch={"prompts_per_update": 4, "samples_per_prompt": 8, "samples_per_device": 32},
        demo__rollout__max_response_tokens=40,
        demo__evaluation__override={"prompt": "boxed", "max_tokens": 40, "repeats": 2},
    )
    for file in (folder / "eval" / "benchmarks").glob("arithmetic_*.yaml"):
        file.write_text(file.read_text(encoding="utf-8").replace("rows: 150", "rows: 12"), encoding="utf-8")
    return folder


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`snakemake` with these words in the copy, in a process group of its own."""
    return subprocess.Popen(
        ["snakemake", *arguments],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def snakemake(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and output of `snakemake` in the copy, in a fork of this process.

    What starts trainings or vLLM is for `snakemake_process`: its jobs share imports by the Snakemake above them.
    """
    done = run_snakemake(*arguments, cwd=folder, one_stream=True)
    return done.returncode, done.stdout


def snakemake_process(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and output of `snakemake` with these words in the copy."""
    process = start(folder, *arguments)
    output, _ = process.communicate(timeout=WORKFLOW_LIMIT)
    return process.returncode, output

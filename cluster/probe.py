"""One short job that tries what cannot be asked: does a node see this folder, run this Python, get the environment?"""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import slurm

WAIT_SECONDS = 120.0
TOKEN = ".preflight"
FLAG = "CROSSZERO_PREFLIGHT"
UNSEEN, NO_PYTHON, NOT_EXPORTED = 41, 42, 43  # exit statuses of the short job
OPTIONS = {
    "slurm_account": "--account", "slurm_partition": "--partition", "qos": "--qos", "constraint": "--constraint",
    "runtime": "--time", "mem_mb": "--mem", "nodes": "--nodes", "tasks": "--ntasks", "cpus_per_task": "--cpus-per-task",
    "gres": "--gres",
}  # fmt: skip


def options(asked: Mapping[str, int | str | None]) -> list[str]:
    """sbatch's options for a job's resources, as Snakemake's executor gives them."""
    words = [f"{OPTIONS[key]}={value}" for key, value in asked.items() if key in OPTIONS and value is not None]
    return words + shlex.split(str(asked.get("slurm_extra") or ""))


def run(words: Sequence[str], folder: Path, python: Path, wait_seconds: float = WAIT_SECONDS) -> tuple[bool, str]:
    """Submit the job and wait for it.

    Returns:
        Whether jobs cannot work, and a sentence that says why; an empty one where everything is well.
    """
    word, name = secrets.token_hex(8), f"preflight-{secrets.token_hex(4)}"
    token = folder / TOKEN
    token.write_text(word)
    script = "\n".join(
        [
            "#!/bin/sh",
            f'[ "$(cat {shlex.quote(str(token))} 2>/dev/null)" = {word} ] || exit {UNSEEN}',
            f"{shlex.quote(str(python))} -c '' || exit {NO_PYTHON}",
            f'[ "${FLAG}" = {word} ] || exit {NOT_EXPORTED}',
        ]
    )
    command = [
        "sbatch",
        "--wait",
        "--parsable",
        f"--job-name={name}",
        "--export=ALL",
        "--chdir=/",
        "--output=/dev/null",
    ]
    job = subprocess.Popen(
        [*command, *words], env={**os.environ, FLAG: word}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        _, error = job.communicate(script, timeout=wait_seconds)
    except subprocess.TimeoutExpired:
        slurm.run(["scancel", "--name", name])
        job.kill()
        job.communicate()
        return False, (
            f"no node was free for a short job within {wait_seconds:.0f} s, so whether nodes see {folder} and run "
            f"{python} was not tried"
        )
    finally:
        token.unlink(missing_ok=True)
    return explained(job.returncode, error, folder, python)


def explained(status: int, error: str, folder: Path, python: Path) -> tuple[bool, str]:
    """What the short job's exit status means."""
    if status == 0:
        return False, ""
    if status == UNSEEN:
        return True, f"a node does not see {folder}: put the project on a file system that all nodes share"
    if status == NO_PYTHON:
        return True, (
            f"a node cannot run {python}: the Python that it was made with is not there; make the environments with "
            "one that all nodes have, such as a module's, or on the shared file system"
        )
    if status == NOT_EXPORTED:
        return False, (
            "jobs start with an empty environment here (--export=NONE is forced on sbatch): what they need from "
            "modules belongs into `modules` in profiles/slurm/cluster.yaml; variables of this shell do not reach them"
        )
    return True, f"a short job failed with status {status}: {error.strip().splitlines()[-1] if error.strip() else '?'}"

"""One short job that checks on a node what Slurm does not report: folder, Python environment and sandbox."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import slurm
from system.errors import ROOT
from tasks.sandbox import NOT_WARM

WAIT_SECONDS = 120.0
TOKEN = ".preflight"
FLAG = "CROSSZERO_PREFLIGHT"
UNSEEN, NO_PYTHON, NOT_EXPORTED, NO_SANDBOX = 41, 42, 43, 44  # exit statuses of the short job
OPTIONS = {
    "slurm_account": "--account", "slurm_partition": "--partition", "qos": "--qos", "constraint": "--constraint",
    "runtime": "--time", "mem_mb": "--mem", "nodes": "--nodes", "tasks": "--ntasks", "cpus_per_task": "--cpus-per-task",
    "gres": "--gres",
}  # fmt: skip


def sbatch_options(resources: Mapping[str, int | str | None]) -> list[str]:
    """The options that Snakemake's executor passes to sbatch for these resources."""
    arguments = [f"{OPTIONS[key]}={value}" for key, value in resources.items() if key in OPTIONS and value is not None]
    return arguments + shlex.split(str(resources.get("slurm_extra") or ""))


def run_probe(
    options: Sequence[str], folder: Path, python: Path, wait_seconds: float = WAIT_SECONDS
) -> tuple[bool, str]:
    """Submit the job and wait for its end.

    Args:
        options: for sbatch.
        folder: that the node has to see.
        python: interpreter that the node has to run.
        wait_seconds: after which the job is cancelled if it has not ended.

    Returns:
        Whether jobs would fail, and a sentence about the problem, or about the sandbox if there is none.
    """
    word, name = secrets.token_hex(8), f"preflight-{secrets.token_hex(4)}"
    token = folder / TOKEN
    token.write_text(word)
    script = f"""#!/bin/sh
[ "$(cat {shlex.quote(str(token))} 2>/dev/null)" = {word} ] || exit {UNSEEN}
{shlex.quote(str(python))} -c '' || exit {NO_PYTHON}
[ "${FLAG}" = {word} ] || exit {NOT_EXPORTED}
cd {shlex.quote(str(ROOT))} && {shlex.quote(str(python))} -m tasks.sandbox
case $? in 0) exit 0;; {NOT_WARM}) exit {NOT_WARM};; *) exit {NO_SANDBOX};; esac
"""
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
        [*command, *options], env={**os.environ, FLAG: word}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        _, error = job.communicate(script, timeout=wait_seconds)
    except subprocess.TimeoutExpired:
        slurm.run(["scancel", "--name", name])
        job.kill()
        job.communicate()
        return False, (
            f"no node was free for a short job within {wait_seconds:.0f} s, so it was not tested whether nodes see "
            f"{folder} and run {python}"
        )
    finally:
        token.unlink(missing_ok=True)
    return explain_status(job.returncode, error, folder, python)


def explain_status(status: int, error: str, folder: Path, python: Path) -> tuple[bool, str]:
    """What the exit status of the short job means.

    Args:
        status: of the job.
        error: stderr of sbatch.
        folder: that the node had to see.
        python: interpreter that the node had to run.

    Returns:
        As `run`.
    """
    if status == 0:
        return False, "a node starts sandboxes for answers that are programs, and keeps them warm"
    if status == UNSEEN:
        return True, f"a node does not see {folder}: move the project to a file system that all nodes share"
    if status == NO_PYTHON:
        return True, (
            f"a node cannot run {python}, because the Python that built it is missing there: rebuild the environments "
            "with a Python that all nodes have, such as a module's or one on the shared file system"
        )
    if status == NOT_EXPORTED:
        return False, (
            "jobs start with an empty environment here (sbatch is forced to --export=NONE), so variables of this shell "
            "do not reach them: list the modules that they need under modules in profiles/slurm/cluster.yaml"
        )
    if status == NO_SANDBOX:
        return False, (
            "a node starts no sandbox, so runs and benchmarks whose answers are programs are refused there: have "
            "bubblewrap (bwrap) installed and unprivileged user namespaces allowed, if you want those"
        )
    if status == NOT_WARM:
        return False, (
            "a node starts a sandbox for each answer that is a program, but keeps none warm, which takes longer "
            "(docs/explanation/sandbox.md): have user namespaces allowed inside bubblewrap's, too, if you want "
            "those answers fast"
        )
    return True, f"a short job failed: {slurm.failure_reason(status, error.strip())}"

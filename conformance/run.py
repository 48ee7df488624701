"""Puts cases through every installed framework: one process for each."""

from __future__ import annotations

import os
import pickle
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from contracts.errors import UserError
from contracts.run_file import ROOT, framework_names
from envs.build import python

# Nothing is fetched, and the functions are the same with one thread.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONPATH": str(ROOT),
}


def installed() -> list[str]:
    """The frameworks whose environments are built."""
    return [name for name in framework_names() if python(name).exists()]


class Outcome(NamedTuple):
    """Of one framework's process."""

    results: dict[str, Any]  # by mutant ("" for none) and formula
    cpu_seconds: float


def run(framework: str, given: Mapping[str, Any], *words: str) -> Outcome:
    """What a framework computes of the cases.

    Args:
        framework: whose environment runs.
        given: `formulas`, `batches` and `cases`, as conformance.cases makes them.
        words: more of the command line of frameworks.conformance.

    Raises:
        UserError: it failed; with the end of what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "cases.pickle"), Path(folder, "results.pickle")
        source.write_bytes(pickle.dumps(dict(given), protocol=4))
        command: Sequence[str | Path] = [
            python(framework), "-m", "frameworks.conformance", "--framework", framework, "--input", source,
            "--output", target, *words,
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UserError(f"{framework}'s own functions failed on the cases: {done.stderr[-3000:].strip()}")
        return Outcome(*pickle.loads(target.read_bytes()))

"""Puts cases through every installed framework, and through polgrad: one process for each."""

from __future__ import annotations

import os
import pickle
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conformance import cases, rounding
from contracts.run_file import ROOT
from envs.build import python
from frameworks.adapter import frameworks_with
from system.errors import UserError
from system.yaml_files import read_yaml

MUTANTS = Path(__file__).parent / "mutants"
INDEPENDENT = "polgrad"  # a library that trains nothing; not a framework
# Nothing is fetched, and the functions are the same with one thread.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONPATH": str(ROOT),
}


def installed_frameworks() -> list[str]:
    """The frameworks whose environments are built; INDEPENDENT is last."""
    return [name for name in (*frameworks_with("conformance"), INDEPENDENT) if python(name).exists()]


class Outcome(NamedTuple):
    """Of one framework's process."""

    results: dict[str, Any]  # by mutant ("" for none) and formula
    cpu_seconds: float


def input_of_frameworks(count: int, seed: int = 0) -> dict[str, Any]:
    """What frameworks.conformance takes: formulas, batches, at least `count` cases, groups of equal rewards, and the
    errors to plant in each framework (mutants/<framework>.yaml).

    Args:
        count: of cases.
        seed: of their batches.

    Raises:
        UserError: the count is below 1.
    """
    batches, pairs = cases.make_cases(count, seed)
    return {
        "formulas": cases.all_formulas(),
        "batches": batches,
        "cases": pairs,
        "float32": rounding.equal_reward_batches(),
        "mutants": {name: read_yaml(MUTANTS / f"{name}.yaml") for name in frameworks_with("conformance")},
    }


def run_cases(framework: str, inputs: Mapping[str, Any]) -> Outcome:
    """What a framework computes of the cases.

    Args:
        framework: whose environment runs.
        inputs: as `input_of_frameworks` makes them.

    Raises:
        UserError: it failed; with the end of what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "cases.pickle"), Path(folder, "results.pickle")
        source.write_bytes(pickle.dumps(dict(inputs), protocol=4))
        command: Sequence[str | Path] = [
            python(framework), "-m", "frameworks.conformance", "--framework", framework, "--input", source,
            "--output", target,
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UserError(
                f"{framework}'s own functions failed on the cases: {done.stderr[-3000:].strip()}",
                code="functions-failed",
            )
        return Outcome(*pickle.loads(target.read_bytes()))

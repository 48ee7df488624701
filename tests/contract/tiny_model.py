"""Copies of tiny models that are made once for each seed, context, environment, and texts that they learned."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from contracts.run_file import ROOT
from tests.made_once import folder_made_once
from tests.warm_python import warm_python

HERE = ROOT / "tests" / "contract"
SCRIPT, READER_SCRIPT = HERE / "make_tiny_model.py", HERE / "make_reader_model.py"
TEST_SEED = os.environ.get("TEST_SEED", "0")


def copy_model(folder: Path, seed: int = 0, context: int = 512, environment: str = "eval") -> Path:
    """Copy a model of random weights to a folder that is not there yet; see make_tiny_model.py."""
    arguments = [str(seed), str(context)]
    shared = folder_made_once(
        f"tiny-model-{environment}",
        lambda target: _run_script(environment, SCRIPT, target, *arguments),
        depends_on=[environment, *arguments, TEST_SEED],
        files=[SCRIPT, _lock_file(environment)],
    )
    return Path(shutil.copytree(shared, folder))


def copy_reader(folder: Path, texts: Sequence[str], seed: int) -> Path:
    """Copy a model that has learned texts by heart to a folder that is not there yet; see make_reader_model.py."""

    def make(target: Path) -> None:
        _run_script("eval", SCRIPT, target, str(seed))
        (target / "texts.json").write_text(json.dumps(texts))
        nats_per_token = _run_script("eval", READER_SCRIPT, target, target / "texts.json").split()[0]
        assert float(nats_per_token) < 0.1

    shared = folder_made_once(
        "tiny-reader",
        make,
        depends_on=[texts, seed, TEST_SEED],
        files=[SCRIPT, READER_SCRIPT, _lock_file("eval")],
    )
    return Path(shutil.copytree(shared, folder))


def _lock_file(environment: str) -> Path:
    return ROOT / "envs" / environment / "cpu.lock"


def _run_script(environment: str, *command: str | Path) -> str:
    done = subprocess.run(
        [warm_python(environment), *command], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout

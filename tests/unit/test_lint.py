"""`make lint` in the suite, so that it runs beside the other tests and not before them."""

from __future__ import annotations

import os
import subprocess

import pytest

from contracts.run_file import ROOT


@pytest.mark.slow
def test_formatting_types_and_rules_are_clean() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", "lint"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

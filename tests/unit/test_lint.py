"""`make lint` and `make docs` in the suite, so that they run beside the other tests and not before them."""

from __future__ import annotations

import os
import subprocess

import pytest

from contracts.run_file import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("target", ["lint", "docs"])
def test_it_is_clean(target: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", target], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

"""The defaults that run files rely on are those of the installed releases, which have no unknown settings."""

from __future__ import annotations

import json
import subprocess

import pytest

from contracts.run_file import ROOT, framework_names
from envs.build import python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

SCRIPT = """
import contextlib, json, sys
from frameworks import adapter, release_defaults
with contextlib.redirect_stdout(sys.stderr):
    released = adapter.load(sys.argv[1]).released()
    found = [[str(drift) for drift in release_defaults.drifts(sys.argv[1], released)],
             release_defaults.unknown(sys.argv[1], released)]
print(json.dumps(found))
"""


@pytest.mark.parametrize("framework", framework_names())
def test_the_installed_release_has_the_defaults_that_runs_rely_on(framework: str) -> None:
    done = subprocess.run(
        [python(framework), "-c", SCRIPT, framework], capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    drifts, unknown = json.loads(done.stdout.strip().split("\n")[-1])
    assert not drifts, f"frameworks/{framework}/defaults.yaml: " + "; ".join(drifts)
    assert not unknown, f"new settings of {framework}, to be added to its defaults.yaml: {', '.join(unknown)}"

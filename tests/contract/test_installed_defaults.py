"""The defaults that run files and the translator rely on are those of the installed releases.

These have no unknown settings, and their own parsers accept what is translated from the others.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from contracts.run_file import ROOT
from frameworks.adapter import frameworks_with
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

SCRIPT = """
import contextlib, json, sys
from frameworks import adapter, command_parser, release_defaults
from translate import translation
from translate.__main__ import main as translate
with contextlib.redirect_stdout(sys.stderr):
    _, name, *files = sys.argv
    released = adapter.load(name).released_defaults()
    differences = [[str(drift) for drift in release_defaults.drifts(name, released)],
                   release_defaults.unknown_settings(name, released),
                   translation.outdated_entries(command_parser.load(name), released)]
    for file in files:
        sys.argv = ["translate", file, "--from", file.split("/")[-1].split(".")[0], "--to", name, "--check"]
        translate()
print(json.dumps(differences))
"""
COMMANDS = ROOT / "tests" / "unit" / "cases" / "translate"


FRAMEWORKS = frameworks_with("command_parser")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_installed_release_has_the_defaults_that_runs_rely_on(framework: str) -> None:
    others = [str(COMMANDS / f"{name}.sh") for name in FRAMEWORKS if name != framework]
    done = subprocess.run(
        [warm_python(framework), "-c", SCRIPT, framework, *others], capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    drifts, unknown, untrue = json.loads(done.stdout.strip().split("\n")[-1])
    assert not drifts, f"frameworks/{framework}/defaults.yaml: " + "; ".join(drifts)
    assert not untrue, f"frameworks/{framework}/command_parser.yaml: " + "; ".join(untrue)
    assert done.stderr.count("Accepted by the parser of") == len(others)
    assert not unknown, f"new settings of {framework}, to be added to its defaults.yaml: {', '.join(unknown)}"

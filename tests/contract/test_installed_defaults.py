"""The defaults that run files and the translator rely on are those of the installed releases.

These have no unknown settings, and their own parsers accept what is translated from the others.
"""

from __future__ import annotations

import itertools
import json
import subprocess

import pytest

from contracts.run_file import ROOT
from envs import build
from frameworks import command_parser
from frameworks.adapter import frameworks_with
from system.yaml_files import read_yaml
from tests.user_errors import refused
from tests.warm_python import warm_python
from translate.__main__ import main as translate
from translate.parser_check import check_accepted

pytestmark = [pytest.mark.contract, pytest.mark.slow]

COMMANDS = ROOT / "tests" / "unit" / "cases" / "translate"


FRAMEWORKS = frameworks_with("command_parser")


def stored_types(framework: str) -> dict[str, str] | None:
    file = command_parser.FOLDER / framework / "released_types.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_installed_release_has_the_defaults_that_runs_rely_on(framework: str) -> None:
    done = subprocess.run(
        [warm_python(framework), "-m", "translate.installed_release", framework], capture_output=True, text=True,
        cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    released = json.loads(done.stdout.strip().split("\n")[-1])
    drifts, unknown, untrue = ([str(one) for one in released[name]] for name in ("drifts", "unknown", "outdated"))
    objectives, engines = released["objectives"], released["engines"]
    changed = [name for part in released["settings"].values() for name in part]
    assert not drifts, f"frameworks/{framework}/defaults.yaml: " + "; ".join(drifts)
    assert not untrue, f"frameworks/{framework}/command_parser.yaml: " + "; ".join(untrue)
    parser, formulas = command_parser.load(framework), read_yaml(ROOT / "frameworks" / "objectives.yaml")
    assert (
        not changed and engines == getattr(parser, "engines", None) and released["types"] == stored_types(framework)
    ), f"python -m frameworks.release_defaults {framework} is to be run"
    for kind, named in (("estimators", parser.estimators), ("losses", parser.losses)):
        assert set(objectives[kind]) == set(named), f"{framework}'s {kind} are {objectives[kind]}"
        assert set(named.values()) <= formulas[kind].keys()
    assert not unknown, f"new settings of {framework}, to be added to its defaults.yaml: {', '.join(unknown)}"


@pytest.mark.parametrize(
    ("source", "target"), [pair for pair in itertools.product(FRAMEWORKS, repeat=2) if pair != ("verl", "verl")]
)
def test_the_installed_parser_accepts_what_is_translated(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "python", warm_python)
    script = COMMANDS / f"{source}.sh"
    monkeypatch.setattr("sys.argv", ["translate", str(script), "--from", source, "--to", target, "--check"])
    translate()
    assert "# The result is accepted by the parser of" in capsys.readouterr().out


def test_what_the_installed_parser_refuses_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "python", warm_python)
    with refused("refused-by-target", framework="trl"):
        check_accepted("trl", {"algorithm": "grpo"}, {"num_generations": ("none", "batch.samples_per_prompt")})

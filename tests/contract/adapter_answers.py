"""What an adapter's check says of run files, asked in its framework's own environment."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from contracts.run_file import ROOT
from tests.warm_python import warm_python

SCRIPT = """
import json, sys, yaml
from pathlib import Path
from system.errors import UserError
from contracts.run_file import parse_run
from frameworks import adapter
from recipes.runs import check_training
check = adapter.load(sys.argv[1]).check
for file, scale in json.load(sys.stdin):
    file = Path(file)
    try:
        run = parse_run(yaml.safe_load(file.read_text()), "test/" + file.stem, file, scale)
        check_training(run)
        check(run)
        answer = ["accepted", ""]
    except UserError as error:
        assert file.name in str(error), error
        answer = [error.code, error.facts.get("key", "")]
    print(json.dumps([file.stem, scale, *answer]))
"""


ACCEPTED, SCALES = ("accepted", ""), ("demo", "full")


def answers(
    framework: str, files: Iterable[Path], scales: Mapping[str, Sequence[str]] | None = None
) -> dict[tuple[str, str], tuple[str, str]]:
    """For each file at each scale ACCEPTED, or the error's code and the run file's key, if it is about one.

    One process asks about all, because importing a framework takes seconds.

    Args:
        framework: whose environment answers.
        files: run files.
        scales: by name of a file, the scales to ask about, where these are not both.
    """
    cases = [[str(file), scale] for file in files for scale in (scales or {}).get(file.stem, SCALES)]
    done = subprocess.run(
        [warm_python(framework), "-c", SCRIPT, framework], input=json.dumps(cases), capture_output=True,
        text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {(name, scale): (code, key) for name, scale, code, key in rows}


def changed(folder: Path, name: str, content: dict[str, Any], *path_and_value: Any) -> Path:
    """A run file of this content with one value set, the key given as a path."""
    content = copy.deepcopy(content)
    *path, key, value = path_and_value
    at = content
    for word in path:
        at = at.setdefault(word, {})
    at[key] = value
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file

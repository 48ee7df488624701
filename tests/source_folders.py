"""The folders of the project's own code: those that are type-checked."""

import tomllib

from contracts.run_file import ROOT

FOLDERS = tuple(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["files"])

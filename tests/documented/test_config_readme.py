"""config/README.md says how many runs are configured."""

from __future__ import annotations

from contracts.run_file import ROOT
from system.yaml_files import read_yaml


def test_the_default_runs_are_as_many_as_the_readme_says() -> None:
    text = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    runs = read_yaml(ROOT / "config" / "config.yaml")["reproduce"]["demo"]
    assert len({run.partition("/")[0] for run in runs}) == len(runs) == 4 and "one run of each of four recipes" in text

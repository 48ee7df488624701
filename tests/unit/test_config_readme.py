"""config/README.md names every key of the configuration, and says how many runs are configured."""

from __future__ import annotations

import re

from contracts.run_file import ROOT, SCHEMAS
from system.yaml_files import read_yaml


def test_every_key_is_in_the_readme_and_no_other() -> None:
    text = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", text, re.MULTILINE)
    documented = {key for cell in cells for key in re.findall(r"`([a-z_]+)`", cell)}
    assert documented == set(read_yaml(SCHEMAS / "config.schema.yaml")["properties"])


def test_the_default_runs_are_as_many_as_the_readme_says() -> None:
    text = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    runs = read_yaml(ROOT / "config" / "config.yaml")["reproduce"]
    assert len({run.partition("/")[0] for run in runs}) == len(runs) == 4 and "one run of each of four recipes" in text

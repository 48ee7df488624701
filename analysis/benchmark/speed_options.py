"""What a framework's own guide recommends for its speed, and what a run has of it: frameworks/*/speed_options.yaml."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from frameworks import adapter
from recipes.runs import load_run
from system.yaml_files import read_yaml


def table(names: Sequence[str], scale: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """One row per option of each framework, what the first of its runs has of it, and why; and each guide's address.

    Args:
        names: of runs, or variants of them.
        scale: whose values count.
    """
    rows, guides = [], dict[str, str]()
    for name in names:
        run = load_run(name, scale)
        file = adapter.FOLDER / run.framework / "speed_options.yaml"
        if run.framework in guides or not file.is_file():
            continue
        guide = read_yaml(file)
        guides[run.framework] = guide["source"]
        stated = adapter.load(run.framework).stated_settings(run, run.stages[0])
        released = json.loads(file.with_name("released_settings.json").read_text(encoding="utf-8"))
        for option, entry in guide["options"].items():
            here = _text(stated[option]) if option in stated else f"{_text(released[option])} (as released)"
            recommended = _text(entry["recommended"])
            rows.append([run.framework, option, recommended, here, entry["why"]])
    return pd.DataFrame(rows, columns=["framework", "option", "recommended", "here", "why"]), guides


def _text(value: Any) -> str:
    switch = {True: "on", False: "off", None: "unset"}
    return switch[value] if isinstance(value, bool | None) else str(value)

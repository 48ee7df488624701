"""What published reward code pays for completions, beside what ours pays: `snakemake fidelity` counts both by form.

The published values are data (results/reference/published_rewards.jsonl), with their sources and the reasons of what
differs in published_rewards.yaml.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import pandas as pd

from analysis.pages.table_texts import Table
from analysis.reference import FIDELITY
from recipes import rewards
from recipes.runs import load_run
from system import json_lines
from system.errors import UserError
from system.yaml_files import read_yaml
from tasks import dataset_specs
from tasks.problems import Problem

VALUES, SOURCES = FIDELITY.with_name("published_rewards.jsonl"), FIDELITY.with_name("published_rewards.yaml")


class Row(NamedTuple):
    """The completions of one form, judged by a reward of a run and by the published code."""

    run: str
    form: str
    completions: int
    same: int
    ours_higher: int
    ours_lower: int
    why: str
    source: str


def rows(name: str, runs: Collection[str]) -> list[Row]:
    """A row for each form of completion of a published reward's runs.

    Args:
        name: of the published reward in published_rewards.yaml.
        runs: others are left out.

    Raises:
        UserError: a value differs, and its form has no reason.
    """
    stated = read_yaml(SOURCES)[name]
    items = [item for item in json_lines.read(VALUES) if name in item["published"]]
    return [row for run in stated["runs"] if run in runs for row in _rows_of_run(run, name, items, stated)]


def _rows_of_run(run_name: str, name: str, items: list[dict[str, Any]], stated: Mapping[str, Any]) -> list[Row]:
    run = load_run(run_name, "full")
    task = str(dataset_specs.find(run.stages[0].dataset).spec["task"])
    index = stated.get("reward", 0)
    ((function, weight),) = rewards.load(run.rewards[index : index + 1], rewards.extraction_of(run))
    problems = [Problem("", task, "", item["gold"], item.get("meta", {})) for item in items]
    paid = function([item["text"] for item in items], problems)
    differences: dict[str, list[float]] = {}
    for item, reward in zip(items, paid, strict=True):
        differences.setdefault(item["form"], []).append(
            round(weight * (reward.value or 0.0) - item["published"][name], 6)
        )
    table = []
    for form, values in differences.items():
        why = stated["why"].get(form, "")
        higher, lower = sum(value > 0 for value in values), sum(value < 0 for value in values)
        if (higher or lower) and not why:
            raise UserError(
                f"{run_name}: {higher + lower} of {len(values)} completions of the form '{form}' are paid otherwise "
                f"than published: correct the reward, or give the reason under {name}.why in {SOURCES.name}",
                code="unexplained-deviation", run=run_name, form=form,
            )  # fmt: skip
        same = len(values) - higher - lower
        table.append(Row(run_name, form, len(values), same, higher, lower, why, stated["source"]))
    return table


def table(runs: Collection[str]) -> Table:
    """The published rewards of some runs as one table."""
    data = pd.DataFrame([row for name in read_yaml(SOURCES) for row in rows(name, runs)], columns=list(Row._fields))
    return Table("fidelity_rewards", data.astype(str), data.astype(str))

"""Every value of a run at full scale beside the published one, with where that is from: `snakemake fidelity`.

    python -m analysis.fidelity --output FOLDER [--run simplerl/qwen2.5-math-7b …]

The published values and their sources are in results/reference/fidelity.yaml. A value without a source is an error.
Where the cited script is in script_settings.yaml, each of its settings has a row, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis import reward_fidelity, script_fidelity
from analysis.pages import table_texts
from analysis.pages.table_texts import Table
from analysis.reference import FIDELITY as FILE
from analysis.script_fidelity import DEVIATION, SAME
from contracts.run_file import Run, Stage
from grading.extraction import BOX
from recipes import models, rewards
from recipes.runs import load_run, run_names
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.yaml_files import read_yaml

OURS = "ours"
BOX_NAME = "box"  # where the rewards and the evaluation look first, if not in a tag
GROUPS = ("batch", "rollout", "optimizer", "objective", "lora", "native")
NOT_STATED = "not stated by the source"


class Entry(NamedTuple):
    """A published value, in this project's units and words."""

    published: Any
    source: str  # a name in `sources`
    location: Any  # line, section, or the name that is searched for
    why: str = ""


class Row(NamedTuple):
    """One line of the table."""

    run: str
    key: str
    here: Any
    published: Any
    source: str
    verdict: str
    why: str


def _stage_values(stage: Stage) -> dict[str, Any]:
    groups = {f"{group}.{key}": value for group in GROUPS for key, value in getattr(stage, group).items()}
    levels = {"levels": list(stage.levels)} if stage.levels else {}
    return {"dataset": stage.dataset, **levels, "steps": stage.steps, "checkpoints": list(stage.checkpoints), **groups}


def run_values(run: Run) -> dict[str, Any]:
    """What decides a run's training and scores, by the key of its run file; later stages where they differ."""
    first, *later = map(_stage_values, run.stages)
    evaluation = run.evaluation
    by_key = {
        "algorithm": run.algorithm,
        "prompt": run.prompt,
        "answer": BOX_NAME if (rule := rewards.extraction_of(run)) == BOX else rule,
        **{f"chat_template_kwargs.{key}": value for key, value in run.chat_template_kwargs.items()},
        **_reward_values(run),
        "model": run.model,
        "model.revision": models.find(run.model).get("revision"),
        **first,
        "hardware.nodes": run.hardware.get("nodes", 1),
        "hardware.gpus": run.hardware["gpus"],
        "hardware.sharding": run.hardware.get("sharding", "none"),
        "evaluation.protocol": evaluation["protocol"],
        "evaluation.benchmarks": list(evaluation["benchmarks"]),
        **{f"evaluation.override.{key}": value for key, value in evaluation.get("override", {}).items()},
    }
    for number, stage in enumerate(later, start=2):
        by_key |= {f"stage-{number}.{key}": value for key, value in stage.items() if value != first.get(key)}
    return by_key


def _reward_values(run: Run) -> dict[str, Any]:
    if run.control:
        return {"control": run.control}
    by_key: dict[str, Any] = {}
    for reward in run.rewards:
        name = f"rewards.{reward['function'].rpartition('.')[2]}"
        arguments = {f"{name}.{key}": value for key, value in reward.get("arguments", {}).items()}
        by_key |= {name: reward["weight"], **arguments}
    return by_key


@cache
def _registered() -> dict[str, Any]:
    return read_yaml(FILE)


def is_registered(name: str) -> bool:
    """Whether published values are known for a run, `<recipe>/<run>`."""
    return name in _registered()["runs"]


def entries(run: Run) -> dict[str, Entry]:
    """The published values of a run by key, and of the run that it extends where it states none of its own."""
    base, known = read_yaml(run.file).get("extends"), _registered()["runs"]
    inherited = known.get(f"{run.name.partition('/')[0]}/{base}", {}) if base else {}
    by_key = {**inherited, **known.get(run.name, {})}
    for key, entry in by_key.items():
        if not 3 <= len(entry) <= 4:
            raise UserError(
                f"results/reference/{FILE.name}: {run.name}, {key} should have a published value, a source, a line and "
                f"perhaps a reason, and has {len(entry)} items; put a text with commas in quotes",
                code="malformed-entry", run=run.name, key=key,
            )  # fmt: skip
    if run.control:
        by_key["control"] = [None, OURS, "", f"a control of {run.control_of}, beside which its gain is read"]
    return {key: Entry(*entry) for key, entry in by_key.items()}


def rows(run: Run, published: Mapping[str, Entry] | None = None) -> list[Row]:
    """A row for each value of the run, and for each deviation that its file lists.

    Args:
        run: at full scale.
        published: by default `entries(run)`; the key `*` stands for all that have no entry.

    Raises:
        UserError: a value has no source, an unknown one, or differs from the published one without a reason.
    """
    table_rows, known = [], entries(run) if published is None else published
    for key, here in run_values(run).items():
        entry = known.get(key, known.get("*"))
        if entry is None:
            raise UserError(
                f"{run.name}: full.{key} ({here}) has no source; add the published value, its source and line under "
                f"{run.name} in results/reference/{FILE.name}, or `ours` with the reason",
                code="missing-source", run=run.name, key=f"full.{key}",
            )  # fmt: skip
        table_rows.append(_row(run, key, here, entry))
    for name in script_fidelity.names_of(run) if published is None else ():
        source = _cited(Entry(None, script_fidelity.registered()[name]["source"], "settings"))
        label = " of ".join(["script", *name.split(" ")[1:]])
        table_rows += [
            Row(run.name, f"{label}: {one.key}", one.here, one.published, source, one.verdict, one.why)
            for one in script_fidelity.rows(name, run, known, run_values(run))
        ]
    no_setting = "the pinned release has no setting for it"
    return table_rows + [
        Row(run.name, one["what"], one["here"], one["published"], one["source"], DEVIATION, no_setting)
        for one in run.deviations
    ]


def _row(run: Run, key: str, here: Any, entry: Entry) -> Row:
    same = entry.source != OURS and here == entry.published
    if not same and not entry.why:
        raise UserError(
            f"{run.name}: full.{key} is {here}, published is {entry.published} ({_cited(entry)}): correct the run "
            f"file, or give the reason as the fourth item of the entry in results/reference/{FILE.name}",
            code="unexplained-deviation", run=run.name, key=f"full.{key}", here=here, published=entry.published,
        )  # fmt: skip
    verdict = SAME if same else NOT_STATED if entry.source == OURS else DEVIATION
    return Row(run.name, key, here, entry.published, _cited(entry), verdict, entry.why)


def _cited(entry: Entry) -> str:
    """Where an entry's value was read; raises UserError for a source that is not listed."""
    if entry.source == OURS:
        return OURS
    sources = _registered()["sources"]
    if entry.source not in sources:
        raise UserError(
            f"results/reference/{FILE.name}: there is no source '{entry.source}'; list it under `sources`",
            code="unknown-name", name=entry.source,
        )  # fmt: skip
    source = sources[entry.source]
    if "text" in source:
        return f"{source['text']}: {entry.location}"
    return f"{source['repo']}@{source['commit']} {source['file']}:{entry.location}"


def table(names: Iterable[str]) -> Table:
    """The rows of several runs as one table."""
    data = pd.DataFrame([row for name in names for row in rows(load_run(name, "full"))], columns=list(Row._fields))
    texts = data.astype(object).where(data.notna(), "–").astype(str)
    return Table("fidelity", data.astype(str), texts)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--run", nargs="+", default=run_names(), metavar="RECIPE/RUN", help="by default all")
    arguments = parser.parse_args()
    fidelity_table = table(arguments.run)
    table_texts.write(fidelity_table, arguments.output)
    counts = ", ".join(
        f"{number} {verdict}" for verdict, number in fidelity_table.data["verdict"].value_counts().items()
    )
    print(f"{len(fidelity_table.data)} values of {len(arguments.run)} runs: {counts}")
    print(arguments.output / f"{fidelity_table.name}.html")
    rewards_table = reward_fidelity.table(arguments.run)
    table_texts.write(rewards_table, arguments.output)
    judged = rewards_table.data[["completions", "same"]].astype(int).sum()
    if judged["completions"]:
        print(f"rewards: {judged['same']} of {judged['completions']} completions are paid as by the published code")
        print(arguments.output / f"{rewards_table.name}.html")


if __name__ == "__main__":
    run_command(main)

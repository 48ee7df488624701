"""What is written about each training set and benchmark: where it comes from, what it must contain. Nothing is loaded.

Training sets are under `datasets` in tasks/<task>/task.yaml; benchmarks are the `metadata.source` blocks of
eval/benchmarks/<name>.yaml, with the same keys and `task`. What loads and checks both is tasks/load_problems.py:

    crosszero problems NAME --output FILE [--data-mirror DIR]

task            a folder of tasks/; a training set belongs to the task in whose file it stands
rows            rows of the source, before those without a gold answer are left out; of a sampled part, its rows
sample          only part of the source: of its `source_rows` rows, one in `one_in` of each group of the column `by`; of
                these `rows`, from `seed` (tasks/row_sampling.py). `ids_sha256` is of the JSON list of their ids
problems        how many are left then, where it is known that some are left out
convert         module of the task's folder that makes a problem of a row; else tasks.row_converter does, which reads:
columns         question, answer, form (tasks/gold_answers.py), and where there are such columns id and meta; for
                questions with options also options and seed (the converter of their task)
cluster         same_beginning: questions whose first so many characters are alike are one cluster, one observation for
                every interval: they share a text or a template
content_sha256  hash over the (question, answer) pairs of `files` (tasks/problems.py)
generate        arguments of the task's generator besides `rows`; nothing is read then
files           path in the mirror folder, an address with the same bytes, and the file's own hash and size
raw_sha256      hash over columns as published, where somebody has published it
hub             Hugging Face dataset, used when no mirror is given. `revision` is a commit; null means that none is
                known: the head is loaded and its commit reported. `gated: true` where the owner grants access on
                request. Its own `columns`, `convert` and `content_sha256` replace the above. Without a content_sha256
                of its own, a hub set whose pairs differ from those of `files` is loaded, and the difference reported.

Commits were read in public projects that pin the same sets. Addresses with twelve digits of a commit have them from
the mirror's manifest; the file's hash pins the content.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from contracts.run_file import validate
from system.errors import ROOT, UserError
from system.unknown_names import unknown
from system.yaml_files import display_path, read_yaml
from tasks import task_yaml
from tasks.gold_answers import FORMS

BENCHMARKS = ROOT / "eval" / "benchmarks"


class Entry(NamedTuple):
    """One named set: its specification, and the file with it, relative to the project's folder if inside."""

    name: str
    spec: dict[str, Any]
    where: str

    def settings(self, mirrored: bool) -> dict[str, Any]:
        """What decides its rows: not the addresses of files, and where a mirror is, but that there is one (`mirrored`).

        Hub and files may hold the same set with other white space or in another order; a generated set has neither.
        """
        files = [{key: file[key] for key in file if key not in ("url", "bytes")} for file in self.spec.get("files", ())]
        return {**self.spec, "files": files, "mirrored": mirrored and "generate" not in self.spec}


def training_sets() -> list[str]:
    """The data sets that run files may train on."""
    return [entry.name for entry in _training_sets()]


def problems_in(training_set: str) -> int:
    """How many problems training is given: the rows with a gold answer, as far as the registry knows."""
    spec = find(training_set).spec
    return int(spec.get("problems", spec["rows"]))


def find(name: str, benchmarks: Path = BENCHMARKS) -> Entry:
    """The entry of that name.

    Args:
        name: of a training set or a benchmark.
        benchmarks: folder of the benchmarks' files.

    Raises:
        UserError: there is none, there are two, or it is not well formed.
    """
    known = entries(benchmarks)
    if name not in known:
        raise unknown("training set or benchmark", name, sorted(known))
    check(known[name])
    return known[name]


def entries(benchmarks: Path = BENCHMARKS) -> dict[str, Entry]:
    """All training sets and benchmarks by name, not checked; UserError if two have the same name."""
    known: dict[str, Entry] = {}
    for entry in [*_training_sets(), *_benchmarks(benchmarks)]:
        if entry.name in known:
            raise UserError(
                f"{known[entry.name].where} and {entry.where} both have a {entry.name}: rename one of them",
                code="repeated-name",
                name=entry.name,
            )
        known[entry.name] = entry
    return known


def _training_sets() -> list[Entry]:
    return [
        Entry(name, {"task": task, **spec}, display_path(task_yaml.FOLDER / task / "task.yaml"))
        for task in task_yaml.task_names()
        for name, spec in task_yaml.settings(task).get("datasets", {}).items()
    ]


def _benchmarks(folder: Path) -> list[Entry]:
    sources = {path: (read_yaml(path).get("metadata") or {}).get("source") for path in folder.glob("*.yaml")}
    return [Entry(path.stem, source, display_path(path)) for path, source in sources.items() if source is not None]


def check(entry: Entry) -> None:
    """Raise UserError, with the file, the entry and the key, for unknown or missing keys."""
    spec, where = entry.spec, f"{entry.where}, {entry.name}"
    validate(spec, "dataset", where)
    if spec["task"] not in task_yaml.task_names():
        raise unknown("task", spec["task"], task_yaml.task_names()).within(where)
    if not any(spec.get(key) for key in ("hub", "files", "generate")):
        raise UserError(
            f"{where}: one of `hub`, `files` and `generate` has to say where rows are", code="missing-source"
        )
    for columns in (spec.get("columns", {}), spec.get("hub", {}).get("columns", {})):
        if columns.get("form", "as_written") not in FORMS:
            raise unknown("form of answers", columns["form"], FORMS).within(f"{where}: columns.form")

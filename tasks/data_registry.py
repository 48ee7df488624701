"""Where each training set and benchmark comes from and what it must contain, by name.

Training sets are entries of tasks/datasets.yaml; benchmarks are the `metadata.source` blocks of
eval/benchmarks/*.yaml. Both have the same keys, explained at the head of datasets.yaml.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from contracts.errors import UserError
from tasks.gold_answers import FORMS

ROOT = Path(__file__).resolve().parent.parent
DATASETS = ROOT / "tasks" / "datasets.yaml"
BENCHMARKS = ROOT / "eval" / "benchmarks"

_KEYS = {
    "entry": {"task", "rows", "convert", "columns", "content_sha256", "raw_sha256", "hub", "files", "generate"},
    "hub": {"path", "name", "split", "revision", "columns", "convert", "content_sha256"},
    "raw_sha256": {"columns", "sha256"},
    "file": {"path", "url", "sha256", "bytes"},
    "columns": {"question", "answer", "form", "id", "meta"},
}


class Entry(NamedTuple):
    """One named set: its specification as written, and the file that it is written in."""

    name: str
    spec: dict[str, Any]
    where: str  # relative to the project's folder where it lies in it


class _Loader(yaml.SafeLoader):
    """Reads lm-eval's task files: their `!function module.name` is of no interest here and stays text."""


def _function_name(_: yaml.SafeLoader, node: yaml.Node) -> str:
    return str(node.value)


_Loader.add_constructor("!function", _function_name)


def training_sets() -> list[str]:
    """The data sets that run files may name: those to train on."""
    return list(_read(DATASETS))


def find(name: str, datasets: Path = DATASETS, benchmarks: Path = BENCHMARKS) -> Entry:
    """The entry of that name; UserError if there is none, if there are two, or if it is not well formed."""
    known = {set_name: Entry(set_name, spec, _shown(datasets)) for set_name, spec in _read(datasets).items()}
    for path in sorted(benchmarks.glob("*.yaml")):
        source = (_read(path).get("metadata") or {}).get("source")
        if path.stem in known:
            raise UserError(f"the name {path.stem} stands both in {datasets} and in {path}: rename one of them")
        if source is not None:
            known[path.stem] = Entry(path.stem, source, _shown(path))
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise UserError(f"no training set or benchmark is called {name}: {meant}known are {', '.join(sorted(known))}")
    _check(known[name])
    return known[name]


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path} should be a YAML file but cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} should hold `name: value` lines, found {type(content).__name__}")
    return content


def _check(entry: Entry) -> None:
    """Unknown or missing keys are errors that name the file, the entry and the key."""
    spec = entry.spec
    _known_keys(entry, "", spec, "entry")
    for key in ("task", "rows"):
        if key not in spec:
            raise UserError(f"{entry.where}, {entry.name}: the key `{key}` is missing")
    if not any(spec.get(key) for key in ("hub", "files", "generate")):
        raise UserError(
            f"{entry.where}, {entry.name}: none of `hub`, `files`, `generate` says where the rows come from"
        )
    if "hub" in spec:
        _known_keys(entry, "hub.", spec["hub"], "hub")
    _known_keys(entry, "raw_sha256.", spec.get("raw_sha256") or {}, "raw_sha256")
    for file in spec.get("files", ()):
        _known_keys(entry, "files.", file, "file")
    for holder in (spec, spec.get("hub") or {}):
        columns = holder.get("columns") or {}
        _known_keys(entry, "columns.", columns, "columns")
        if columns.get("form", "as_written") not in FORMS:
            raise UserError(
                f"{entry.where}, {entry.name}: columns.form is {columns['form']!r}, known are {', '.join(FORMS)}"
            )


def _known_keys(entry: Entry, prefix: str, mapping: Any, kind: str) -> None:
    if not isinstance(mapping, dict):
        raise UserError(f"{entry.where}, {entry.name}: {prefix or 'the entry'} should hold keys, found {mapping!r}")
    for key in mapping:
        if key not in _KEYS[kind]:
            raise UserError(
                f"{entry.where}, {entry.name}: unknown key `{prefix}{key}`, known are {', '.join(sorted(_KEYS[kind]))}"
            )

"""How a run was made: its provenance records, gathered by stage of the workflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analysis.results import RunResults

STAGES = (
    ("stage-", "training"), ("training_log", "training log"), ("checkpoints", "checkpoints"), ("samples", "generation"),
    ("graded", "grading"), ("scores", "scoring"),
)  # fmt: skip
SHARED = {"made_at", "git_commit", "git_dirty", "environment", "python", "packages", "devices"}


@dataclass(frozen=True)
class StageSummary:
    """The records of one stage: the facts that every artefact has, package versions, and the stage's own settings."""

    name: str
    records: int
    commit: str
    dirty: str
    lock: str
    python: str
    devices: str
    made_at: str
    packages: dict[str, str]
    settings: dict[str, str]


def flat(value: Any, name: str = "") -> Iterable[tuple[str, str]]:
    """The settings of a record as pairs of a dotted name and a text."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        yield name, ", ".join(str(item) for item in value) if value else "none"
    else:
        yield name, "none" if value is None else str(value)


def _agreed(values: Iterable[str]) -> str:
    """The value if all records agree, else the different values, or their number if there are many."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return distinct[0]
    return " / ".join(distinct) if len(distinct) <= 3 else f"{len(distinct)} different values, such as {distinct[0]}"


def _dirty(record: dict[str, Any]) -> str:
    dirty = record.get("git_dirty")
    return "unknown" if dirty is None else "yes" if dirty else "no"


def _lock(record: dict[str, Any]) -> str:
    environment = record.get("environment")
    if not isinstance(environment, dict):
        return "unknown"
    return f"{environment.get('environment')}/{environment.get('lock')} {str(environment.get('sha256'))[:12]}"


def _summarise(name: str, records: list[dict[str, Any]]) -> StageSummary:
    own: dict[str, list[str]] = {}
    packages: dict[str, list[str]] = {}
    for record in records:
        for key, value in flat({k: v for k, v in record.items() if k not in SHARED}):
            own.setdefault(key, []).append(value)
        for package, version in (record.get("packages") or {}).items():
            packages.setdefault(package, []).append(str(version))
    times = sorted(str(record.get("made_at", "unknown"))[:16].replace("T", " ") for record in records)
    return StageSummary(
        name=name,
        records=len(records),
        commit=_agreed(str(record.get("git_commit") or "unknown")[:12] for record in records),
        dirty=_agreed(map(_dirty, records)),
        lock=_agreed(map(_lock, records)),
        python=_agreed(str(record.get("python", "unknown")) for record in records),
        devices=_agreed(", ".join(map(str, record.get("devices") or ["unknown"])) for record in records),
        made_at=times[0] if times[0] == times[-1] else f"{times[0]} … {times[-1]}",
        packages={package: _agreed(versions) for package, versions in sorted(packages.items())},
        settings={key: _agreed(values) for key, values in own.items()},
    )


def deviations(run: RunResults) -> list[dict[str, str]]:
    """What the run file that was trained lists as not trainable as published: what, published, here, source."""
    files = [record["run_file"] for record in run.provenance.values() if isinstance(record.get("run_file"), dict)]
    return list(files[0].get("deviations", [])) if files else []


def stages(run: RunResults) -> list[StageSummary]:
    """The stages that left a record, in the order of the workflow. Records of unknown stages come last."""
    groups: dict[str, list[dict[str, Any]]] = {title: [] for title in [*(title for _, title in STAGES), "other"]}
    for path, record in run.provenance.items():
        title = next((title for start, title in STAGES if path.startswith(start)), "other")
        groups[title].append(record)
    return [_summarise(title, records) for title, records in groups.items() if records]

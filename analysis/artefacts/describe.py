"""Say in ten lines what a file or folder is: which result, of which run and step, how it was made, what it says."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.artefacts import folders, stored_tables, text_files
from analysis.artefacts.fact import NotThis, listed
from contracts import paths, provenance, steps
from contracts.paths import ResultsFolder, RunFolder
from eval.importers import recognise_file
from recipes.runs import run_names
from system.errors import ROOT, UserError
from system.text_safety import one_line
from system.unknown_names import files_beside, meant

MOST = 10  # lines
HASHES = ("sha256", "model_sha256", "samples_sha256", "problems_sha256", "content_sha256", "base_sha256")
MANY = 200  # files of a folder that is not looked into
CLIPPED = 200  # characters of a line
WHOLE = ("where", "page", "next")  # lines with a path


def describe(path: Path) -> str:
    """The lines of a file or folder, or of one model of a file of generations (`solutions.jsonl#model`).

    Raises:
        UserError: there is no such file, or it is nothing that is known here.
    """
    file, model = recognise_file.split_model(str(path))
    if not file.exists():
        raise UserError(f"there is no file or folder {path}, and no result of this name", code="missing-file")
    reasons, facts = [], dict[str, str]()
    record, owner = _record_of(path)
    for describer in [generations] if model else DESCRIBERS:
        if describer is generations and owner is not None:  # a table of a report, say
            continue
        try:
            facts = describer(path)
            break
        except NotThis as error:
            reasons.append(str(error))
    scale = next((folder for folder in path.resolve().parents if (folder / "runs").is_dir()), None)
    if not facts and owner is None and scale:
        facts = {"what": f"part of the results in {scale}"}
    if not facts and owner is None:
        raise UserError(
            f"{path} is nothing that is known here: {'; '.join(reason for reason in reasons if reason)}",
            code="not-recognised", path=str(path),
        )  # fmt: skip
    facts = {"what": facts.pop("what", f"part of {owner}"), "where": str(path.resolve())} | facts
    making = _making(record, owner, path)
    lines = [(name, text) for name, text in facts.items() if text][: MOST - len(making)]
    return _lines(dict(lines) | making)


def _lines(facts: dict[str, str]) -> str:
    width = max(map(len, facts)) + 1
    lines = {name: f"{name + ':':{width}} {one_line(text)}" for name, text in facts.items()}
    return "\n".join(
        line if len(line) <= CLIPPED or name in WHOLE else line[: CLIPPED - 1] + "…" for name, line in lines.items()
    )


def find_result(name: str, results: ResultsFolder) -> Path:
    """The path of a name: itself, or that of a run, a checkpoint (openr1/qwen2.5-math-7b/seed-0/step-0) or a benchmark.

    A run that has no results here is its run file. Raises UserError for a name or a step that is not there.
    """
    path = Path(name)
    if path.exists() or not name or path.is_absolute() or ".." in path.parts:
        return path
    for file in (ROOT / "recipes" / f"{name}.yaml", ROOT / "eval" / "benchmarks" / f"{name}.yaml"):
        if file.is_file() and not results.run(name).path.is_dir():
            return file
    run, _, step = name.rpartition("/step-")
    if run and (there := _steps(results.run(run))):
        for folder in there.values():
            if folder.name == steps.folder(step):
                return folder
        raise UserError(
            f"{run} has no checkpoint of step {step}; there are: {', '.join(map(str, sorted(there)))}",
            code="unknown-step", step=step,
        )  # fmt: skip
    stored = results.run(name).path
    if not stored.is_dir() and not recognise_file.split_model(name)[0].exists():
        raise UserError(
            f"there is no run, file or folder '{name}'{meant(name, [*run_names(), *files_beside(name)])}",
            code="missing-file",
            name=name,
        )
    return stored if "/" in name else path


def _steps(run: RunFolder) -> dict[int, Path]:
    """The checkpoints of a run by step; its verdicts where a checkpoint is not kept."""
    return steps.folders(run.graded) | steps.folders(run.checkpoint(0).parent)


def _record_of(path: Path) -> tuple[dict[str, Any], Path | None]:
    """The provenance of a path, or of the nearest folder above that has one, and what that is the record of."""
    if path.name.endswith("provenance.json"):
        return provenance.read_record(path), path
    inside = []
    if path.is_dir():
        results = [path / name for name in ("scores.parquet", "training_log.parquet", "comparison.json")]
        inside = [*results, *sorted(path.glob("*.parquet")), *sorted(path.glob("step-*/*.parquet"))]
    for owner in [path, *inside, *path.resolve().parents]:
        if (own := paths.record(owner)).is_file():
            return provenance.read_record(own), owner
        if (owner / "Snakefile").is_file():
            break
    return {}, None


def _making(record: dict[str, Any], owner: Path | None, path: Path) -> dict[str, str]:
    """When and by what it was made, from its record."""
    if not record:
        size = {"size": f"{path.stat().st_size:,} bytes"} if path.is_file() else {}
        return size | {"made": "not recorded: there is no provenance beside it"}
    environment = record.get("environment")
    home = f"{environment.get('environment')}/{environment.get('device')}" if isinstance(environment, dict) else ""
    dirty = {True: ", with changed files", False: "", None: ", perhaps with changed files"}[record.get("git_dirty")]
    when = str(record.get("made_at", "unknown"))[:16].replace("T", " ")
    packages = record.get("packages") or {}
    versions = listed((f"{name} {version}" for name, version in packages.items()), MOST)
    lines = {
        "made": f"{when} UTC by commit {str(record.get('git_commit'))[:12]}{dirty}"
        + (f" (record of {owner.name})" if owner and owner != path else ""),
        "with": ", ".join(filter(None, [f"Python {record.get('python')}", home, versions])),
        "hashes": ", ".join(
            f"{key.removesuffix('_sha256')} {str(record[key])[:12]}" for key in HASHES if record.get(key)
        ),
    }
    return {name: text for name, text in lines.items() if text}


def generations(path: Path) -> dict[str, str]:
    """Generations made elsewhere: a file, or a folder of them."""
    if path.is_dir() and len(list(itertools.islice(path.rglob("*"), MANY))) == MANY:
        raise NotThis("too many files to look into")
    try:
        read, _ = recognise_file.read_all([str(path)])
    except UserError as error:
        if error.code == "several-models":
            return {"what": "generations of several models in one file", "models": listed(error.facts["choices"])}
        raise NotThis(f"no generations ({error})") from None
    rows = [row for one in read for row in one.rows]
    problems = sum(len({row["problem_id"] for row in one.rows}) for one in read)
    rights = [row["right"] for row in rows if row.get("right") is not None]
    question = next((str(row[key]) for row in rows for key in ("question", "prompt") if row.get(key)), "none")
    return {
        "what": f"generations made elsewhere, as {recognise_file.TITLES[read[0].layout]} writes them",
        "rows": f"{len(rows):,} completions of {problems:,} problems"
        + (f" in {len(read)} files" if len(read) > 1 else ""),
        "numbers": f"{100 * sum(rights) / len(rights):.1f} % right by the file's own verdicts"
        if rights
        else "no verdicts",
        "question": " ".join(question.split()),
        "next": f"crosszero grade {path}",
    }


DESCRIBERS: tuple[Callable[[Path], dict[str, str]], ...] = (
    stored_tables.describe_table, folders.describe_folder, text_files.describe_text_file, generations,
    text_files.describe_plain_table,
)  # fmt: skip

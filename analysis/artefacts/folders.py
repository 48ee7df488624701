"""Folders: models, runs and parts of them, reports, comparisons, whole results."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.artefacts.fact import NotThis, listed
from analysis.artefacts.stored_tables import describe_table, log_text, score_text
from contracts import chat_template, provenance, steps, tables
from contracts.paths import RunFolder
from system.errors import UserError


def describe_folder(path: Path) -> dict[str, str]:
    """A folder that this project or Hugging Face's libraries make."""
    if not path.is_dir():
        raise NotThis("")
    for describe in DESCRIBERS:
        if facts := describe(path):
            return facts
    raise NotThis("no model, run, results, report or comparison")


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def parameters(weights: Path) -> tuple[int, set[str]]:
    """Number of parameters and types of numbers of a safetensors file, by its header alone; 0 if it is damaged."""
    try:
        with weights.open("rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
        return sum(math.prod(tensor["shape"]) for tensor in tensors), {tensor["dtype"] for tensor in tensors}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, MemoryError, OverflowError):
        return 0, set()


def _model(path: Path) -> dict[str, str]:
    config = _json(path / "config.json")
    if not config.get("model_type"):
        return {}
    read = [parameters(file) for file in sorted(path.glob("*.safetensors"))]
    count, kinds = sum(size for size, _ in read), set().union(*(kinds for _, kinds in read))
    record = provenance.read(path)
    content = {file.stem: _json(file) for file in path.glob("*.json")}
    template = "with" if chat_template.of_folder(path, content) else "without"
    trained = record.get("step") is not None
    return {
        "what": "a checkpoint of a training, as a model folder" if trained else "a model folder (Hugging Face)",
        "run": str(record.get("run") or ""), "step": str(record["step"]) if trained else "",
        "model": f"{listed(config.get('architectures') or [config['model_type']])}, {template} chat template, "
        f"context {config.get('max_position_embeddings', 'not stated')}",
        "numbers": f"{count:,} parameters ({listed(sorted(kinds))})" if count else "no readable weights (safetensors)",
        "trained from": str(record.get("model") or ""),
        "next": f"crosszero evaluate {path}",
    }  # fmt: skip


def _run(path: Path) -> dict[str, str]:
    folder = RunFolder(path)
    parts = [folder.samples, folder.graded, folder.scores, folder.training_log, path / "checkpoints"]
    present = [part.name.removesuffix(".parquet") for part in parts if part.exists()]
    if not present or not {"graded", "scores", "training_log", "samples"} & set(present):
        return {}
    parents = path.resolve().parts
    name = "/".join(parents[len(parents) - parents[::-1].index("runs") :]) if "runs" in parents else path.name
    facts = {"what": "the results of a training run" if folder.training_log.exists() else "the results of samples"}
    try:
        if folder.scores.is_file():
            scores = tables.read(folder.scores, tables.SCORE)
            name = listed(scores["run"].unique().to_pylist()) or name
            facts |= {"protocol": listed(scores["protocol"].unique().to_pylist())}
            facts |= {"numbers": score_text(scores)} if len(scores) else {}
        if folder.training_log.is_file():
            log = tables.read(folder.training_log, tables.TRAINING_LOG)
            facts |= {"training": f"{len(log)} steps; {log_text(log)}"}
    except UserError as error:
        facts |= {"damaged": str(error)}
    checkpoints = steps.folders(path / "checkpoints") or steps.folders(folder.graded)
    return facts | {"run": name, "steps": listed(checkpoints, 8), "has": listed(present)}


def _step_tables(path: Path) -> dict[str, str]:
    """The folders `samples` and `graded` of a run, one of their steps, or a folder of problem tables."""
    by_step = steps.folders(path)
    files = sorted(file for folder in by_step.values() or [path] for file in folder.glob("*.parquet"))
    if not files:
        return {}
    try:
        first = describe_table(files[-1])
    except (NotThis, UserError):
        return {}
    of_steps = f" of {len(by_step)} steps ({listed(by_step)})" if by_step else ""
    return {
        "what": f"a folder of {len(files)} tables{of_steps}: {first['what']}",
        "run": first.get("run", ""),
        "step": "" if by_step else first.get("step", ""),
        "tables": listed(dict.fromkeys(file.stem for file in files)),
        "protocol": first.get("protocol", ""),
        "last": f"{files[-1].stem}: {first.get('numbers', first.get('rows', ''))}",
    }


def _checkpoints(path: Path) -> dict[str, str]:
    models = {step: folder for step, folder in steps.folders(path).items() if (folder / "config.json").is_file()}
    if not models:
        return {}
    return {"what": f"{len(models)} checkpoints of a training: steps {listed(models, 8)}"} | {
        "run": str(provenance.read(next(reversed(models.values()))).get("run") or "")
    }


def _comparison(path: Path) -> dict[str, str]:
    if content := _json(path / "comparison.json"):
        differences = [
            f"{line['benchmark']} {100 * line['difference']['value']:+.1f} points ({line['verdict']})"
            for line in content["lines"]
            if line.get("difference")
        ]
        return {
            "what": f"a comparison: {content['checkpoint']} against {content['baseline']}",
            "verdict": f"{content['verdict']} (exit status {content['exit_status']})", "numbers": listed(differences),
            "page": str(path / "index.html"),
        }  # fmt: skip
    if content := _json(path / "recipes.json"):
        verdicts = [f"{line['benchmark']}: {line['verdict']}" for line in content["lines"]]
        return {
            "what": "a comparison of recipes over their trainings", "a": listed(content["a"], 3),
            "b": listed(content["b"], 3), "verdict": listed(verdicts),
        }  # fmt: skip
    return {}


def _report(path: Path) -> dict[str, str]:
    if not ((path / "index.html").is_file() and (path / "tables").is_dir()):
        return {}
    record = provenance.read(path)
    return {
        "what": f"a report of {len(record.get('runs', ()))} run(s)", "runs": listed(record.get("runs", ())),
        "scale": str(record.get("scale", "")), "has": listed(sorted(part.name for part in path.iterdir())),
        "page": str(path / "index.html"),
    }  # fmt: skip


def _results(path: Path) -> dict[str, str]:
    if not (path / "runs").is_dir():
        return {}
    scored = sorted((path / "runs").glob("**/scores.parquet"))
    names = [str(file.parent.relative_to(path / "runs")) for file in scored if "regraded" not in file.parts]
    reports = sorted(str(file.parent.relative_to(path)) for file in path.glob("report/**/index.html"))
    return {
        "what": f"all results of a scale ({path.resolve().name})", "runs": f"{len(names)} scored: {listed(names, 4)}",
        "reports": listed(reports), "data": listed(sorted(file.stem for file in path.glob("data/*/*.parquet"))),
    }  # fmt: skip


def _parents_of_results(path: Path) -> dict[str, str]:
    """A folder above runs, models or problem tables: `runs`, `runs/<recipe>`, `models`, `data`."""
    scored = [file.parent for depth in ("*", "*/*", "*/*/*") for file in path.glob(f"{depth}/scores.parquet")]
    if runs := sorted(str(folder.relative_to(path)) for folder in scored if folder.parent.name != "regraded"):
        return {"what": f"a folder of {len(runs)} scored run(s)", "runs": listed(runs)}
    if models := sorted(file.parent.name for file in path.glob("*/config.json")):
        return {"what": f"a folder of {len(models)} model(s)", "models": listed(models)}
    inner = sorted({file.parent.name for file in path.glob("*/*.provenance.json")})
    return {"what": "a folder of results", "has": listed(inner)} if inner else {}


DESCRIBERS: tuple[Callable[[Path], dict[str, str]], ...] = (
    _model, _comparison, _report, _results, _run, _checkpoints, _step_tables,
    _parents_of_results,
)  # fmt: skip

"""Records, run files, benchmarks and pages: files of text that are not tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from analysis.artefacts.fact import NotThis, listed
from analysis.artefacts.folders import describe_folder, parameters
from system.errors import ROOT, UserError
from system.yaml_files import read_yaml

WEIGHTS, IMAGES = ".safetensors", (".svg", ".png")


def describe_text_file(path: Path) -> dict[str, str]:
    """A file that this project writes or reads, and that is no table."""
    if not path.is_file():
        raise NotThis("")
    if path.suffix == ".json":
        return _json_file(path)
    if path.suffix in (".yaml", ".yml"):
        return _yaml_file(path)
    if path.suffix == WEIGHTS:
        count, kinds = parameters(path)
        return {"what": "the weights of a model", "numbers": f"{count:,} parameters ({listed(sorted(kinds))})"}
    if path.suffix == ".html" and path.read_bytes()[:200].lstrip().lower().startswith(b"<!doctype html"):
        return {"what": "a page: open it in a browser"} | _folder_of_page(path.parent)
    if path.suffix in IMAGES:
        return {"what": "a figure"}
    raise NotThis("no record, run file, benchmark, page or figure")


def describe_plain_table(path: Path) -> dict[str, str]:
    """Any other table of values with a header."""
    if not path.is_file() or path.suffix not in (".csv", ".tsv"):
        raise NotThis("")
    with path.open(encoding="utf-8", errors="replace") as file:
        header, *rows = file
    return {"what": "a table, no generations", "columns": header.strip(), "rows": f"{len(rows):,}"}


def _folder_of_page(folder: Path) -> dict[str, str]:
    """What the folder of a page says of it."""
    try:
        facts = describe_folder(folder)
    except NotThis:
        return {}
    return {"of": facts["what"]} | {name: facts[name] for name in ("runs", "verdict", "numbers") if name in facts}


def _json_file(path: Path) -> dict[str, str]:
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise NotThis("no JSON document") from None
    if not isinstance(content, dict):
        raise NotThis("no record of this project")
    if {"made_at", "git_commit"} <= content.keys():
        common = {"made_at", "git_commit", "git_dirty", "environment", "python", "packages", "devices"}
        return {
            "what": f"the provenance record of {path.name.removesuffix('.provenance.json') or path.parent.name}",
            "says": listed((key for key in content if key not in common), 12),
            "devices": listed(content.get("devices") or ()),
        }
    if path.name in ("comparison.json", "recipes.json"):
        return describe_folder(path.parent)
    if {"run", "layout", "lines", "identity"} <= content.keys():
        best = [f"{line[0]} {100 * line[2]:.1f} % by {line[1]}" for line in content["lines"]]
        return {
            "what": f"the record of graded generations ({content['title']})", "run": str(content["run"]),
            "format": str(content["layout"]), "numbers": listed(best, 4),
        }  # fmt: skip
    if "model_type" in content and (path.parent / "config.json").is_file():
        return {"what": "a model's configuration"} | {"model": describe_folder(path.parent)["model"]}
    if {"results", "configs"} <= content.keys():
        return {"what": "lm-eval's table of results, without completions", "tasks": listed(content["results"])}
    raise NotThis("no record of this project")


def _yaml_file(path: Path) -> dict[str, str]:
    try:
        content = read_yaml(path)
    except UserError as error:
        raise NotThis(f"no YAML mapping ({error})") from None
    name = str(path.resolve().relative_to(ROOT).with_suffix("")) if path.resolve().is_relative_to(ROOT) else path.stem
    if "framework" in content or "extends" in content:
        return {
            "what": f"a run file: {content.get('title') or 'extends ' + str(content.get('extends'))}",
            "run": name.removeprefix("recipes/"), "numbers": listed(f"{key} {content[key]}" for key in
            ("framework", "algorithm", "prompt") if key in content), "scales": listed(
            key for key in ("demo", "small", "full") if key in content),
            "next": f"crosszero reproduce {name.removeprefix('recipes/')}",
        }  # fmt: skip
    if str(content.get("task", "")).startswith("crosszero_"):
        source = (content.get("metadata") or {}).get("source") or {}
        return {
            "what": f"a benchmark: {path.stem}",
            "task": str(source.get("task", "")),
            "rows": f"{source.get('rows')} problems",
            "source": listed(file["path"] for file in source.get("files", ())),
        }
    return {"what": f"a YAML file with the keys {listed(content)}"}

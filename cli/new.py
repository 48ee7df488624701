"""`crosszero new task|run|framework NAME`: the files that CONTRIBUTING.md names, from examples/, ready to be edited."""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from cli import graph
from contracts.run_file import framework_names
from recipes.runs import run_names
from system import durable
from system.errors import ROOT, UserError
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from tasks import task_yaml

EXAMPLES = ROOT / "examples"
TASK, FRAMEWORK = "largest_number", "newframework"  # the names in examples/
CLASSES = {"LargestNumber": TASK, "NewFramework": FRAMEWORK}
FIDELITY = "results/reference/fidelity.yaml"
# What to edit in a file, by a part of its path.
TASK_EDITS = {
    "__init__.py": "how an answer is judged; generated problems, and traces for the demo's base model",
    "task.yaml": "training sets; how long the demo's base model is trained",
    "benchmarks/": "the held-out problems",
    "recipes/": "the run: framework, rewards, and the values of each scale",
    FIDELITY: "where each published value of the run is from",
}
FRAMEWORK_EDITS = {
    "requirements.in": "its packages, pinned; then `make locks`",
    "__init__.py": "what it is",
    "adapter.py": "writes the data, starts training, names the metrics, exports checkpoints",
    "command.py": "a run as the framework's command line",
    "parser_check.py": "the framework's real parser reads that command",
    "reward_hook.py": "the arguments that its trainer calls a reward with",
    "defaults.yaml": "the release's defaults that runs rely on",
}


def example_files(kind: str, name: str) -> dict[str, str]:
    """The files of an example under another name: text by path.

    Args:
        kind: a folder of examples/.
        name: of the new task or framework, in the words of a Python module.
    """
    files = sorted(file for file in (EXAMPLES / kind).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {
        renamed(file.relative_to(EXAMPLES / kind).as_posix(), name): renamed(file.read_text(encoding="utf-8"), name)
        for file in files
    }


def renamed(text: str, name: str) -> str:
    """A text with the name of a task or framework in place of the example's, also in classes and models."""
    replacements = {known: "".join(map(str.capitalize, name.split("_"))) for known in CLASSES}
    replacements |= dict.fromkeys((TASK, FRAMEWORK), name) | {TASK.replace("_", "-"): name.replace("_", "-")}
    return re.sub("|".join(replacements), lambda match: replacements[match[0]], text)


def check_module_name(kind: str, name: str, existing: Iterable[str]) -> None:
    """Raise UserError for a name that is taken, is no module's, or that the code uses for something else."""
    if name in existing:
        raise UserError(f"there is a {kind} {name} already: choose another name", code="name-taken", name=name)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name, re.ASCII) or keyword.iskeyword(name):
        raise UserError(
            f"a {kind}'s folder is a Python module: small letters, digits and _, from a letter on, not '{name}'",
            code="unusable-name", name=name,
        )  # fmt: skip
    whole = rf"['\"./]{name}['\"./]" if kind == "task" else rf"(?<![-\w]){name}(?!\w)"
    sources = [file for folder in ROOT.iterdir() if folder.name in _source_folders() for file in folder.rglob("*.py")]
    sources += [*(ROOT / "workflows").glob("*.smk"), *(ROOT / "config").rglob("*.yaml"), ROOT / "Makefile"]
    for file in sources:
        if re.search(whole, file.read_text(encoding="utf-8"), re.IGNORECASE):
            raise UserError(
                f"{file.relative_to(ROOT)} uses the word '{name}' for something else, and only its own folder may name "
                f"a {kind}: choose another name",
                code="name-in-use", name=name, file=file.relative_to(ROOT).as_posix(),
            )  # fmt: skip


def _source_folders() -> set[str]:
    """Of product code: what the floors are, and envs."""
    return {folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").is_file()} - {"tests"} | {"envs"}


def run_files(name: str, base: str) -> dict[str, str]:
    """The files of a new run: text by path.

    Args:
        name: `<recipe>/<run>`.
        base: the run that it starts from. One of the same recipe is extended, so that the file says only what differs.

    Raises:
        UserError: the name is no run's or taken, or there is no such base.
    """
    recipe, _, own = name.partition("/")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII) or name.endswith(".yaml"):
        raise UserError(
            f"a run's name is RECIPE/NAME, such as openr1/mine, not '{name}'", code="unusable-name", name=name
        )
    if name in run_names():
        raise UserError(f"there is a run {name} already: choose another name", code="name-taken", name=name)
    if base not in run_names():
        raise unknown("run", base, run_names())
    file, text = ROOT / "recipes" / f"{base}.yaml", (ROOT / "recipes" / f"{base}.yaml").read_text(encoding="utf-8")
    base_recipe, content = base.partition("/")[0], read_yaml(file)
    if "extends" in content and base_recipe != recipe:
        raise UserError(
            f"{base} extends {base_recipe}/{content['extends']}, which only runs of {base_recipe} can: make "
            f"{base_recipe}/{own}, or start from {base_recipe}/{content['extends']}",
            code="extends-other-recipe", base=base,
        )  # fmt: skip
    path = f"recipes/{name}.yaml"
    if base_recipe != recipe or "extends" in content:
        copied = text.replace(base, name).replace(content["title"], f"{content['title']}, {own}")
        return {path: copied} | ({} if base_recipe == recipe else sources_entry(name, f"as {base}"))
    return {path: extending_text(name, base.partition("/")[2], content["title"])}


def extending_text(name: str, base: str, title: str) -> str:
    """A run file that says only what differs from another of its recipe."""
    return (
        f"# As {base}, but …\n#\n#   full   see {base}.yaml\n#   demo   see {base}.yaml\n"
        f"#          crosszero reproduce {name}\n\n"
        f"extends: {base}\ntitle: {title}, {name.partition('/')[2]}\n\n"
        "# full:\n#   objective: {kl_coefficient: 0.01}       # only what differs\n#\n# demo:\n#   steps: 10\n"
    )


def sources_entry(run: str, reason: str) -> dict[str, str]:
    """results/reference/fidelity.yaml with an entry for a run whose values have no published source."""
    text = (ROOT / FIDELITY).read_text(encoding="utf-8")
    return {FIDELITY: f'{text}\n  {run}:\n    "*": [null, ours, null, "{reason}"]\n'}


def write_files(files: Mapping[str, str], extended: Iterable[str] = ()) -> None:
    """Write files of the project.

    Args:
        files: text by path.
        extended: those that exist and get more text.

    Raises:
        UserError: another is there already; nothing is written then.
    """
    if existing := [path for path in files if path not in extended and (ROOT / path).exists()]:
        raise UserError(
            f"{', '.join(existing)} is there already: delete it, or choose another name",
            code="file-exists", files=existing,
        )  # fmt: skip
    for path, text in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        durable.write_text(ROOT / path, text)
    if code := [path for path in files if path.endswith(".py")]:  # the order of imports depends on the name
        for command in (["check", "--select", "I", "--fix"], ["format"]):
            subprocess.run([sys.executable, "-m", "ruff", *command, "--quiet", *code], cwd=ROOT, check=True)


def report_files(files: Iterable[str], edits: Mapping[str, str], commands: Iterable[str]) -> None:
    """Print what was written, what to edit in each file, and how to try it."""
    files = list(files)
    width = max(map(len, files))
    for path in files:
        what = next((text for part, text in edits.items() if part in path), "")
        click.echo(f"{path:{width}}  {what}".rstrip())
    click.echo("\nTry it:")
    for line in commands:
        click.echo(f"  {line}")


@click.group()
def command() -> None:
    """Write the files of a new task, run or framework, ready to be edited; CONTRIBUTING.md explains them."""


@command.command("task")
@click.argument("name")
def new_task(name: str) -> None:
    """A task that works at once (which of three numbers is the largest?), with its benchmark and a run."""
    check_module_name("task", name, task_yaml.task_names())
    files = example_files("task", name) | sources_entry(f"{name}/grpo", "an example, not a published recipe")
    write_files(files, [FIDELITY])
    report_files(files, TASK_EDITS, [
        f"crosszero problems {name} --output {name}.parquet    # seconds",
        f"crosszero reproduce {name}    # trains, evaluates and reports it at demo scale: minutes, no GPU",
    ])  # fmt: skip


@command.command("run")
@click.argument("name", metavar="RECIPE/NAME")
@click.option("--from", "base", required=True, metavar="RUN", shell_complete=graph.complete_runs, help="To start from.")
def new_run(name: str, base: str) -> None:
    """A run from another: one of the same recipe is extended, one of another is copied.

    For another value of a few keys no file is needed: crosszero reproduce RUN --set KEY=VALUE
    """
    files = run_files(name, base)
    write_files(files, [FIDELITY])
    edits: dict[str, Any] = {"recipes/": "what differs", FIDELITY: TASK_EDITS[FIDELITY]}
    report_files(files, edits, [
        f"crosszero reproduce {name} -n    # what would be done",
        f"crosszero reproduce {name}",
    ])  # fmt: skip


@command.command("framework")
@click.argument("name")
def new_framework(name: str) -> None:
    """An adapter whose every function says in one sentence that it is not written yet."""
    check_module_name("framework", name, framework_names())
    files, base = example_files("framework", name), framework_names()[0]
    write_files(files)
    report_files(files, FRAMEWORK_EDITS, [
        f"crosszero new run crosscheck/{name} --from crosscheck/{base}    # then write `framework: {name}` in it",
        "crosszero parse-runs    # the framework's own parser reads it, or one sentence says what is not written yet",
    ])  # fmt: skip

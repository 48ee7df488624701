"""The order of the floors: each imports only from those below it, without circles, and names stay in their folders.

Frameworks and tasks are folders: what is known of one is inside its folder. Outside it, only run files, rewards of a
recipe, environments and documentation name it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from contracts.run_file import ROOT

# from the bottom
FLOORS = (
    "system", "contracts", "tasks", "grading", "recipes", "frameworks", "translate", "conformance", "eval", "cluster",
    "analysis", "studies", "cli",
)  # fmt: skip
ANALYSIS = (
    ("statistics",), ("measures", "pages"), ("claims", "compare_checkpoints", "compare_recipes"),
    ("benchmark", "report", "sweep", "upgrade"),
)  # fmt: skip  # the folders of analysis/, from the bottom
SIBLINGS = {"frameworks": "adapter.py", "tasks": "task.yaml"}  # whose folders, which have this file, are independent


@cache
def modules() -> dict[str, Path]:
    """Every module of the floors by its dotted name."""
    files = [file for floor in FLOORS for file in sorted((ROOT / floor).rglob("*.py"))]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imported(module: str) -> Iterator[tuple[str, int]]:
    """Modules of this project that a module imports, anywhere in it, and the line."""
    for node in ast.walk(tree(modules()[module])):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}:{node.lineno}: relative import"
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules() else str(node.module) for name in full]
        else:
            continue
        yield from ((name, node.lineno) for name in names if name.partition(".")[0] in FLOORS)


def folders(floor: str) -> list[str]:
    """The frameworks or the tasks."""
    return sorted(file.parent.name for file in (ROOT / floor).glob(f"*/{SIBLINGS[floor]}"))


@pytest.mark.slow
def test_every_import_is_of_a_module_that_exists() -> None:
    missing = [f"{module}:{line}: {name}" for module in modules() for name, line in imported(module)
               if name not in modules() and not (ROOT / name.replace(".", "/")).is_dir()]  # fmt: skip
    assert not missing, "\n".join(missing)


@pytest.mark.slow
def test_floors_import_only_downwards() -> None:
    upwards = [
        f"{module}:{line} imports {name}"
        for module in modules()
        for name, line in imported(module)
        if FLOORS.index(name.partition(".")[0]) > FLOORS.index(module.partition(".")[0])
    ]
    assert not upwards, "\n".join(upwards)


@pytest.mark.slow
def test_folders_of_the_analysis_import_only_downwards() -> None:
    level = {f"analysis.{folder}": number for number, folders in enumerate(ANALYSIS) for folder in folders}
    upwards = [
        f"{module}:{line} imports {name}"
        for module in modules()
        for name, line in imported(module)
        for own, other in [(".".join(module.split(".")[:2]), ".".join(name.split(".")[:2]))]
        if level.get(other, -1) > level.get(own, len(ANALYSIS)) and own in level
    ]
    assert not upwards, "\n".join(upwards)


@pytest.mark.slow
def test_a_framework_or_task_imports_no_other() -> None:
    assert folders("frameworks") and folders("tasks")
    sideways = []
    for module in modules():
        floor, own, *_ = *module.split("."), "", ""
        for name, line in imported(module):
            other = (*name.split("."), "")[1]
            if floor in SIBLINGS and own in folders(floor) and name.startswith(f"{floor}."):
                sideways += [f"{module}:{line} imports {name}"] * (other in folders(floor) and other != own)
    assert not sideways, "\n".join(sideways)


@pytest.mark.slow
def test_no_import_circles() -> None:
    graph = {module: {name for name, _ in imported(module) if name != module} for module in modules()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import circle: {' → '.join(error.args[1])}")


@cache
def code(file: Path) -> list[tuple[str, int]]:
    """Imports, texts and keywords of a Python file, without docstrings and comments; lines of another file."""
    if file.suffix != ".py":
        lines = file.read_text(encoding="utf-8").split("\n")
        return [(line.partition("#")[0], number) for number, line in enumerate(lines, start=1)]
    nodes, texts = list(ast.walk(tree(file))), []
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            texts.append((node.value, node.lineno))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            texts.append((ast.unparse(node), node.lineno))
        elif isinstance(node, ast.keyword):
            texts.append((node.arg or "", node.value.lineno))
    return texts


def sources() -> Iterator[Path]:
    """Product code: Python, Snakemake, the Makefile and schemas."""
    yield from modules().values()
    yield from (ROOT / "envs").glob("*.py")
    yield from (ROOT / "workflows").glob("*.smk")
    yield from (ROOT / "config").rglob("*.yaml")
    yield from (ROOT / "Snakefile", ROOT / "Makefile")


def naming(pattern: str, allowed: tuple[str, ...]) -> list[str]:
    """Lines of product code that match, in files under none of the allowed places."""
    lines = []
    for file in sources():
        path = file.relative_to(ROOT).as_posix()
        if not re.match("|".join(allowed), path):
            hits = {(number, text.strip()) for text, number in code(file) if re.search(pattern, text, re.IGNORECASE)}
            lines += [f"{path}:{number}: {text[:100]}" for number, text in sorted(hits)]
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("name", folders("frameworks"))
def test_a_framework_is_named_only_in_its_folder(name: str) -> None:
    allowed = (f"frameworks/{name}/", "recipes/[^/]+/.*yaml", "cli/table.py")  # the last has examples
    lines = naming(rf"(?<![-\w]){name}(?!\w)", allowed)
    assert not lines, "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", folders("tasks"))
def test_a_task_is_named_only_in_its_folder(name: str) -> None:
    """As a whole text or a module: `math` is also Python's module and a part of other names."""
    pattern = rf"^{name}$|\btasks[./]{name}\b|from tasks import .*\b{name}\b"
    lines = naming(pattern, (f"tasks/{name}/", "recipes/[^/]+/reward.py", "recipes/[^/]+/.*yaml"))
    assert not lines, "\n".join(lines)

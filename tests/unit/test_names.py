"""No variable, parameter or function is called by a word that leaves open what it holds."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

import pytest

from contracts.run_file import ROOT

VAGUE = {"found", "of", "several", "shown", "given", "made", "asked", "words", "place", "put"}


def stored(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names of variables, parameters and functions, and their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef):
            yield node.name, node.lineno


@pytest.mark.slow
def test_names_say_what_they_hold() -> None:
    folders = [folder for folder in ROOT.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    files = [
        file for folder in folders if folder.name not in ("results", "work", "logs") for file in folder.rglob("*.py")
    ]
    vague = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files
        for name, line in stored(ast.parse(file.read_text(encoding="utf-8")))
        if name.strip("_") in VAGUE
    ]
    assert len(files) > 500 and not vague, "\n".join(sorted(vague))


def test_errors_of_the_workflow_have_codes() -> None:
    """mypy says so of Python files."""
    without = []
    for file in (*ROOT.glob("workflows/*.smk"), *ROOT.glob("studies/*/*.smk"), ROOT / "Snakefile"):
        for call in file.read_text(encoding="utf-8").split("UserError(")[1:]:
            depths = itertools.accumulate({"(": 1, ")": -1}.get(character, 0) for character in call)
            end = next(position for position, depth in enumerate(depths) if depth < 0)
            without += [f"{file.name}: {call[:60]}"] * ("code=" not in call[:end])
    assert not without, "\n".join(without)

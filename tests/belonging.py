"""Which test files belong to a folder or module of the product: those that import it or start it as a program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from contracts.run_file import ROOT


def dotted_name(path: str) -> str:
    """`analysis/report/` and `grading/extraction.py` as Python names them.

    Raises:
        ValueError: there is no such folder or file in the project.
    """
    if not path or not (ROOT / path).exists() or path.startswith(("/", ".", "tests")):
        raise ValueError(f"a folder or file of the project was needed, such as grading or analysis/report, not {path}")
    return path.rstrip("/").removesuffix(".py").replace("/", ".")


@cache
def mentioned_modules(file: Path) -> frozenset[str]:
    """The modules that a file imports, and its texts that may name one, such as `eval.generate` in a command."""
    return frozenset(_mentioned_modules(file))


def _mentioned_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names if alias.name != "ROOT"]  # a path: no code of that module
            yield from [node.module] * bool(names)
            yield from (f"{node.module}.{name}" for name in names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "workflows" if node.value == "snakemake" else node.value.replace("/", ".")


def belongs(file: Path, path: str) -> bool:
    """Whether a test file belongs to a folder or file of the product."""
    wanted = dotted_name(path)
    return any(f"{module}.".startswith(f"{wanted}.") for module in mentioned_modules(file))

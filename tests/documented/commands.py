"""The commands that README, docs, studies and the docstrings of programs show, as they stand there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cli.study import study_folders, study_programs
from cli.table import COMMANDS, Module
from contracts.run_file import ROOT

# First words of a command; a block or an indented paragraph that begins with another is no list of commands.
PROGRAMS = (
    r"crosszero|snakemake|make|python3?(\.\d+)?|pytest|git|uv|env|printf|source|\$EDITOR|\.envs/\S+|[A-Z]+=\S*|"
    r"accelerate|settings=\("
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"(?<!\S)#\s.*$")
TAIL = re.compile(r"\s{4,}[a-z0-9].*$")  # of a docstring: what a command takes, after four spaces or more
ASSIGNMENT = re.compile(r"[A-Z]+=\S*")


@dataclass(frozen=True)
class Documented:
    """One command of the documentation.

    Attributes:
        page: path of the file below the project's folder.
        line: of the file, from 1.
        text: the command without its comment, continued lines joined.
        before: assignments of the same block, which the command needs.
    """

    page: str
    line: int
    text: str
    before: tuple[str, ...] = ()

    @property
    def script(self) -> str:
        """What a shell runs."""
        return "\n".join([*self.before, self.text])


def pages() -> list[Path]:
    """README, guides, pages and studies; tests/documented/test_tutorials.py follows the tutorials in their order."""
    return [
        ROOT / "README.md", ROOT / "CONTRIBUTING.md",
        *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "tutorials"),
        ROOT / "config" / "README.md", *sorted((ROOT / "studies").glob("*/README.md")),
    ]  # fmt: skip


def program_files() -> list[Path]:
    """The modules that `crosszero` starts."""
    modules = [row.starts.module for row in COMMANDS.values() if isinstance(row.starts, Module)]
    paths = [ROOT / module.replace(".", "/") for module in modules]
    files = [path / "__main__.py" if path.is_dir() else path.with_suffix(".py") for path in paths]
    studies = [folder / f"{name}.py" for folder in study_folders().values() for name in study_programs(folder)]
    return sorted({*files, *studies})


def read_lines(
    lines: Iterable[str], page: str, first: int, tail: re.Pattern[str] | None = None
) -> Iterator[Documented]:
    """The commands of a block.

    Args:
        lines: of the block.
        page: where it stands.
        first: number of its first line.
        tail: what is no part of a line besides its comment.
    """
    before: list[str] = []
    joined, start = "", first
    for number, line in enumerate(lines, start=first):
        text = COMMENT.sub("", line).strip()
        text = tail.sub("", text) if tail else text
        if not joined:
            start = number
        joined = f"{joined} {text}".strip()
        if joined.endswith("\\"):
            joined = joined.removesuffix("\\").strip()
            continue
        if ASSIGNMENT.fullmatch(joined):
            before.append(joined)
        elif joined:
            yield Documented(page, start, re.sub(r"\s+", " ", joined), tuple(before))
        joined = ""


def is_command(text: str) -> bool:
    """Whether a line of a block begins as a command does."""
    return re.match(rf"({PROGRAMS})(\s|$)", text.strip()) is not None


def of_page(path: Path) -> Iterator[Documented]:
    """The commands in a page's fenced blocks."""
    text = path.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        lines = match[2].rstrip("\n").split("\n")
        first = text[: match.start(2)].count("\n") + 1
        if match[1] in ("", "sh", "bash") and is_command(lines[0]) and not lines[0].startswith("settings="):
            yield from read_lines(lines, path.relative_to(ROOT).as_posix(), first)


def of_docstring(path: Path) -> Iterator[Documented]:
    """The commands in the docstring of a module: lines that begin with a program, and what continues them."""
    lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")), clean=False) or "").split("\n")
    position = 0
    while position < len(lines):
        end = position + 1
        if is_command(lines[position]):
            while lines[end - 1].rstrip().endswith("\\"):
                end += 1
            yield from read_lines(lines[position:end], path.relative_to(ROOT).as_posix(), position + 1, TAIL)
        position = end


@cache
def documented_commands() -> tuple[Documented, ...]:
    """All, in the order of the pages; one that stands in several places comes once for each."""
    return (
        *(command for page in pages() for command in of_page(page)),
        *(command for file in program_files() for command in of_docstring(file)),
        *(Documented("cli/table.py", 1, f"crosszero {row.name} {row.example}".strip()) for row in COMMANDS.values()),
    )


def distinct_commands() -> list[Documented]:
    """The first of each text."""
    commands: dict[str, Documented] = {}
    for command in documented_commands():
        commands.setdefault(command.script, command)
    return list(commands.values())

"""The program `crosszero`: its table, its help texts, and how it starts modules and targets."""

from __future__ import annotations

import ast

import pytest
from click.testing import CliRunner

from cli.main import crosszero
from cli.table import COMMANDS, GROUPS, Module, Target
from contracts.run_file import ROOT


def help_of(name: str) -> str:
    result = CliRunner().invoke(crosszero, [name, "--help"], prog_name="crosszero")
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_has_every_command_in_its_group() -> None:
    output = CliRunner().invoke(crosszero, ["--help"], prog_name="crosszero").output
    listed = [line.split()[0] for line in output.splitlines() if line.startswith("  ") and line.split()[0] in COMMANDS]
    assert listed == list(COMMANDS)
    assert [title for title in GROUPS if f"\n{title}:\n" in output] == list(GROUPS)


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if not isinstance(row.starts, Module)])
def test_a_help_text_has_a_usage_line_and_an_example(name: str) -> None:
    text = help_of(name)
    assert text.startswith(f"Usage: crosszero {name} ")
    assert f"Example: crosszero {name}" in text


@pytest.mark.parametrize(
    "row", [row for row in COMMANDS.values() if isinstance(row.starts, Module)], ids=lambda r: r.name
)
def test_a_program_has_a_parser_and_names_itself_as_the_user_does(row) -> None:  # type: ignore[no-untyped-def]
    path = ROOT / row.starts.module.replace(".", "/")
    file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
    text = file.read_text(encoding="utf-8")
    assert f"crosszero {row.name} " in (ast.get_docstring(ast.parse(text)) or ""), f"{file} has no worked example"


def test_a_target_of_the_table_exists() -> None:
    rules = (ROOT / "Snakefile").read_text() + "".join(file.read_text() for file in ROOT.glob("workflows/*.smk"))
    for row in COMMANDS.values():
        if isinstance(row.starts, Target):
            assert f"rule {row.starts.name}:" in rules, row.name

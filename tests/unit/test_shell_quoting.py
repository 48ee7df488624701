"""Nothing that a user can name reaches a shell unquoted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from tests.source_folders import FOLDERS

RULE_FILES = [ROOT / "Snakefile", *sorted((ROOT / "workflows").glob("*.smk"))]
LIKE_THE_PLUGIN = {
    "cluster/submission.py"
}  # it makes the call of Snakemake's plugin, a text that the plugin has quoted
BLOCK = re.compile(r"^( *)shell:\n((?:\1 +.*\n|\n)+)", re.MULTILINE)


def commands(text: str) -> Iterator[str]:
    """The shell blocks of a rule file, without comments."""
    for match in BLOCK.finditer(text):
        yield "\n".join(line for line in match[2].split("\n") if not line.lstrip().startswith("#"))


def unquoted(command: str) -> list[str]:
    """What a shell block fills in without quoting it: every value has to end with `:q`, and f-strings never do."""
    filled = re.findall(r"\{[^{}]*\}", re.sub(r"\{\{|\}\}", "", command))
    return [value for value in filled if not value.endswith(":q}")] + re.findall(r"\b[rR]?[fF][rR]?[\"'].*", command)


@pytest.mark.parametrize("file", RULE_FILES, ids=lambda file: file.name)
def test_every_value_in_a_rules_command_is_quoted(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(list(commands(text))) == len(re.findall(r"^ +shell:", text, re.MULTILINE))
    assert not [value for command in commands(text) for value in unquoted(command)]


def test_rules_run_their_commands_in_shell_blocks_only() -> None:
    for file in RULE_FILES:
        assert not re.search(r"\bshell\(|os\.system|subprocess|popen", file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", ['"x {input}"', '"{params.a:q} {params.b}"', 'f"x {RESULTS}"', '"{log:s}"'])
def test_what_is_not_quoted_is_found(command: str) -> None:
    text = f"rule a:\n    shell:\n        {command}\n\n\nrule b:\n    output:\n"
    assert [unquoted(block) for block in commands(text)] != [[]]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_passes_a_text_to_a_shell(folder: str) -> None:
    calls = []
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                shell = any(word.arg == "shell" for word in node.keywords)
                if shell or re.search(r"os\.(system|popen)|getoutput|create_subprocess_shell", name):
                    calls.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert [call for call in calls if call.partition(":")[0] not in LIKE_THE_PLUGIN] == []

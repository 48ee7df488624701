"""The generated reference: every key, column, field and variable is described, once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cli.table import COMMANDS
from contracts import tables
from contracts.run_file import ROOT
from contracts.schema_keys import run_keys, schema_keys
from docs.generator.reference import PAGES, TABLES, cell
from eval import protocols
from recipes.runs import run_names
from system.yaml_files import read_yaml
from tests.source_folders import FOLDERS

KEYS = [*run_keys(), *schema_keys("config"), *schema_keys("protocol"), *schema_keys("run")]


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (ROOT / folder).rglob("*.py")


def test_every_key_is_described() -> None:
    assert len(KEYS) > 500 and [key.name for key in KEYS if len(key.meaning) <= 3 or not key.values] == []


def test_the_meaning_of_a_key_of_run_files_is_written_once() -> None:
    others = read_yaml(ROOT / "frameworks" / "key_meanings.yaml")
    assert not {key.name for key in run_keys()} & set(others)


def test_every_column_is_described_and_no_other() -> None:
    columns = {field.name for schema, _ in TABLES.values() for field in schema}
    assert columns == set(read_yaml(ROOT / "contracts" / "columns.yaml"))
    schemas = {name for name, value in vars(tables).items() if isinstance(value, type(tables.SCORE))}
    assert len(schemas) == len(TABLES)


def test_every_field_of_a_record_is_described() -> None:
    described = set(read_yaml(ROOT / "contracts" / "provenance_fields.yaml"))
    written = {
        keyword.arg
        for file in sources()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "provenance.write"
        for keyword in node.keywords
        if keyword.arg
    }
    assert len(written) > 20 and written <= described


def test_every_environment_variable_of_ours_is_described() -> None:
    variables = read_yaml(ROOT / "system" / "environment_variables.yaml")
    texts = [file.read_text(encoding="utf-8") for file in sources()]
    names = {name for text in texts for name in re.findall(r"CROSSZERO_[A-Z]+(?:_[A-Z]+)*", text)}
    described = variables["you"].keys() | variables["itself"].keys()
    assert {name for name in described if name.startswith("CROSSZERO")} == names
    read = {name for text in texts for name in re.findall(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"", text)}
    system = {"PATH", "HOME", "USER", "PYTHONPATH", "TMPDIR"}
    slurm = {name for name in read if name.startswith("SLURM")}
    assert read - described - system - slurm == set()


def test_pages_name_everything_that_there_is() -> None:
    texts = {name: "\n".join(page()) for name, page in PAGES.items()}
    for page, names in {
        "run-file": [key.name for key in run_keys()], "configuration": [key.name for key in schema_keys("config")],
        "protocols": protocols.names(), "recipes": [name.partition("/")[2] for name in run_names()],
        "commands": COMMANDS, "tables": [field.name for schema, _ in TABLES.values() for field in schema],
        "benchmarks": [file.stem for file in (ROOT / "eval" / "benchmarks").glob("*.yaml")],
    }.items():  # fmt: skip
        assert [name for name in names if name not in texts[page]] == [], page


def test_a_cell_ends_no_column_and_no_table() -> None:
    assert cell("a | b\nc <d> {e} [f]") == "a \\| b c &lt;d> &#123;e} &#91;f]"

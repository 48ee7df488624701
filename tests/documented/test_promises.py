"""Every promise of docs/explanation/promises.md names a test that exists."""

import ast
import re

import pytest

from contracts.run_file import ROOT

PAGE = (ROOT / "docs/explanation/promises.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.split("\n") if re.match(r"\| (?!promise|fault)\S.*`tests/", line)]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_a_promise_names_a_test_that_exists(row: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
    assert named, row
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name.startswith("test_") and name in {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef)
        }, f"{file} has no {name}"


def test_every_row_is_read_and_the_page_is_linked() -> None:
    tables = [part.split("\n\n")[0] for part in PAGE.split("| promise | test | limits |\n|---|---|---|\n")[1:]]
    assert sum(len(table.strip().split("\n")) for table in tables) == len(ROWS) > 20
    assert "docs/explanation/promises.md" in (ROOT / "README.md").read_text(encoding="utf-8")

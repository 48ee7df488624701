"""Every promise of tests/promises.yaml names a test that exists."""

import ast

import pytest

from contracts.run_file import ROOT
from system.yaml_files import read_yaml

PROMISES = [entry for entries in read_yaml(ROOT / "tests" / "promises.yaml").values() for entry in entries]


@pytest.mark.parametrize("entry", PROMISES, ids=range(len(PROMISES)))
def test_a_promise_names_a_test_that_exists(entry: dict[str, str]) -> None:
    assert set(entry) == {"promise", "test", "limits"}
    file, _, name = entry["test"].partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name.startswith("test_") and name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    }, f"{file} has no {name}"


def test_the_promises_are_read_and_their_page_is_linked() -> None:
    assert len(PROMISES) > 60
    assert "docs/explanation/promises.md" in (ROOT / "README.md").read_text(encoding="utf-8")

"""Changes that are made to a module when it is imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from frameworks import import_hooks


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that can be imported, once for each test."""
    (tmp_path / "changed_at_import.py").write_text("log = ['own']\n")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "changed_at_import", raising=False)
    return "changed_at_import"


def test_each_change_is_made_after_the_module_s_own_code(name: str) -> None:
    for word in ("first", "second"):
        import_hooks.after_import({name: lambda module, word=word: module.log.append(word)})
    import_hooks.after_import({"another": lambda module: pytest.fail("of another module")})
    assert importlib.import_module(name).log == ["own", "first", "second"]


def test_a_module_that_is_imported_already_is_changed_at_once(name: str) -> None:
    module = importlib.import_module(name)
    import_hooks.after_import({name: lambda module: module.log.append("late")})
    assert module.log == ["own", "late"]


def test_a_module_that_is_not_there_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    import_hooks.after_import({"nowhere_to_be_imported": lambda module: pytest.fail("there is none")})
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("nowhere_to_be_imported")

"""What tests share is made once by the hash of what it depends on, and a maker that failed leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.run_file import ROOT
from tests import made_once


def test_a_folder_is_made_once_for_each_argument_and_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_once, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(made_once, "ROOT", tmp_path)
    script, calls = tmp_path / "script.py", list[Path]()

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "result").write_text(str(len(calls)))

    def result(argument: int) -> str:
        folder = made_once.folder_made_once("thing", make, depends_on=argument, files=[script])
        return (folder / "result").read_text()

    script.write_text("one")
    assert [result(0), result(0), result(1), result(0)] == ["1", "1", "2", "1"]
    script.write_text("two")
    assert result(0) == "3"


def test_a_maker_that_fails_leaves_nothing_to_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_once, "CACHE", tmp_path / "cache")

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        made_once.folder_made_once("thing", fail, depends_on=0, files=[ROOT / "Makefile"])
    entry = made_once.folder_made_once("thing", lambda folder: (folder / "whole").touch(), depends_on=0,
                                       files=[ROOT / "Makefile"])  # fmt: skip
    assert [file.name for file in entry.iterdir()] == ["whole"]

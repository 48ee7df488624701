"""Every study says its question, its command, and its result with commit and date; its pictures are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from contracts.run_file import ROOT

STUDIES = sorted(file.parent for file in (ROOT / "studies").glob("*/__init__.py"))


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_a_study_has_question_command_and_result(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    question, _, result = text.partition("## Result")
    assert question.startswith("# ") and question.split("\n")[0].endswith("?")
    commands = re.search(r"```\n(.+?)\n```", question, re.DOTALL)
    assert commands and re.search(rf"study[_ ]{folder.name}\b", commands[1])
    assert re.search(r"\b\d{1,2} [A-Z][a-z]+ 2\d{3}\b", result) and re.search(r"\bcommit [0-9a-f]{7}\b", result)
    assert all((folder / image).is_file() for image in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text))


def test_the_list_of_studies_is_whole() -> None:
    listed = re.findall(r"\]\((\w+)/README\.md\)", (ROOT / "studies" / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [folder.name for folder in STUDIES]

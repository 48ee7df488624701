"""`make test ONLY=…`: which test files belong to a folder of the product."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.run_file import ROOT
from tests.belonging import belongs, dotted_name
from tests.source_folders import FOLDERS


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("from grading.extraction import extract", "grading", True),
        ("from grading.extraction import extract", "grading/extraction.py", True),
        ("from grading import extraction", "grading/extraction.py", True),
        ("from grading import verdicts", "grading/extraction.py", False),
        ("import grading_of_others", "grading", False),
        ("COMMAND = ['-m', 'eval.generate']", "eval", True),
        ("FILE = 'workflows/train.smk'", "workflows", True),
        ("COMMAND = ['snakemake', '--quiet']", "workflows", True),
        ("from contracts.run_file import ROOT", "contracts", False),
    ],
)
def test_what_belongs(tmp_path: Path, text: str, path: str, expected: bool) -> None:
    file = tmp_path / "test_x.py"
    file.write_text(text)
    assert belongs(file, path) is expected


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_of_the_product_has_tests(folder: str) -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    mine = [file for file in files if belongs(file, folder)]
    assert mine and len(mine) < len(files)


@pytest.mark.parametrize("path", ["", "gradin", "tests/unit", "/etc", "../shared"])
def test_what_is_no_folder_of_the_product(path: str) -> None:
    with pytest.raises(ValueError):
        dotted_name(path)

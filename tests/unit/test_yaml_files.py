"""YAML files: one sentence for what cannot be read, and libyaml reads what the slower loader reads."""

from pathlib import Path

import pytest
import yaml

from contracts.run_file import ROOT
from system.yaml_files import _Loader, read_yaml
from tests.user_errors import refused

FOLDERS = ("analysis", "cluster", "config", "eval", "frameworks", "profiles", "recipes", "results/reference", "tasks")


@pytest.mark.slow
def test_libyaml_reads_every_file_as_the_slower_loader_does() -> None:
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.yaml"))]
    assert len(files) > 50
    for file in files:
        assert read_yaml(file) == yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader), file


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 100_000,
        "a: " + "[" * 100_000 + "]" * 100_000,
        "a:\n" + "{a:" * 60_000,
        "- " * 100_000 + "1",
        "a: [1",
        "a: b: c",
        "a: 1\n\tb: 2",
        "a: !!python/object/apply:os.getcwd []",
        "a0: &a0 [1]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}, *a{n}]\n" for n in range(40)),
        "a: &a [*a]",
    ],
    ids=lambda text: text[:12],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    with refused("invalid-yaml"):
        read_yaml(file)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("steps: 24\na: 1\nsteps: 3", 3),
        ("demo: {steps: 24, steps: 3}", 1),
        ("a:\n  - {b: 1}\n  - b: 1\n    b: 2", 4),
        ("a: 1\na: '1'", 2),
        ("a: {b: 1}\na: {b: 1}", 2),
        ("seeds: [0]\n'seeds': [1]", 2),
        ("x: &x {a: 1}\ny: {<<: *x, b: 1, b: 2}", 2),
    ],
)
def test_a_key_that_is_there_twice_is_an_error(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text(text)
    with refused("repeated-key", line=line):
        read_yaml(file)


def test_a_key_that_is_there_twice_with_one_value_has_that(tmp_path: Path) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text("a: 1\nb: x\na: 1\nb: x  # again")
    assert read_yaml(file) == {"a": 1, "b": "x"}


def test_a_merged_key_may_be_replaced(tmp_path: Path) -> None:
    file = tmp_path / "merged.yaml"
    file.write_text("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  a: 3")
    assert read_yaml(file)["y"] == {"a": 3, "b": 2}


def test_each_reader_has_a_copy_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    file.write_text("a: [1]")
    read_yaml(file)["a"].append(2)
    assert read_yaml(file) == {"a": [1]}
    file.write_text("a: [3]")
    assert read_yaml(file) == {"a": [3]}


def test_an_error_names_the_line_that_it_is_in(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("a: [b")
    with refused("invalid-yaml"):
        read_yaml(file)

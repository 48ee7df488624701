"""The last lines of a test run: what this machine lacks, and what brings it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from tests.skipped_tests import KINDS, kind_of, summary_lines, tell_ci


def stated_reasons() -> Iterator[tuple[str, str]]:
    """The texts of all skips in the tests, with what stands in braces left out, and where they are."""
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            texts = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
            if node.func.attr == "skip":
                texts += node.args[:1]
            if node.func.attr not in ("skip", "skipif"):
                continue
            for text in texts:
                parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                plain = "".join(part.value for part in parts if isinstance(part, ast.Constant))
                if plain:
                    yield plain.replace("environment  ", "environment x "), f"{file.relative_to(ROOT)}:{node.lineno}"


@pytest.mark.slow
def test_every_skip_has_a_kind() -> None:
    reasons = list(stated_reasons())
    assert len(reasons) > 20
    assert not [f"{where}: {reason}" for reason, where in reasons if kind_of(reason) is None]


@pytest.mark.parametrize(
    ("reason", "what"),
    [
        ("needs Chromium (Debian package chromium)", "Debian packages"),
        ("no sandbox on this machine: bubblewrap is not installed", "Debian packages"),
        ("slurmctld, slurmd not installed: apt-get install slurmctld", "Debian packages"),
        ("the eval environment is not built (envs/build.py eval)", "environments"),
        ("environment verl is not built; make test builds it", "environments"),
        ("needs the data mirror at ../shared/data", "public files"),
        ("the demo was not run here (make demo)", "results"),
        ("mounting a small tmpfs needs root", "a machine of another kind"),
    ],
)
def test_the_kind_of_a_reason(reason: str, what: str) -> None:
    kind = kind_of(reason)
    assert kind is not None and kind.what == what


def test_one_line_for_each_kind_with_its_command() -> None:
    reasons = ["needs Chromium"] * 3 + ["no sandbox on this machine: bubblewrap is not installed", "needs strace"]
    lines = summary_lines([*reasons, "needs the data mirror at ../shared/data", "the moon is not full"])
    assert lines == [
        "5 tests need Debian packages (3 chromium, 1 sandbox, 1 strace): `make test-setup` installs them",
        f"1 test needs public files (1 data mirror): {KINDS[2].remedy}",
        "1 test: the moon is not full",
    ]


def test_ci_is_told_on_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    tell_ci("nothing")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    tell_ci("3 tests need root")
    assert (tmp_path / "page.md").read_text() == "- not tested: 3 tests need root\n"

"""`crosszero new`: a task, runs and a framework in a copy of the project, and the tests there that go over all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli import new
from contracts.run_file import ROOT
from tests.user_errors import printed_code, refused
from tests.workflow import miniature

pytestmark = pytest.mark.slow
MADE = (
    ("task", "anagrams"), ("framework", "skyhook"), ("run", "openr1/mine", "--from", "openr1/qwen2.5-math-7b"),
    ("run", "mine/first", "--from", "openr1/qwen2.5-math-7b"),
)  # fmt: skip
NAMES = "anagrams or skyhook or mine or imports or published_model or every_task_is_named"
# Tests that go over all tasks, runs or frameworks.
OVER_ALL = [
    "test_floors.py", "test_tasks.py", "test_run_file.py", "test_fidelity.py", "test_adapters.py",
    "test_release_defaults.py", "test_cluster.py", "test_demo_rewards.py", "test_toolchain.py",
    "test_trainer_process.py", "test_hostile_text.py", "report/test_run_titles.py", "../documented/test_gpu_page.py",
]  # fmt: skip


def in_copy(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(project)}
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a task, a framework and two runs more; what `crosszero new` printed is in printed.txt."""
    folder = miniature.copy_sources(tmp_path_factory.mktemp("new"))
    for part in ("cli", "conformance", "examples", "tests", "docs", "pyproject.toml", "Makefile", "README.md"):
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, folder / part)
    printed = [in_copy(folder, "cli.main", "new", *arguments) for arguments in MADE]
    assert [done.returncode for done in printed] == [0] * len(MADE), printed
    (folder / "printed.txt").write_text("".join(done.stdout for done in printed))
    return folder


def test_every_file_that_is_printed_is_there_and_says_what_to_edit(project: Path) -> None:
    lines = re.findall(r"^([\w./-]+/[\w./-]+)  +(.*)$", (project / "printed.txt").read_text(), re.MULTILINE)
    assert len(lines) == 5 + 7 + 1 + 2
    assert all((project / path).is_file() and edit for path, edit in lines)
    text = "".join((project / path).read_text() for path, _ in lines if not path.endswith("fidelity.yaml"))
    assert not re.search("largest[_-]number|LargestNumber|newframework", text)


def test_what_it_writes_passes_the_linters_and_mypy(project: Path) -> None:
    for arguments in (("ruff", "check", "."), ("ruff", "format", "--check", "."),
                  ("mypy", f"--cache-dir={ROOT / '.mypy_cache'}", "tasks/anagrams", "frameworks/skyhook")):  # fmt: skip
        done = in_copy(project, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_what_it_writes_passes_the_tests_that_go_over_all(project: Path) -> None:
    files = [f"tests/unit/{file}" for file in OVER_ALL]
    done = in_copy(project, "pytest", "-q", "-p", "no:cacheprovider", "-m", "", "-k", NAMES, *files)
    assert done.returncode == 0 and re.search(r"^([3-9]\d) passed", done.stdout, re.MULTILINE), done.stdout


def test_a_framework_says_what_is_not_written_yet(project: Path) -> None:
    run = project / "recipes/openr1/mine.yaml"
    before = run.read_text()
    run.write_text(f"{before}framework: skyhook\n")
    done = in_copy(project, "frameworks", "check", "--framework", "skyhook")
    run.write_text(before)
    assert done.returncode and "write stated_settings in frameworks/skyhook/command.py" in done.stderr, done.stderr


def test_nothing_is_overwritten(project: Path) -> None:
    for arguments in MADE:
        done = in_copy(project, "cli.main", "new", *arguments)
        assert done.returncode and printed_code(done.stderr) == "name-taken"
    with refused("file-exists", files=["README.md"]):
        new.write_files({"README.md": "", "recipes/none.yaml": ""})
    assert not (ROOT / "recipes" / "none.yaml").exists()


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [("task", "Anagrams", "unusable-name"), ("task", "class", "unusable-name"), ("task", "step", "name-in-use"),
     ("framework", "ray", "name-in-use"), ("framework", "sky-rl", "unusable-name"), ("task", "math", "name-taken")],
)  # fmt: skip
def test_a_name_that_would_not_do_is_refused(kind: str, name: str, code: str) -> None:
    with refused(code, name=name):
        new.check_module_name(kind, name, ["math"])


def test_a_run_that_extends_another_recipe_is_refused() -> None:
    with refused("extends-other-recipe"):
        new.run_files("mine/first", "openr1/qwen2.5-math-7b-random")
    with refused("unknown-name"):
        new.run_files("openr1/mine", "openr1/qwen2.5-math-7c")
    with refused("unusable-name"):
        new.run_files("mine", "openr1/qwen2.5-math-7b")

"""Files and folders appear whole or not at all, whoever else writes them and whoever is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from system import durable
from tests import budgets
from tests.unit.model_folders import CONTENT, weights
from tests.user_errors import refused

WRITES = """
import sys, time
from pathlib import Path
from system import durable
path, mark = Path(sys.argv[1]), sys.argv[2]
with durable.new(path) as made:
    made.mkdir()
    (made / "provenance.json").write_text("{}")
    print("writing", flush=True)
    if mark == "wait":
        sys.stdin.readline()
    for number in range(50):
        (made / f"file-{number}").write_text(mark * 1000)
"""


def writer(path: Path, mark: str) -> subprocess.Popen[str]:
    """A process that has begun to write a folder of 50 files."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", WRITES, path, mark], cwd=ROOT, text=True, **pipes)
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    return process


def test_nothing_changes_where_writing_fails(tmp_path: Path) -> None:
    durable.write_text(tmp_path / "file", "old")
    with pytest.raises(ZeroDivisionError), durable.new(tmp_path / "file") as written:
        written.write_text("half")
        raise ZeroDivisionError
    assert (tmp_path / "file").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_folder_of_ours_is_replaced_and_no_other(tmp_path: Path) -> None:
    for content in ("first", "second"):
        with durable.new(tmp_path / "made") as written:
            written.mkdir()
            durable.write_text(written / durable.RECORD, content)
    assert (tmp_path / "made" / durable.RECORD).read_text() == "second"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    with refused("folder-in-use"), durable.new(tmp_path / "home") as written:
        written.mkdir()
    with pytest.raises(IsADirectoryError):
        durable.write_text(tmp_path / "home", "text")
    assert (tmp_path / "home" / "thesis.tex").is_file()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["home", "made"]


def test_what_a_killed_process_left_is_removed_and_a_living_one_is_left_alone(tmp_path: Path) -> None:
    killed, living = writer(tmp_path / "made", "wait"), writer(tmp_path / "made", "wait")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (tmp_path / f".made.abc{durable.PARTIAL}").mkdir()  # killed before it took its lock
    assert len(list(tmp_path.iterdir())) == 3
    assert writer(tmp_path / "made", "x").wait() == 0
    assert len(list(tmp_path.iterdir())) == 2  # what is made, and the living one's
    living.communicate("\n")
    assert living.returncode == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["made"]
    assert (tmp_path / "made" / "file-49").read_text() == "wait" * 1000  # the last one stays


def test_other_files_with_a_similar_name_are_left_alone(tmp_path: Path) -> None:
    for name in (".made.partial", ".made2.abc.partial", ".made.abc.part"):
        (tmp_path / name).mkdir()
    durable.write_text(tmp_path / "made", "text")
    durable.write_text(tmp_path / "[m]ade", "text")
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.slow
def test_folders_written_at_once_are_whole(tmp_path: Path) -> None:
    for _ in range(5):
        processes = [writer(tmp_path / "made", mark) for mark in "abcd"]
        assert [process.wait() for process in processes] == [0, 0, 0, 0]
        assert [entry.name for entry in tmp_path.iterdir()] == ["made"]
        texts = {file.read_text() for file in (tmp_path / "made").glob("file-*")}
        assert len(texts) == 1 and len(list((tmp_path / "made").iterdir())) == 51


@pytest.mark.slow
def test_exports_of_one_checkpoint_at_once_lose_nothing(tmp_path: Path) -> None:
    """The real command. It used to share one partial folder: a checkpoint was lost, with status 0."""
    (tmp_path / "model").mkdir()
    for name, content in CONTENT.items():
        (tmp_path / "model" / name).write_text(content)
    weights(tmp_path / "model" / "model.safetensors")
    output = tmp_path / "checkpoints" / "step-0"
    command_line = ["-m", "frameworks", "export", "--run", "openr1/qwen2.5-math-7b", "--scale", "demo", "--seed", "0"]
    command_line += [
        "--model",
        str(tmp_path / "model"),
        "--work",
        str(tmp_path),
        "--step",
        "0",
        "--output",
        str(output),
    ]
    for _ in range(3 if budgets.ALL else 1):
        processes = [
            subprocess.Popen([sys.executable, *command_line], cwd=ROOT, stderr=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        said = [process.communicate()[1] for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0, 0], said
        assert {file.name for file in output.iterdir()} == {*CONTENT, "model.safetensors", "provenance.json"}
        assert [entry.name for entry in output.parent.iterdir()] == ["step-0"]

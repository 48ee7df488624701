"""A disk that fills up, or cannot be written to, at a random moment: one clear sentence, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults import bed
from tests.faults.book import Book

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
PAGE = 4096
Mount = Callable[[Path, str], None]


@pytest.fixture
def mounted() -> Iterator[Mount]:
    """Puts a folder on a file system of its own, or mounts that anew with other options."""
    places: list[Path] = []

    def mount(folder: Path, options: str) -> None:
        if folder in places:
            subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)
            return
        content = shutil.move(folder, folder.with_name(f".{folder.name}"))
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("mounting a small tmpfs needs root")
        places.append(folder)
        shutil.copytree(content, folder, dirs_exist_ok=True, symlinks=True)

    yield mount
    for mount_point in places:
        subprocess.run(["umount", "--lazy", mount_point], check=True)


def size(folder: Path) -> int:
    """What the files of a folder take on a tmpfs, in bytes."""
    return sum(-(-path.lstat().st_size // PAGE) * PAGE for path in folder.rglob("*"))


def trials(quick: set[tuple[str, str]]) -> list[object]:
    """A results folder for every stage, and a work folder for those that have one."""
    places = [(stage, "results") for stage in bed.STAGES]
    places += [(name, "work") for name, stage in bed.STAGES.items() if stage.work]
    return [
        pytest.param(
            *folder_name, id="-".join(folder_name), marks=() if folder_name in quick else pytest.mark.faults_long
        )
        for folder_name in places
    ]


@pytest.mark.parametrize(("stage", "folder_name"), trials({("grade", "results")}))
def test_a_disk_that_fills_up_and_then_has_room(
    bed_of: bed.Bed, book: Book, mounted: Mount, tmp_path: Path, stage: str, folder_name: str
) -> None:
    draw = bed.rng("disk full", stage, folder_name)
    with book.trial(f"disk full: {folder_name}", stage, 0) as outcome:
        project = bed_of.without(stage, tmp_path)
        (project / folder_name).mkdir(exist_ok=True)
        before, wanted = size(project / folder_name), size(bed_of.project / folder_name)
        room = int(draw.random() * max(wanted - before, PAGE))
        mounted(project / folder_name, f"size={(before + room) // PAGE * PAGE}")
        with bed.cleared(project):
            outcome.append(refused_or_done(bed_of, project, stage))
            mounted(project / folder_name, "size=1g")
            outcome.append(outcome[0] if bed_of.same_command_again(project, stage) else "")


@pytest.mark.parametrize(("stage", "folder_name"), trials({("score", "results")}))
def test_a_file_system_that_is_read_only_for_a_while(
    bed_of: bed.Bed, book: Book, mounted: Mount, tmp_path: Path, stage: str, folder_name: str
) -> None:
    with book.trial(f"read-only: {folder_name}", stage, 0) as outcome:
        project = bed_of.without(stage, tmp_path)
        (project / folder_name).mkdir(exist_ok=True)
        mounted(project / folder_name, "size=1g")
        mounted(project / folder_name, "ro")
        with bed.cleared(project):
            outcome.append(refused_or_done(bed_of, project, stage))
            mounted(project / folder_name, "rw")
            outcome.append(outcome[0] if bed_of.same_command_again(project, stage) else "")


def refused_or_done(test_bed: bed.Bed, project: Path, stage: str) -> str:
    """Run the stage once: a clear sentence, or all that it makes."""
    command = bed.Command(project, stage, os.getpid())
    status = command.wait()
    if status == test_bed.status[stage]:
        bed.compare(test_bed.expected[stage], bed.state(project, stage))
        return "same result"
    if bed.clear_sentence(command.output()) is None:
        raise bed.Fault(f"status {status} without a clear sentence: {command.output()[-1500:]}")
    return "one clear sentence"

"""What another user could have put into the temporary folder before us: nothing of it is followed, filled or run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from frameworks import trainer_environment
from system import gpu_locks, private_folder
from tests import needs
from tests.user_errors import refused

OTHER = 54321  # a user who is not there
as_root = needs.root


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder as /tmp is: everybody may write, and nobody may rename what is another's."""
    assert tmp_path.is_dir()  # pytest makes its own folder before the temporary folder is another
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # short, as sockets need it
        Path(folder).chmod(0o1777)
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.delenv("SLURM_JOB_ID", raising=False)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
        yield Path(folder)
    for name in list(gpu_locks._held):
        gpu_locks._held.pop(name).release()


def take(_: Path) -> None:
    gpu_locks.take(1, "a run")


def scratch(temporary: Path) -> None:
    trainer_environment.empty_scratch(temporary / "work")


USES = pytest.mark.parametrize("use", [take, scratch])


def named(temporary: Path) -> Path:
    return temporary / f"cz-{os.getuid()}"


@USES
def test_it_is_this_users_alone_and_the_same_each_time(temporary: Path, use: object) -> None:
    before = os.umask(0)
    try:
        assert callable(use)
        use(temporary)
        use(temporary)
    finally:
        os.umask(before)
    assert named(temporary).stat().st_mode & 0o777 == 0o700
    assert {entry.stat().st_mode & 0o077 for entry in named(temporary).iterdir()} == {0}


@USES
@pytest.mark.parametrize("points_to", ["a folder", "nothing", "a file"])
def test_a_link(temporary: Path, tmp_path: Path, points_to: str, use: object) -> None:
    mine = tmp_path / "mine"
    if points_to == "a folder":
        for name in ("choosing", "0"):
            (mine / "gpus").mkdir(parents=True, exist_ok=True, mode=0o700)
            (mine / "gpus" / name).write_text("precious")
        mine.chmod(0o700)
    elif points_to == "a file":
        mine.write_text("precious")
    named(temporary).symlink_to(mine)
    with refused("folder-not-private"):
        assert callable(use)
        use(temporary)
    files = [mine] if mine.is_file() else [path for path in mine.rglob("*") if path.is_file()]
    assert {file.read_text() for file in files} <= {"precious"} and len(files) == {"a folder": 2, "a file": 1}.get(
        points_to, 0
    )


@USES
@as_root
def test_a_folder_of_another_user(temporary: Path, use: object) -> None:
    named(temporary).mkdir(mode=0o700)
    os.chown(named(temporary), OTHER, OTHER)
    with refused("folder-not-private"):
        assert callable(use)
        use(temporary)
    assert not list(named(temporary).iterdir())


@USES
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o750])
def test_a_folder_that_others_may_use(temporary: Path, mode: int, use: object) -> None:
    named(temporary).mkdir()
    named(temporary).chmod(mode)
    with refused("folder-not-private"):
        assert callable(use)
        use(temporary)


@as_root
def test_a_link_and_a_folder_inside_a_folder_of_another_user(temporary: Path) -> None:
    (planted := temporary / "planted").mkdir()
    os.chown(planted, OTHER, OTHER)
    with refused("folder-not-private"):
        private_folder.make(planted / "ray" / "deeper")


def test_a_place_where_everybody_may_rename(temporary: Path) -> None:
    temporary.chmod(0o777)
    with refused("folder-not-private"):
        private_folder.of_user()


def test_below_a_closed_folder_others_may_have_rights(temporary: Path) -> None:
    """Ray gives its folders the mode 777, and on several nodes of one machine it is there first."""
    ray = private_folder.make(private_folder.of_user() / "0123456789" / "ray")
    for folder in (ray, ray.parent):
        folder.chmod(0o777)
    assert private_folder.make(ray / "tmp").stat().st_mode & 0o777 == 0o700


def test_the_users_runtime_folder_is_preferred_if_it_is_the_users(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    assert private_folder.of_user().parent == tmp_path
    assert private_folder.of_user(on_disk=True).parent == temporary
    tmp_path.chmod(0o755)  # as after `su`, where it is another's, it is not trusted
    assert private_folder.of_user().parent == temporary


def test_a_folder_for_sockets_has_a_short_path(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (long := temporary / ("long" * 20)).mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", None)
    scratch = trainer_environment.empty_scratch(temporary / "work")
    try:
        assert len(str(scratch)) <= trainer_environment.LONGEST_SCRATCH and scratch.stat().st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(scratch)


def test_what_a_killed_process_left_is_not_used_by_another_of_its_id(temporary: Path) -> None:
    """Both have the same process id here; in the second, a socket of the first's name could not be bound."""
    killed = private_folder.new("forks")
    (killed / "socket").touch()
    later = private_folder.new("forks")
    assert later.parent == killed.parent and not list(later.iterdir()) and later.stat().st_mode & 0o777 == 0o700


def test_what_a_killed_training_left_is_removed_without_following_links(temporary: Path, tmp_path: Path) -> None:
    scratch = trainer_environment.empty_scratch(temporary / "work")
    (tmp_path / "mine").write_text("precious")
    (scratch / "link").symlink_to(tmp_path)
    (scratch / "left").touch()
    assert trainer_environment.empty_scratch(temporary / "work") == scratch
    assert not list(scratch.iterdir()) and (tmp_path / "mine").read_text() == "precious"


@pytest.mark.slow
@as_root
def test_the_python_that_another_user_planted_does_not_run(temporary: Path) -> None:
    """The interpreter of verl's workers is a script in the scratch folder."""
    scratch = trainer_environment.empty_scratch(temporary / "work")
    os.chown(scratch.parent, OTHER, OTHER)
    (scratch / "python").write_text("#!/bin/sh\ntouch ran\n")
    code = (
        "from pathlib import Path; from frameworks.trainer_environment import empty_scratch; "
        f"empty_scratch(Path('{temporary}/work'))"
    )
    command_line = [sys.executable, "-c", code]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and f"belongs to user {OTHER}" in done.stderr

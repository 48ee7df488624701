"""What a user or an administrator can fix is one sentence; a mistake in the code keeps its traceback."""

from __future__ import annotations

import errno
import pickle
import subprocess
from pathlib import Path

import pytest

from system import errors
from system.errors import UserError, message, run_command


@pytest.mark.parametrize(
    "number",
    [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EISDIR, errno.ENOTDIR,
     errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP, errno.EIO, errno.ESTALE],
)  # fmt: skip
def test_an_error_of_files_names_the_file(number: int) -> None:
    said = message(OSError(number, "as the system says", "the/place"))
    assert said is not None and "the/place" in said and "\n" not in said
    renamed = message(OSError(number, "as the system says", ".place.partial", None, "the/place"))
    assert renamed == said  # of a renaming, the place where it was to be


def test_a_full_disk_under_safetensors_is_named() -> None:
    """Its SafetensorError is no OSError."""
    said = message(Exception("Error while serializing: I/O error: No space left on device (os error 28)"))
    assert said is not None and "the disk is full" in said


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(number: int) -> None:
    said = message(OSError(number, "as the system says"))
    assert said is not None and "flock" in said


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyError("x"), OSError(errno.EBADF, "x"), OSError("x"), FileNotFoundError(errno.ENOENT, "x"),
     ModuleNotFoundError("x", name="contracts.gone"), subprocess.CalledProcessError(1, "x")],
)  # fmt: skip
def test_a_mistake_in_the_code_keeps_its_traceback(error: Exception) -> None:
    assert message(error) is None

    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        run_command(fail)


def test_a_real_command_says_it_once(tmp_path: Path) -> None:
    def fail() -> None:
        (tmp_path / "missing" / "file").write_text("text")

    with pytest.raises(SystemExit) as end:
        run_command(fail)
    assert str(end.value).startswith("Error: ") and str(tmp_path / "missing" / "file") in str(end.value)
    assert message(UserError("as it is", code="a-code")) == "as it is [a-code]"
    assert errors.message(ModuleNotFoundError("x", name="nowhere_to_be_found")) is not None


def test_an_error_keeps_its_code_and_facts_between_processes_and_places() -> None:
    error = UserError("three are missing; make them", code="missing-samples", missing=3)
    for same in (pickle.loads(pickle.dumps(error)), error.within("here")):
        assert (same.code, same.facts) == ("missing-samples", {"missing": 3})
    assert str(error.within("here")).startswith("here: ") and error.message.endswith(" [missing-samples]")

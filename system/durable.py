"""Files and folders that appear whole or not at all, and survive a power cut once they are there.

Each is written in a folder of its own beside its place, `.<name>.<random>.partial`, flushed to the disk, and renamed
into place; then the entry of its folder is flushed too. A kernel lock distinguishes the partial folders of living
processes from those of killed ones, which the next writer of the same name removes.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from system.errors import UserError

PARTIAL = ".partial"
RECORD = "provenance.json"  # in every folder that is made by this project


@contextmanager
def new(path: Path) -> Iterator[Path]:
    """Yield the place to write a file or folder at; after the block it is at `path`, whole and on the disk.

    If the block fails, nothing has changed. Several processes may write the same path; what the last one made stays.

    Args:
        path: its folder is created if needed; a file or folder that is there is replaced.

    Raises:
        UserError: a folder that was not made by this project is in its place.
    """
    path = path.absolute()
    make_folder(path.parent)
    _remove_leftovers(path)
    partial, lock = _own_folder(path)
    try:
        with lock:
            yield partial / path.name
            publish(partial / path.name, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_text(path: Path, text: str, errors: str = "strict") -> None:
    """Write a UTF-8 file, whole and on the disk.

    Args:
        path: of the file.
        text: its content.
        errors: what to do with lone surrogates, as for str.encode.
    """
    if path.exists() and not path.is_file():  # such as /dev/stdout
        path.write_text(text, encoding="utf-8", errors=errors)
        return
    with new(path) as file:
        file.write_text(text, encoding="utf-8", errors=errors)


def publish(written: Path, path: Path) -> None:
    """Flush a file or folder to the disk and rename it to `path`, on the same file system.

    Args:
        written: what was written; its folder takes a folder that is replaced, and is to be removed by the caller.
        path: its place.

    Raises:
        UserError: a folder that was not made by this project is in its place.
    """
    sync_tree(written)
    while True:
        try:
            written.replace(path)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if not (path / RECORD).is_file():
            raise UserError(
                f"{path} should be a new folder, but holds other files: name another, or delete it",
                code="folder-in-use",
            )
        with suppress(FileNotFoundError):  # another process was faster
            path.rename(tempfile.mkdtemp(dir=written.parent))
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some network file systems cannot flush folders
        if not (path.is_dir() and error.errno in (errno.EINVAL, errno.EBADF)):
            raise
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Wait until a file, or a folder with all that it holds, is on the disk."""
    for folder, _, files in os.walk(path, topdown=False):
        for name in files:
            file = Path(folder, name)
            if file.is_file() and not file.is_symlink():  # a FIFO would block
                sync(file)
        sync(Path(folder))
    if path.is_file():
        sync(path)


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, where they are missing, and flush their entries to the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def _own_folder(path: Path) -> tuple[Path, IO[str]]:
    while True:
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=PARTIAL, dir=path.parent))
        if lock := _lock(partial):
            return partial, lock


def _remove_leftovers(path: Path) -> None:
    """Remove what killed writers of `path` left; what a living one writes is locked."""
    for partial in path.parent.glob(f".{glob.escape(path.name)}.*{PARTIAL}"):
        with suppress(PermissionError):  # another user's
            if lock := _lock(partial):
                with lock:
                    shutil.rmtree(partial, ignore_errors=True)


def _lock(partial: Path) -> IO[str] | None:
    """The open lock of a partial folder; None if another process holds it or removes the folder."""
    try:
        file = (partial / "lock").open("a")  # for writing, as locks on NFS require
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except OSError:
        file.close()
        raise
    if os.fstat(file.fileno()).st_nlink == 0:
        file.close()
        return None
    return file

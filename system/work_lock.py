"""Folders that one process at a time writes to: kernel locks, which end with their process, however it ends.

`sole_user` is for a job and its work folder, `Folders` for a whole workflow with its work and results. The locks hold
on one machine, and between machines where the file system has `flock` for all of them (docs/how-to/slurm.md).
"""

from __future__ import annotations

import atexit
import os
import platform
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from system import durable
from system.errors import UserError

PATIENCE_SECONDS = 30.0  # a job of a killed workflow may need a moment to end
POLL_SECONDS = 0.2


@contextmanager
def sole_user(folder: Path, doing: str) -> Iterator[None]:
    """Hold the lock of a work folder, which is created if needed.

    Args:
        folder: to be locked.
        doing: what this process does in it, for the message; such as "training".

    Raises:
        UserError: another process still holds it after PATIENCE_SECONDS.
    """
    durable.make_folder(folder)
    lock = FileLock(folder / ".lock", timeout=PATIENCE_SECONDS, poll_interval=POLL_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            f"another process is {doing} in {folder}: wait for it, end it, or use another work folder",
            code="folder-locked",
            folder=str(folder),
        ) from None
    try:
        yield
    finally:
        lock.release()


class Folders:
    """The folders that a workflow writes to, locked from `acquire` to the end of the process.

    A workflow decides what is missing before it may lock. What another one made in between would be made again; so each
    owner leaves a mark when it begins and when it ends, and a mark that changed since this object was made is refused.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        """Remember the marks of these folders, which need not exist yet."""
        self._folders = sorted({Path(os.path.realpath(folder)) for folder in folders})
        self._locks = [FileLock(folder / ".lock", blocking=False) for folder in self._folders]
        self._marks = [self._mark(folder) for folder in self._folders]

    def acquire(self) -> None:
        """Lock the folders, which are created if needed.

        Raises:
            UserError: another workflow writes to one of them, or did so since this object was made.
        """
        for folder, lock in zip(self._folders, self._locks, strict=True):
            durable.make_folder(folder)
            try:
                lock.acquire()
            except Timeout:
                raise UserError(
                    f"another snakemake uses the folder {folder} ({self._mark(folder)}): wait until it ends, or set "
                    "`work` and `results` to other folders",
                    code="folder-locked",
                    folder=str(folder),
                ) from None
        for folder, mark in zip(self._folders, self._marks, strict=True):
            if self._mark(folder) != mark:
                raise UserError(
                    f"another snakemake used the folder {folder} while this one started: run the same command again",
                    code="folder-changed",
                    folder=str(folder),
                )
        self._leave_marks("started")
        atexit.register(self._end)

    def _end(self) -> None:
        with suppress(OSError):  # a full disk
            self._leave_marks("ended")

    def _leave_marks(self, event: str) -> None:
        for folder in self._folders:
            durable.write_text(
                folder / ".owner", f"process {os.getpid()} on {platform.node()}, {event}, {secrets.token_hex(4)}\n"
            )

    @staticmethod
    def _mark(folder: Path) -> str:
        try:
            return (folder / ".owner").read_text(encoding="utf-8", errors="replace").strip()
        except FileNotFoundError:
            return ""

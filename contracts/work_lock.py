"""A work folder is used by one process at a time: a kernel lock, which ends with its process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from contracts.errors import UserError

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
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=PATIENCE_SECONDS, poll_interval=POLL_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            f"another process is {doing} in {folder}: wait for it, end it, or use another work folder"
        ) from None
    try:
        yield
    finally:
        lock.release()

"""Mistakes a user can fix: one clear sentence, no traceback, a non-zero exit status."""

from __future__ import annotations

import errno
import os
import re
import resource
import select
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from system.exit_status import RESUMABLE
from system.text_safety import protect_output

ROOT = Path(__file__).resolve().parent.parent


class UserError(Exception):
    """A mistake that a user can fix: what was needed, what was found and what to do, in one sentence.

    Attributes:
        code: the kind of mistake, such as `unknown-name`. Tests look at it, so that sentences can be improved.
        facts: numbers and names of this case, such as `missing=3`.
    """

    def __init__(self, sentence: str, *, code: str, **facts: object) -> None:
        """Keep the sentence, its code and its facts."""
        super().__init__(sentence)
        self.code = code
        self.facts: dict[str, Any] = facts

    def __reduce__(self) -> tuple[Any, ...]:
        """For errors that pass between processes."""
        return partial(type(self), code=self.code, **self.facts), self.args

    def within(self, where: str) -> UserError:
        """The same mistake, its sentence after the place where it is."""
        return UserError(f"{where}: {self}", code=self.code, **self.facts)

    @property
    def message(self) -> str:
        """The sentence, and the code in brackets: as commands print it."""
        return f"{self} [{self.code}]"


class StoppedInTime(UserError):
    """The command saved its work and stopped; the same command continues it. The exit status is RESUMABLE."""


LEAST_MEMORY = 1 << 30  # bytes of address space: what pandas, SciPy and matplotlib take, and a fifth more
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_REMEDIES = {
    errno.EROFS: "it is on a read-only file system: name a place that can be written to",
    errno.EACCES: "this user has no permission: change it, or name another place",
    errno.EPERM: "this user has no permission: change it, or name another place",
    errno.ENOENT: "there is no such file or folder: check the path",
    errno.EISDIR: "it is a folder, where a file is needed: check the path",
    errno.ENOTDIR: "a part of the path is a file, where a folder is needed: check the path",
    errno.EEXIST: "it is there already, and is not what is needed: delete it, or name another place",
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    errno.ELOOP: "it is a link to itself: delete the link",
    errno.EIO: "the disk reports an error: see the system's log, and use another disk",
    errno.ESTALE: "it was deleted or moved on another machine: run the same command again",
}


def as_user_error(error: BaseException) -> UserError | None:
    """What a user or an administrator can fix; None for a mistake in the code."""
    if isinstance(error, UserError):
        return error
    if isinstance(error, ModuleNotFoundError):
        if (ROOT / (error.name or "").partition(".")[0]).is_dir():
            return None
        return UserError(
            f"this command needs the package {error.name}, which {sys.prefix} does not have: run it with the python of "
            "another environment, such as .envs/eval-*/bin/python (`python3.11 envs/build.py eval` builds it)",
            code="missing-package",
            package=error.name,
        )
    if written_in_rust := re.search(r"\(os error (\d+)\)$", str(error)):  # safetensors has an exception of its own
        error = OSError(int(written_in_rust[1]), str(error))
    no_memory = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    if no_memory or (isinstance(error, Exception) and _limit_is_reached()):
        return UserError(
            "there is not enough memory: raise `ulimit -v`, ask for more (retries on a cluster do), or look whether an "
            "input is much larger than it should be",
            code="out-of-memory",
        )
    return _file_error(error) if isinstance(error, OSError) else None


def check_memory_limit() -> None:
    """Raise UserError where `ulimit -v` is below what libraries need to be imported, which then fail in any way."""
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed != resource.RLIM_INFINITY and allowed < LEAST_MEMORY:
        raise UserError(
            f"this shell allows a program {allowed >> 10:,} kB of memory, and Python's libraries need "
            f"{LEAST_MEMORY >> 10:,}: raise `ulimit -v`",
            code="out-of-memory",
        )


def _limit_is_reached() -> bool:
    """Whether this process has had most of the memory that `ulimit -v` allows: libraries raise anything then."""
    allowed, status = resource.getrlimit(resource.RLIMIT_AS)[0], Path("/proc/self/status")
    if allowed == resource.RLIM_INFINITY or not status.exists():
        return False
    peak = re.search(r"VmPeak:\s*(\d+) kB", status.read_text(encoding="utf-8"))
    return peak is not None and int(peak[1]) << 10 > 0.9 * allowed


def _file_error(error: OSError) -> UserError | None:
    path = error.filename2 or error.filename
    if error.errno in _FULL:
        return UserError(
            f"the disk is full ({path or 'no file named'}): free some space, or set `results` and `work` in the "
            "configuration to another disk, and run the same command again; finished work is kept",
            code="disk-full",
        )
    if error.errno == errno.EFBIG:
        return UserError(
            f"a file becomes longer than this shell allows ({path or 'no file named'}): raise `ulimit -f`, and run the "
            "same command again; finished work is kept",
            code="file-too-long",
        )
    if error.errno in _NO_LOCKS:
        return UserError(
            "the file system has no file locks (flock), which keep two processes from writing the same files: mount it "
            "with them (Lustre: -o flock), or set `results` and `work` in the configuration to another one",
            code="no-file-locks",
        )
    remedy = _REMEDIES.get(error.errno or 0)
    if path is None or remedy is None:
        return None
    return UserError(f"{path} cannot be used: {remedy}", code="unusable-path", path=str(path), errno=error.errno)


def message(error: BaseException) -> str | None:
    """What to print of an error that a user or an administrator can fix; None for a mistake in the code."""
    fixable = as_user_error(error)
    return fixable.message if fixable else None


def output_is_closed() -> bool:
    """Whether standard output goes to a program that has ended, such as `head`; nothing more is written to it then."""
    output, poll = sys.stdout.fileno(), select.poll()
    poll.register(output, select.POLLOUT)
    closed = any(event & select.POLLERR for _, event in poll.poll(0))
    if closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return closed


def run_command(main: Callable[[], None]) -> None:
    """Run a command-line entry point; what a user or an administrator can fix ends it with one sentence."""
    protect_output()
    try:
        main()
        sys.stdout.flush()
    except StoppedInTime as error:
        print(f"Stopped: {error}", file=sys.stderr)
        sys.exit(RESUMABLE)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and output_is_closed():
            sys.exit(1)
        if (text := message(error)) is None:
            raise
        sys.exit(f"Error: {text}")

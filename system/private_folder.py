"""Folders that no other user can read, fill or replace, for names in the temporary folder that others could guess.

Where all users may write, another user can create a name before us: a link, through which we would write into a file of
ours, or a folder, whose files we would trust or run. So a folder is used only if it is real, ours, closed to others,
and in a place where others cannot rename it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from system.errors import UserError

NOBODY = 65534  # whom root's folders belong to in a container without root


def of_user(*, on_disk: bool = False, longest: int = 1000) -> Path:
    """This user's own folder on this machine, the same for all processes; made if needed.

    Args:
        on_disk: for large files; otherwise $XDG_RUNTIME_DIR, which is in memory, is preferred where there is one.
        longest: characters that the path may have, because the path of a socket is limited to 107 bytes.

    Raises:
        UserError: something else has the name; see check.
    """
    name = f"cz-{os.getuid()}"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and not on_disk and _fault(Path(runtime)) is None:
        return make(Path(runtime) / name)
    folder = Path(tempfile.gettempdir()).absolute() / name
    return make(folder if len(str(folder)) <= longest else Path("/tmp") / name)


def new(purpose: str, *, longest: int = 1000) -> Path:
    """A new folder of this user on this machine; not named by a process id, which a killed process leaves behind.

    Args:
        purpose: what its name begins with.
        longest: as for of_user.
    """
    return Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=of_user(on_disk=True, longest=longest)))


def make(folder: Path) -> Path:
    """The folder, made with its parents for this user alone; raises UserError if what has its name fails the check."""
    for level in (*reversed(folder.parents), folder):
        try:
            level.mkdir(mode=0o700)
        except OSError:  # it is there, or a check of the folder says what is wrong
            continue
    return check(folder)


def check(folder: Path) -> Path:
    """The folder; raises UserError unless it is a real folder of this user, closed to others, in a safe place."""
    if (fault := _fault(folder)) is not None:
        raise UserError(
            f"{folder} should be a folder that only you can use, but {fault}: remove it, or set TMPDIR to a folder of "
            "your own",
            code="folder-not-private",
        )
    return folder


def _fault(folder: Path) -> str | None:
    try:
        # O_NOFOLLOW: a link is refused, wherever it points
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        return "it is a link" if folder.is_symlink() else f"it cannot be opened ({error.strerror})"
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if status.st_uid != os.getuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & 0o077:
        return f"others may use it (its mode is {stat.S_IMODE(status.st_mode):o}, not 700)"
    for parent in reversed(Path(os.path.realpath(folder)).parents):
        above = parent.stat()
        if above.st_uid == os.getuid() and not above.st_mode & 0o077:
            return None  # others do not get below it; there Ray opens its folders to everybody
        if above.st_uid not in (0, os.getuid(), NOBODY):
            return f"{parent} belongs to user {above.st_uid}"
        if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
            return f"everybody may rename what is in {parent}"
    return None

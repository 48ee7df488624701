"""A copy of the project's own files, as git lists them, with the environments of the original."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from system.errors import ROOT, UserError


def project_files() -> list[str]:
    """The files of the project, committed or not, without links and what git ignores.

    Raises:
        UserError: the project is no working copy of git.
    """
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{ROOT} should be a working copy of git: {done.stderr.strip()}", code="no-working-copy")
    return [name for name in done.stdout.split("\0") if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def copy_project(folder: Path) -> list[str]:
    """Write into a folder what differs there from the project's files, and link the environments; returns the files."""
    files = project_files()
    for name in files:
        source, target = ROOT / name, folder / name
        if not target.is_file() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    environments = folder / ".envs"
    if not (environments.is_symlink() or environments.is_dir()):
        environments.symlink_to(ROOT / ".envs")
    return files

"""The command line of a sandbox: bubblewrap with namespaces of its own and no file but Python's, read-only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

from tasks.sandbox import seccomp

HOME = "/python"  # Python's place inside
RUNNER = Path(__file__).with_name("runner.py")
FORK_SERVER = Path(__file__).with_name("fork_server.py")


@cache
def sandbox_command() -> list[str]:
    """bubblewrap and the options that describe the sandbox."""
    python = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    standard = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    inside = f"{HOME}/lib/{standard.name}"
    alone = "--unshare-all --unshare-user --new-session --cap-drop ALL --hostname sandbox"
    nobody = f"--uid 65534 --gid 65534 --clearenv --setenv LD_LIBRARY_PATH {HOME}/shared"
    arguments = [shutil.which("bwrap") or "bwrap", *alone.split(), *nobody.split()]
    arguments += ["--ro-bind", str(python), f"{HOME}/bin/python", "--ro-bind", str(standard), inside]
    for installed in ("site-packages", "dist-packages"):
        if (standard / installed).is_dir():
            arguments += ["--tmpfs", f"{inside}/{installed}", "--remount-ro", f"{inside}/{installed}"]
    for library in _libraries(python, standard):
        loader = Path(library).name.startswith("ld-")  # Python's file names it by its whole path
        arguments += ["--ro-bind", library, library if loader else f"{HOME}/shared/{Path(library).name}"]
    for file in (RUNNER, FORK_SERVER):
        arguments += ["--ro-bind", str(file), f"{HOME}/{file.name}"]
    return [*arguments, "--remount-ro", "/", "--chdir", "/"]


def python_command(script: Path) -> list[str]:
    """The command line that runs one of the two scripts inside; its argument is the filter of system calls."""
    return [f"{HOME}/bin/python", *["-I", "-S", "-B", "-X", "utf8"], f"{HOME}/{script.name}", seccomp.program().hex()]


def _libraries(python: Path, standard: Path) -> list[str]:
    """The shared libraries of Python and of the standard library's extensions, and the loader."""
    extensions = sorted(str(file) for file in (standard / "lib-dynload").glob("*.so"))
    told = subprocess.run(["ldd", str(python), *extensions], capture_output=True, text=True, check=False).stdout
    libraries = re.findall(r"(?:=>\s*|^\s+)(/\S+)\s+\(0x", told, re.MULTILINE)
    return sorted({library for library in libraries if Path(library).is_file()})

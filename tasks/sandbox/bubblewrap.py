"""Starts a sandbox: bubblewrap with namespaces of its own and no file but copies of Python's, read-only.

The copies are in memory and belong to this sandbox alone. So whatever a program does to a file that it can open (a
lease, a lock, a watch, or what nobody has thought of) is seen by no other sandbox and by nobody on this machine.
Another owner of the files would not do: who runs unprivileged has one user to give, and that is who runs the program.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import io
import marshal
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import threading
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from tasks.sandbox import seccomp

HOME = "/python"  # Python's place inside
RUNNER = Path(__file__).with_name("runner.py")
FORK_SERVER = Path(__file__).with_name("fork_server.py")
# Of the standard library, what no program needs: other packages, tests, and what has windows
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip",
            "lib2to3", "__pycache__"}  # fmt: skip
PT_LOAD, WORTH_CUTTING = 1, 1 << 18  # of elf.h; bytes
NO_EXTENSION = re.compile(r"_test|_ctypes_test|_xx|xx|_tkinter")


class _Lock:
    """A lock that a forked process has anew: whoever holds it in the parent is not there."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.lock = threading.Lock()


_ONE_AT_A_TIME = _Lock()  # each start opens some hundred files


def start(script: Path, *options: str, **streams: Any) -> subprocess.Popen[bytes]:
    """Start one of the two scripts in a new sandbox.

    Args:
        script: RUNNER or FORK_SERVER.
        options: of bubblewrap besides.
        streams: stdin, stdout and stderr, as subprocess.Popen has them.

    Raises:
        OSError: bubblewrap cannot be started, or a file cannot be copied.
    """
    arguments, opened = sandbox_options(), contextlib.ExitStack()
    with _ONE_AT_A_TIME.lock, opened:
        copied = []
        for inside, source in copied_files().items():
            # Opened anew, a file in memory is read from its beginning
            file = source if isinstance(source, Path) else f"/proc/self/fd/{source}"
            descriptor = os.open(file, os.O_RDONLY)
            opened.callback(os.close, descriptor)
            copied += ["--perms", "0555", "--file", str(descriptor), inside]
        descriptors = [int(number) for number in copied[3::5]]
        command = [*arguments, *copied, "--remount-ro", "/", "--chdir", "/", *options, *python_command(script)]
        return subprocess.Popen(command, start_new_session=True, cwd="/", env={}, pass_fds=descriptors, **streams)


def sandbox_options() -> list[str]:
    """bubblewrap and the options that describe the sandbox, but for its files."""
    alone = "--unshare-all --unshare-user --new-session --cap-drop ALL --hostname sandbox"
    nobody = f"--uid 65534 --gid 65534 --clearenv --setenv LD_LIBRARY_PATH {HOME}/shared"
    return [shutil.which("bwrap") or "bwrap", *alone.split(), *nobody.split()]


def python_command(script: Path) -> list[str]:
    """The command line that runs one of the two scripts inside; its argument is the filter of system calls."""
    return [f"{HOME}/bin/python", *["-I", "-S", "-B", "-X", "utf8"], f"{HOME}/{script.name}", seccomp.program().hex()]


@cache
def copied_files() -> dict[str, Path | int]:
    """The files of a sandbox, by their paths inside: a file of this machine, or a descriptor of one in memory."""
    python = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    standard = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    extensions = [one for one in sorted((standard / "lib-dynload").glob("*.so")) if not NO_EXTENSION.match(one.name)]
    files: dict[str, Path | int] = {f"{HOME}/bin/python": python}
    # Python finds its library by os.py and lib-dynload, and looks into the archive first
    files[f"{HOME}/lib/{standard.name}/os.py"] = standard / "os.py"
    files |= {f"{HOME}/lib/{standard.name}/lib-dynload/{one.name}": one for one in extensions}
    files[f"{HOME}/lib/python{sys.version_info.major}{sys.version_info.minor}.zip"] = _in_memory(_archive(standard))
    for library in _libraries([python, *extensions]):
        loader = library.name.startswith("ld-")  # Python's file names it by its whole path
        files[str(library) if loader else f"{HOME}/shared/{library.name}"] = library
    files = {inside: _without_symbols(file) if isinstance(file, Path) else file for inside, file in files.items()}
    return files | {f"{HOME}/{file.name}": file for file in (RUNNER, FORK_SERVER)}


def _archive(standard: Path) -> bytes:
    """The standard library's modules, compiled, as an archive from which Python imports."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for folder, folders, names in os.walk(standard):
            folders[:] = sorted(set(folders) - LEFT_OUT)
            for file in (Path(folder, name) for name in sorted(names) if name.endswith(".py")):
                with contextlib.suppress(SyntaxError):  # templates that are no modules
                    code = importlib.machinery.SourceFileLoader(file.stem, str(file)).get_code(file.stem)
                    head = importlib.util.MAGIC_NUMBER + bytes(12)  # no time or size of a source, which is not there
                    archive.writestr(str(file.relative_to(standard)) + "c", head + marshal.dumps(code))
    return packed.getvalue()


def _in_memory(content: bytes) -> int:
    """A descriptor of a file in memory that holds it; it stays as long as this process."""
    descriptor = os.memfd_create("python")
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return descriptor


def _without_symbols(file: Path) -> Path | int:
    """A program or library; in memory, what is loaded of it, if that is much less: the rest is for debuggers."""
    content = file.read_bytes() if file.stat().st_size > WORTH_CUTTING else b""
    if content[:6] != b"\x7fELF\x02\x01":  # of 64 bits, the lowest first
        return file
    table, size, count = struct.unpack_from("<Q14xHH", content, 32)  # e_phoff, e_phentsize, e_phnum of elf.h
    segments = [struct.unpack_from("<IIQQQQ", content, table + size * number) for number in range(count)]
    end = max(offset + length for kind, _, offset, _, _, length in segments if kind == PT_LOAD)
    return _in_memory(content[:end]) if len(content) - end > WORTH_CUTTING else file


def _libraries(programs: list[Path]) -> list[Path]:
    """The shared libraries of Python and of the standard library's extensions, and the loader."""
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    libraries = re.findall(r"(?:=>\s*|^\s+)(/\S+)\s+\(0x", told, re.MULTILINE)
    return sorted({Path(library) for library in libraries if Path(library).is_file()})

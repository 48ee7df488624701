"""Commands of the product in a fork of the tests' process, which has imported numpy, pyarrow, matplotlib and others."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any, NoReturn

from contracts.run_file import ROOT
from tests.source_folders import FOLDERS
from tests.waiting import wait_until


def run_module(
    module: str,
    *arguments: object,
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    one_stream: bool = False,
) -> subprocess.CompletedProcess[str]:
    """As `python -m module arguments` run by itself: modules of the product are imported anew, its output are bytes.

    With `one_stream` the standard output has the errors, too, in the order in which they were written.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            streams = (output, output if one_stream else errors)
            _become_command(module, [str(word) for word in arguments], cwd, environment, streams)
        _, status = os.waitpid(child, 0)
        texts = [file.seek(0) or file.read().decode("utf-8") for file in (output, errors)]
    return subprocess.CompletedProcess([module, *arguments], os.waitstatus_to_exitcode(status), *texts)


def run_snakemake(
    *arguments: object,
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    one_stream: bool = False,
) -> subprocess.CompletedProcess[str]:
    """As `snakemake arguments`; what `environment` has is added to this process'."""
    return run_module("snakemake", *arguments, cwd=cwd, environment=_for_snakemake(environment), one_stream=one_stream)


def _for_snakemake(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    importlib.import_module("snakemake.cli")  # once for all forks
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **(environment or {})}


def start_module(module: str, *arguments: str, cwd: Path, log: Path) -> BaseProcess:
    """Start a command in a session of its own; what it prints goes to a file."""
    environment = _for_snakemake() if module == "snakemake" else None

    def lead_session() -> None:
        os.setsid()
        _become_command(module, arguments, cwd, environment, (file, file))

    with log.open("wb") as file:
        process = multiprocessing.get_context("fork").Process(target=lead_session)
        process.start()
    wait_until(lambda: os.getpgid(process.pid or 0) == process.pid)
    return process


def _become_command(
    module: str,
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str] | None,
    files: tuple[IO[Any], IO[Any]],
) -> NoReturn:
    status: int = 1
    try:
        atexit._clear()  # the parent's
        kept = [sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in FOLDERS]
        for file, number, stream in zip(files, (1, 2), (sys.stdout, sys.stderr), strict=True):
            os.dup2(file.fileno(), number)
            with contextlib.suppress(OSError, ValueError):  # an imported module may have kept pytest's stream
                os.dup2(file.fileno(), stream.fileno())
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        os.chdir(cwd)
        sys.argv, sys.path[:0] = [module, *arguments], [str(cwd)]
        status = _exit_status(module)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        del kept
    finally:
        os._exit(status)


def _exit_status(module: str) -> int:
    """Run it, and print what ends it as Python does."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int) or end.code is None:
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

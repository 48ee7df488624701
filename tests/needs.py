"""What a test needs of the machine. Where it is missing, tests/skipped_tests.py says at the end what brings it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable

import pytest

from contracts.run_file import ROOT
from envs import build

DATA = ROOT.parent / "shared" / "data"  # tests/public_files.md
DOCUMENTS = ROOT.parent / "shared" / "seeds"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def published(*paths: str) -> pytest.MarkDecorator:
    """These published files, of which the test says something, are in the data folder."""
    missing = [path for path in paths if not (DATA / path).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"needs ../shared/data/{', '.join(missing)}")


def _not_built(names: Iterable[str]) -> str:
    missing = [name for name in names if not (build.folder(name, "cpu") / ".stamp").is_file()]
    return f"environment {missing[0]} is not built; make test builds it" if missing else ""


def environments(*names: str) -> pytest.MarkDecorator:
    """The environments of these names are built."""
    return pytest.mark.skipif(bool(_not_built(names)), reason=_not_built(names))


def skip_without(*names: str) -> None:
    """Skip the test, or what needs the fixture, unless these environments are built."""
    if reason := _not_built(names):
        pytest.skip(reason)


def sandbox(why: str | None) -> pytest.MarkDecorator:
    """Programs can be run in a sandbox; `why` says why not."""
    return pytest.mark.skipif(why is not None, reason=f"no sandbox on this machine: {why}")


chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
documents = pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the documents are not in ../shared/seeds")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")

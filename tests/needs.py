"""What a test needs of the machine. Where it is missing, tests/skipped_tests.py says at the end what brings it."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from contracts.run_file import ROOT

DATA = ROOT.parent / "shared" / "data"  # tests/public_files.md
DOCUMENTS = ROOT.parent / "shared" / "seeds"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def published(*paths: str) -> pytest.MarkDecorator:
    """These published files, of which the test says something, are in the data folder."""
    missing = [path for path in paths if not (DATA / path).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"needs ../shared/data/{', '.join(missing)}")


def sandbox(why: str | None) -> pytest.MarkDecorator:
    """Programs can be run in a sandbox; `why` says why not."""
    return pytest.mark.skipif(why is not None, reason=f"no sandbox on this machine: {why}")


chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
documents = pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the documents are not in ../shared/seeds")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")

"""What every Python process of a training loads when it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from contracts.run_file import ROOT
from frameworks import loopback

LOADED = "import sys; print(*(getattr(found, '__file__', None) for found in sys.modules.values()), sep='\\n')"


def loaded(folder: Path, **settings: str) -> set[str]:
    command, environment = [sys.executable, "-c", LOADED], os.environ | settings
    return {*subprocess.check_output(command, cwd=folder, env=environment, text=True).split("\n")}


def test_it_loads_no_packages(tmp_path: Path) -> None:
    """Ray starts a dozen processes and waits 15 seconds for some of them, so each must start quickly."""
    more = loaded(tmp_path, PYTHONPATH=loopback.python_path(loopback.STARTUP, ROOT)) - loaded(tmp_path)
    assert str(ROOT / "frameworks" / "loopback.py") in more
    assert not [file for file in more if "site-packages" in file]

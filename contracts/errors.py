"""Mistakes a user can fix: one clear sentence, no traceback, a non-zero exit status."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path

from contracts.exit_status import RESUMABLE
from contracts.text_safety import protect_output

ROOT = Path(__file__).resolve().parent.parent


class UserError(Exception):
    """What was needed, what was found, what to do: in one sentence."""


class StoppedInTime(UserError):
    """The command saved its work and stopped; the same command continues it. The exit status is RESUMABLE."""


def run_command(main: Callable[[], None]) -> None:
    """Run a command-line entry point; a UserError, a missing package, or a full disk ends it with one sentence."""
    protect_output()
    try:
        main()
    except StoppedInTime as error:
        print(f"Stopped: {error}", file=sys.stderr)
        sys.exit(RESUMABLE)
    except UserError as error:
        sys.exit(f"Error: {error}")
    except ModuleNotFoundError as error:
        if (ROOT / (error.name or "").partition(".")[0]).is_dir():  # a module of ours: a mistake in the code
            raise
        sys.exit(
            f"Error: this command needs the package {error.name}, which {sys.prefix} does not have: run it with the "
            "python of another environment, such as .envs/eval-*/bin/python for eval/ (`python3.11 envs/build.py eval` "
            "builds it)"
        )
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.exit(
            f"Error: the disk is full ({error.filename or 'no file named'}): free some space, or set `results` and "
            "`work` in the configuration to another disk, and run the same command again; finished work is kept"
        )

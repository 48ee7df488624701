"""A job of the workflow in tests/unit/test_warm_processes.py: it writes which process imported its packages."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from system import forked_job


def handlers() -> dict[str, str]:
    """What each signal does in this process."""
    return {str(number): repr(signal.getsignal(number)).split(" at ")[0] for number in signal.valid_signals()}


def main() -> None:
    forked_job.fork_in_workflow([sys.argv[2]], {})
    if sys.argv[1] == "wait":
        print("waiting", flush=True)
        time.sleep(600)
        return
    if sys.argv[1] == "signals":
        print(handlers())
        return
    from tests.unit import imported_once

    Path(sys.argv[1]).write_text(f"{imported_once.PROCESS} {os.getpid()} {os.environ['OWN']}")


if __name__ == "__main__":
    main()

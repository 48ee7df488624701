"""Snakemake as `crosszero` starts it: Ctrl-C is answered before its modules are read, and it says less about itself.

python -m cluster.start_snakemake TARGET --quiet rules host …
"""

from __future__ import annotations

import logging
import signal
import sys

from cluster import interrupt

# How the messages begin with which Snakemake describes the machine and its own work.
ABOUT_ITSELF = (
    "Using workflow specific profile", "Config file ", "Assuming unrestricted shared filesystem", "Using shell: ",
    "Provided cores: ", "Provided resources: ", "Rules claiming more threads", "Singularity containers: ",
    "Select jobs to execute", "Execute ",
)  # fmt: skip


def main() -> None:
    """Run Snakemake's command line."""
    signal.signal(signal.SIGINT, lambda *_: interrupt.end_now(interrupt.NOTHING_STARTED))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # blocked by who started this (cli.graph)
    if "--dry-run" in sys.argv:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `… -n | head` ends without a word
    from snakemake.cli import main

    from cluster.snakemake_internals import Quietness, logger

    def describe(record: logging.LogRecord) -> bool:
        """Let `--quiet host` leave out more of what Snakemake says about itself; its log file has all of it."""
        if record.levelno <= logging.INFO and record.getMessage().startswith(ABOUT_ITSELF):
            record.quietness = Quietness.HOST
        return True

    logger.addFilter(describe)
    main()


if __name__ == "__main__":
    main()

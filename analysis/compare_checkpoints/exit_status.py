"""What the exit status of every comparing command means, of checkpoints and of recipes alike.

0   not worse: better, or it cannot be told
1   worse
2   not comparable: there is no verdict, as the sides were measured differently or are too little
3   an error: a wrong command, a missing file
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from system.errors import message, output_is_closed
from system.text_safety import protect_output

NOT_WORSE, WORSE, NOT_COMPARABLE, ERROR = 0, 1, 2, 3
WITHOUT_VERDICT = (  # codes of errors
    "not-comparable", "too-few-seeds", "different-problems", "repeated-training", "different-last-steps",
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """argparse exits with 2 after a wrong command, which here means that two sides are not comparable."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and exit with 3."""
        self.print_usage(sys.stderr)
        self.exit(ERROR, f"{self.prog}: error: {message}\n")


def of_error(error: BaseException) -> int:
    """Print the sentence of an error, or its traceback; returns the exit status. Nothing where no one reads on."""
    if isinstance(error, BrokenPipeError) and output_is_closed():
        return ERROR
    if text := message(error):
        print(f"Error: {text}", file=sys.stderr)
    else:
        traceback.print_exception(error)
    return NOT_COMPARABLE if getattr(error, "code", "") in WITHOUT_VERDICT else ERROR


def of_command(command: Callable[[], int]) -> int:
    """Run a comparing command; returns its exit status, also after an error, where Python would exit with 1."""
    protect_output()
    try:
        status = command()
        sys.stdout.flush()
        return status
    except Exception as error:
        return of_error(error)

"""Parsers of the command line whose `usage:` line is what the user typed, with or without the program `crosszero`."""

from __future__ import annotations

import argparse
import os
import sys

PROGRAM = "CROSSZERO_PROGRAM"  # environment variable: the command as the user typed it, such as `crosszero translate`


def program_name() -> str:
    """The command as the user typed it: `crosszero translate`, else `python -m translate` or the script's path."""
    if program := os.environ.get(PROGRAM):
        return program
    specification = getattr(sys.modules["__main__"], "__spec__", None)
    if specification is None:
        return sys.argv[0]
    return f"python -m {specification.name.removesuffix('.__main__')}"


def argument_parser(document: str | None) -> argparse.ArgumentParser:
    """A parser for a program, which its module's documentation describes as it is written there."""
    return argparse.ArgumentParser(
        prog=program_name(), description=document, formatter_class=argparse.RawDescriptionHelpFormatter
    )

"""Work in a fork: results, errors, and a fork that is killed."""

from __future__ import annotations

import os
import signal

import pytest

from system import background_fork
from system.errors import UserError
from tests.user_errors import refused


def test_forks_run_beside_each_other_and_see_what_is_in_memory() -> None:
    read, write = os.pipe()
    held = object()
    first = background_fork.start(lambda: (os.read(read, 1), repr(held), os.getpid()))
    second = background_fork.start(lambda: os.write(write, b"x"))  # the first waits for it
    assert second() == 1
    byte, seen, process = first()
    assert (byte, seen) == (b"x", repr(held)) and process != os.getpid()


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    def fail() -> None:
        raise UserError("a file should be there, but is missing", code="missing-file")

    waits = background_fork.start(fail)
    with refused("missing-file"):
        waits()


def test_what_cannot_be_sent_is_an_error() -> None:
    waits = background_fork.start(lambda: lambda: None)
    with pytest.raises(Exception, match="pickle"):
        waits()


def test_a_killed_fork_is_named() -> None:
    waits = background_fork.start(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(RuntimeError, match="ended with -9"):
        waits()

"""Work in a fork of this process, beside it: for what takes seconds and reads what is already in memory."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

Result = TypeVar("Result")
CONTEXT = multiprocessing.get_context("fork")


def start(work: Callable[[], Result]) -> Callable[[], Result]:
    """Begin `work` in a fork, which ends with this process.

    Args:
        work: what it returns or raises must be picklable.

    Returns:
        A function to be called once, which waits for the result. It raises what `work` raised, and RuntimeError where
        the fork was killed.
    """
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_answer, args=(work, sender), daemon=True)
    process.start()
    sender.close()

    def result() -> Result:
        try:
            value, error = receiver.recv()
        except EOFError:
            process.join()
            raise RuntimeError(f"a fork should have sent its result, but ended with {process.exitcode}") from None
        process.join()
        if error:
            raise error
        answer: Result = value
        return answer

    return result


def _answer(work: Callable[[], Result], sender: Connection) -> None:
    try:
        sender.send((work(), None))
    except Exception as error:  # raised again where the result is asked for
        sender.send((None, error))

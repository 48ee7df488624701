"""Ctrl-C ends a workflow on request: nothing has failed, and the same command continues.

The jobs of this machine receive it, too, and end themselves; jobs of a cluster are cancelled by Snakemake.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # the exit status of shells
ASKED_AGAIN_SECONDS = 0.005
FIRST = "\nInterrupted: waiting until the running jobs have ended.\n"
NOTHING_STARTED = "\nInterrupted; nothing was started.\n"
SECOND = "\nInterrupted again: still waiting. Once more ends Snakemake at once; its jobs end with it.\n"
ON_A_CLUSTER = (
    "\nInterrupted: cancelling this command's jobs, queued and running; their work is kept.\n",
    "\nInterrupted again: still cancelling. Once more ends Snakemake at once; the next one cancels what is left.\n",
)


class Interrupt:
    """Takes Ctrl-C: the first ends the jobs, the third Snakemake.

    Args:
        is_running: whether jobs are run; before, there is nothing to wait for.
    """

    def __init__(self, is_running: Callable[[], bool]) -> None:
        """Take Ctrl-C from now on; main thread only."""
        self.is_running, self.times, self.texts = is_running, 0, (FIRST, SECOND)
        self.asking, self.main_thread_answers = threading.Lock(), threading.Event()
        signal.signal(signal.SIGINT, self.take)  # also where a shell has it ignored: the jobs take it in any case
        signal.signal(signal.SIGURG, lambda number, frame: self.main_thread_answers.set())

    def take(self, number: int, frame: FrameType | None) -> None:
        """Take the signal. Raises KeyboardInterrupt at the first, as Python does."""
        self.times += 1
        if not self.is_running():
            end_now(NOTHING_STARTED)
        if self.times == 1:
            os.write(2, self.texts[0].encode())  # print() may be interrupted itself
            raise KeyboardInterrupt
        if self.times == 2:
            os.write(2, self.texts[1].encode())
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def was_pressed(self) -> bool:
        """Whether Ctrl-C was pressed before now, from any thread.

        A job that Ctrl-C ended may be reported before the main thread has taken the signal. Python's main thread takes
        the pending signals in the order of their numbers, so SIGINT has been taken when SIGURG is. It is asked again
        until it answers: a signal does not wake a thread that begins to wait for a lock when the signal arrives.
        """
        with self.asking:
            self.main_thread_answers.clear()
            while not self.main_thread_answers.is_set():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)
                self.main_thread_answers.wait(ASKED_AGAIN_SECONDS)
        return bool(self.times)

    def ignore(self) -> None:
        """Take no more: what is left is to say how to go on."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def end_now(text: str) -> NoReturn:
    """End this process with a sentence, without what would be printed of it."""
    os.write(2, text.encode())
    os._exit(INTERRUPTED)

"""How long nothing has happened, for watchers that end what hangs; a machine or process that slept is no hang."""

from __future__ import annotations

import time


class QuietTime:
    """Seconds since the last sign of life, by the monotonic clock.

    A watcher that itself comes late was suspended (a closed lid, Ctrl-Z, SIGSTOP), and so was what it watches: the
    count starts again.
    """

    def __init__(self, look_seconds: float) -> None:
        """Start now; `seconds` is to be called every `look_seconds`."""
        self._late = 3 * look_seconds + 5
        self._since = self._looked = time.monotonic()

    def restart(self) -> None:
        """There was a sign of life."""
        self._since = self._looked = time.monotonic()

    def seconds(self) -> float:
        """Since the last sign of life, or since this process was awake again."""
        now = time.monotonic()
        if now - self._looked > self._late:
            self._since = now
        self._looked = now
        return now - self._since

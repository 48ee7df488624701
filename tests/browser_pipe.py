"""A page in headless Chromium, in real time, through its debugging pipe: JSON messages that end with a zero byte."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.needs import CHROMIUM

# When the sample browser is ready: the seconds since it was opened.
READY = """new Promise((go) => { const wait = () => document.body?.dataset.ready ? go(performance.now() / 1000)
    : setTimeout(wait, 5); wait(); })"""

# It reads commands from descriptor 3 and writes answers to 4.
START = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(commands, 3), os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser that ends with the `with` block."""

    def __init__(self, profile: Path) -> None:
        """Start it with an empty profile folder."""
        commands, self._write = os.pipe()
        reading, answers = os.pipe()
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            f"--user-data-dir={profile}", "--window-size=1200,900", "--remote-debugging-pipe",
        ]  # fmt: skip
        command_line = [sys.executable, "-c", START, str(commands), str(answers), str(CHROMIUM), *options]
        self._process = subprocess.Popen(command_line, pass_fds=(commands, answers), stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self._input = os.fdopen(reading, "rb")
        self._ids = itertools.count(1)
        self._session: str | None = None

    def __enter__(self) -> Browser:
        """The browser itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _ask(self, method: str, **params: Any) -> Any:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            read = bytearray()
            while (byte := self._input.read(1)) != b"\0":
                if not byte:
                    raise RuntimeError("Chromium ended")
                read += byte
            if (answer := json.loads(read)).get("id") == number:
                return answer["result"]

    def open(self, url: str) -> None:
        """Open a page and return before it is loaded."""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._ask("Page.navigate", url=url)

    def evaluate(self, code: str) -> Any:
        """What an expression of JavaScript gives; a promise's value when it is there."""
        answer = self._ask("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

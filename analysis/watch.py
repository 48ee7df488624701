"""Serve a page on the loopback address while runs go on: curves, signs of collapse, newest completions, the report.

    python -m analysis.watch --results results/demo --work work/demo

It reads what is stored and what trainings have written so far, and changes nothing. Ctrl-C ends it.
"""

from __future__ import annotations

import os
import signal
import sys
import urllib.parse
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from analysis import live_log
from analysis.pages import run_titles
from analysis.report import log_page
from contracts.fingerprint import fingerprint
from system.command_line import argument_parser
from system.errors import UserError, run_command

PORT, SECONDS = 8765, 10  # a port that is free on most machines; between two looks for changes
LAST_PORT = 65535


def render_page(results: Path, work: Path, state: str) -> str:
    """The page as things stand; `state` names it."""
    runs, unreadable = live_log.all_runs(results, work)
    titles = run_titles.titles([run.results.name for run in runs], results.name)
    runs = [replace(run, results=replace(run.results, title=titles[run.results.name])) for run in runs]
    reports = sorted(file.parent.name for file in (results / "report").glob("*/index.html"))
    return log_page.render(
        runs, results.name, unreadable=unreadable, reports=reports, live=log_page.Live(SECONDS, state)
    )


class Cache:
    """The page, made again only when a file that it is made from has changed."""

    def __init__(self, results: Path, work: Path) -> None:
        """Start without a page."""
        self._folders, self._lock = (results, work), Lock()
        self._state, self._page = "", ""

    def page(self) -> tuple[str, str]:
        """The page as things stand, and the name of that state."""
        patterns = ("runs/*/*/seed-*/stage-*/**/*.jsonl", "runs/*/*/seed-*/stage-*/train.log",
                    "runs/*/*/seed-*/stage-*/*.parquet", "runs/*/*/seed-*/graded/*/*.parquet",
                    "report/*/index.html")  # fmt: skip
        with self._lock:
            files = sorted({file for root in self._folders for one in patterns for file in root.glob(one)})
            sizes = []
            for file in files:
                with suppress(FileNotFoundError):  # deleted since
                    status = file.stat()
                    sizes.append([str(file), status.st_size, status.st_mtime_ns])
            if (state := fingerprint(sizes)) != self._state:
                self._page, self._state = render_page(*self._folders, state), state
            return self._page, self._state


class Handler(SimpleHTTPRequestHandler):
    """Answers `/` with the page, and `/report/…` from the reports' folder."""

    def __init__(self, *arguments: Any, cache: Cache, **more: Any) -> None:
        """Answer one request."""
        self.cache = cache
        super().__init__(*arguments, **more)

    def do_GET(self) -> None:
        """Answer, unless another site's name leads here (DNS rebinding)."""
        name = self.headers.get("Host", "").rpartition(":")[0]
        if name not in ("127.0.0.1", "localhost"):
            self.send_error(403, "ask for 127.0.0.1")
        elif self.path in ("/", "/index.html"):
            page, state = self.cache.page()
            text = page.encode("utf-8", "backslashreplace")
            self.send_response(200)
            for field, value in (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(text))),
                                 ("Cache-Control", "no-store"), ("ETag", f'"{state}"')):  # fmt: skip
                self.send_header(field, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)
        elif self.path.startswith("/report/"):
            self.answer_from_reports(self.path.removeprefix("/report"))
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def answer_from_reports(self, path: str) -> None:
        """Answer with a file below the reports' folder; a folder without its slash is sent on to itself."""
        path = path.partition("?")[0].partition("#")[0]
        if "\0" in urllib.parse.unquote(path):
            self.send_error(404)
            return
        here = Path(self.translate_path(path))  # within the served folder, also with ".." in it
        relative = urllib.parse.quote(str(here.relative_to(self.directory)), errors="surrogateescape")
        if os.path.isdir(here) and not path.endswith("/"):  # noqa: PTH112 - false for a name that is too long
            self.send_response(301)
            self.send_header("Location", f"/report/{relative}/")  # of this server, whatever was asked for
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.path = f"/{relative}/" if path.endswith("/") else f"/{relative}"
        (super().do_HEAD if self.command == "HEAD" else super().do_GET)()

    def list_directory(self, path: Any) -> None:
        """Folders are not listed."""
        self.send_error(404)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing for each request."""


class Server(ThreadingHTTPServer):
    """Says nothing of browsers that hang up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print other errors."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def make_server(results: Path, work: Path, port: int) -> ThreadingHTTPServer:
    """A server on the loopback address, on another free port if this one is taken."""
    answer = partial(Handler, cache=Cache(results, work), directory=str(results / "report"))
    try:
        return Server(("127.0.0.1", port), answer)
    except OSError:
        return Server(("127.0.0.1", 0), answer)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the results of one scale, such as results/demo")
    parser.add_argument("--work", type=Path, required=True, help="the work folder of that scale, such as work/demo")
    parser.add_argument("--port", type=int, default=PORT, help=f"default: {PORT}, or another if it is taken")
    arguments = parser.parse_args()
    if not 0 <= arguments.port <= LAST_PORT:
        raise UserError(
            f"--port should be from 0 to {LAST_PORT}, but is {arguments.port}: choose another",
            code="argument-out-of-range", port=arguments.port,
        )  # fmt: skip
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell may have set the first to be ignored
        signal.signal(number, signal.default_int_handler)
    with make_server(arguments.results, arguments.work, arguments.port) as serving:
        print(f"watch: http://127.0.0.1:{serving.server_address[1]}/ (Ctrl-C ends it)", flush=True)
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            print("watch: ended")


if __name__ == "__main__":
    run_command(main)

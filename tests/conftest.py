"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.core
import pytest

from tests import belonging, budgets, scheduling, skipped_tests

budgets.load()
SLOWEST = 40  # files shown
CACHE_KEY = "crosszero/seconds_of_files"
SEED = os.environ.get("TEST_SEED", "")  # a number: files and the tests of each in a random order, with its draws


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--only=grading`: the test files that belong to a folder or file of the product."""
    parser.addoption("--only", metavar="PATH", help="only test files that belong to this folder or file of the product")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an `--only` that names nothing; TEST_SEED decides the examples of property tests.

    Signals are those of a terminal's programs, also where this was started with nohup or in a shell's background.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    if SEED:
        hypothesis.core.global_force_seed = int(SEED)
    if path := config.getoption("--only"):
        try:
            belonging.dotted_name(path)
        except ValueError as error:
            raise pytest.UsageError(f"--only: {error}") from None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the test files of others."""
    path = config.getoption("--only")
    if path and collection_path.is_file() and collection_path.name.startswith("test_"):
        return None if belonging.belongs(collection_path, path) else True
    return None


def _seconds_of_files(config: pytest.Config) -> dict[str, float]:
    """How long each file took in earlier runs here, at most; all processes of a run get the same."""
    if hasattr(config, "workerinput"):
        return dict(config.workerinput["seconds"])
    cache = getattr(config, "cache", None)  # there is none with -p no:cacheprovider
    return dict(cache.get(CACHE_KEY, {})) if cache else {}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the seconds of files to a process of xdist."""
    node.workerinput["seconds"] = _seconds_of_files(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> scheduling.Scheduling:
    """Files in one process each, Slurm's all in one."""
    return scheduling.Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, so that none is alone at the end; with TEST_SEED shuffle files and the tests of each."""
    if not SEED:
        scheduling.longest_first(items, _seconds_of_files(config))
        return
    chance = random.Random(SEED)
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.location[0], []).append(item)
    names = list(files)
    chance.shuffle(names)
    for name in names:
        chance.shuffle(files[name])
    items[:] = [item for name in names for item in files[name]]


@pytest.fixture(autouse=True)
def _own_state_of_python(request: pytest.FixtureRequest) -> Iterator[None]:
    """Random numbers follow from the test and TEST_SEED; a program that a test calls does not answer later signals."""
    random.seed(f"{SEED} {request.node.nodeid}")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


def pytest_collection_finish() -> None:
    """Python's garbage collector need not look again and again at the modules and the thousands of collected tests."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show how long each of the slowest test files took, and what was not tested."""
    seconds: Counter[str] = Counter()
    skipped: list[str] = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.location[0]] += round(report.duration, 1)
                if report.skipped and isinstance(report.longrepr, tuple):
                    skipped.append(report.longrepr[2].removeprefix("Skipped: "))
    if cache := getattr(config, "cache", None):
        known = _seconds_of_files(config)
        cache.set(CACHE_KEY, known | {file: max(took, known.get(file, 0.0)) for file, took in seconds.items()})
    terminalreporter.section("seconds of each test file")
    for file, took in seconds.most_common(SLOWEST):
        terminalreporter.write_line(f"{took:8.0f}  {file}")
    if skipped:
        terminalreporter.section("not tested on this machine")
        for line in skipped_tests.summary_lines(skipped):
            terminalreporter.write_line(line)
            skipped_tests.tell_ci(line)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, because paths of sockets are limited to 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="cz-", dir="/tmp") as folder:
        yield Path(folder)

"""Settings for all tests."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("untimed")
SLOWEST = 40  # files shown


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how long each of the slowest test files took."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.location[0]] += round(report.duration, 1)
    terminalreporter.section("seconds of each test file")
    for file, took in seconds.most_common(SLOWEST):
        terminalreporter.write_line(f"{took:8.0f}  {file}")

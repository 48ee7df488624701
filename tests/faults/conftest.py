"""The projects that trials copy, and the book in which they are written down."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import needs
from tests.faults import bed
from tests.faults.book import Book


def pytest_report_header() -> str:
    return f"fault trials: FAULT_SEED={bed.SEED}"


@pytest.fixture(scope="session")
def book() -> Iterator[Book]:
    book = Book()
    yield book
    print(f"\n{book.markdown()}")


@pytest.fixture(scope="session")
def light(tmp_path_factory: pytest.TempPathFactory) -> bed.Bed:
    needs.skip_without("eval")
    return bed.Bed(bed.light_project(tmp_path_factory.mktemp("light")))


@pytest.fixture(scope="session")
def line(tmp_path_factory: pytest.TempPathFactory) -> bed.Bed:
    needs.skip_without("trl", "eval")
    return bed.Bed(bed.line_project(tmp_path_factory.mktemp("line")))


@pytest.fixture
def bed_of(request: pytest.FixtureRequest, stage: str) -> bed.Bed:
    """The project for a trial of this stage."""
    chosen: bed.Bed = request.getfixturevalue("light" if stage in bed.LIGHT else "line")
    return chosen

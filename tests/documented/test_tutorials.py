"""The tutorials, literally: each command of a page runs, in its order, and prints what the page says it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from envs.build import python
from tests import needs
from tests.documented.__main__ import Workplace
from tests.documented.commands import FENCE, is_command

TUTORIALS = ROOT / "docs" / "tutorials"
LIMIT = 1800  # seconds of a block
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The blocks of a page: commands, each with the text that the page shows after it."""
    fenced = [(kind, text.rstrip("\n")) for kind, text in FENCE.findall(page.read_text(encoding="utf-8"))]
    for (kind, text), (next_kind, next_text) in zip(fenced, [*fenced[1:], ("", "")], strict=True):
        if kind == "":
            yield text, next_text if next_kind == "text" else ""


def pattern(line: str, exact: bool) -> str:
    """A line of the page as a pattern: the space between columns may differ and, if not exact, so may numbers."""
    parts = (line if exact else NUMBER.sub("\0", line)).split()
    return r"\s+".join(re.escape(part).replace("\0", r"[\d,.]+") for part in parts)


def missing_lines(expected: str, output: str, exact: bool = False) -> list[str]:
    return [line for line in expected.split("\n") if line.strip() and not re.search(pattern(line, exact), output)]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A copy of the project that reads published data from a mirror beside it, where there is one."""
    workplace = Workplace(tmp_path_factory.mktemp("tutorials"))
    if needs.DATA.is_dir():
        file = workplace.project / "config" / "config.yaml"
        file.write_text(file.read_text().replace("data_mirror: null", "data_mirror: ../mirror"))
    return workplace


def follow(page: str, workplace: Workplace, exact: bool = False) -> None:
    for number, (commands, expected) in enumerate(blocks(TUTORIALS / f"{page}.md"), start=1):
        done = workplace.run(f"set -e\n{commands}", LIMIT)
        assert done.status == 0, f"{page}, block {number}: {commands}\n{done.output}"
        assert missing_lines(expected, done.output, exact) == [], f"{page}, block {number}\n{done.output}"


built = pytest.mark.skipif(
    not (python("eval").exists() and python("trl").exists()), reason="eval's and trl's environment are not built"
)


@built
@pytest.mark.long
@pytest.mark.workflow
def test_the_first_demo_and_the_tutorial_that_judges_its_checkpoints(workplace: Workplace) -> None:
    follow("first-demo", workplace)
    follow("two-checkpoints", workplace)


@built
@pytest.mark.long
@pytest.mark.workflow
def test_the_tutorial_of_a_task_of_ones_own(workplace: Workplace) -> None:
    follow("own-task", workplace)


@built
@pytest.mark.slow
@pytest.mark.workflow
@needs.published("benchmarks/gsm8k.jsonl")
def test_the_tutorial_of_generations(workplace: Workplace) -> None:
    follow("own-generations", workplace, exact=True)  # nothing is trained, so the numbers are the same everywhere


def test_every_tutorial_is_followed_and_begins_with_commands() -> None:
    pages = {page.stem for page in TUTORIALS.glob("*.md")}
    assert pages == {"first-demo", "two-checkpoints", "own-task", "own-generations"}
    for page in pages:
        assert len(list(blocks(TUTORIALS / f"{page}.md"))) >= 3
        for commands, _ in blocks(TUTORIALS / f"{page}.md"):
            assert is_command(commands) or commands.startswith(("cat >", "sed "))


def test_numbers_and_spaces_may_differ_but_words_may_not() -> None:
    assert missing_lines("gsm8k  1.0 points\n\nend", "x gsm8k   12.5 points\nend") == []
    assert missing_lines("gsm8k  1.0 points", "gsm8k 12 point") == ["gsm8k  1.0 points"]
    assert missing_lines("gsm8k  1.0 points", "gsm8k 12 points", exact=True) == ["gsm8k  1.0 points"]

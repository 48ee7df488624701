"""Logs of each kind and release: what is read of them, what is missing and what is said, as docs/results has it.

python -m tests.unit.test_training_logs writes the page.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.run_file import ROOT
from frameworks import adapter, collapse, import_log, tensorboard_events
from system.errors import UserError

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "cases/training_logs.yaml").read_text("utf-8"))
PAGE = ROOT / "docs/results/training-logs.md"
HEAD = """# Training logs of each release

What `crosszero import-log` reads of logs made elsewhere ([how](../how-to/import.md#training-logs)). Each row is a small
log with the names that the release's source has (`tests/unit/cases/training_logs.yaml`), and a test holds this page to
what is read of it. "Signs of collapse" are those that the log cannot show; a report names them beside its verdict.

| log | columns read | left out, with the nearest known name | signs of collapse it cannot show |
|---|---|---|---|
"""


def written(case: dict[str, Any], folder: Path) -> Path:
    """The log of a case as a file."""
    file = folder / case["file"]
    if "text" in case:
        file.write_text(case["text"], encoding="utf-8")
        return file
    writer = tensorboard_events.Writer(folder, 0)
    for step, values in case["events"].items():
        writer.add(step, values)
    writer.close()
    return next(folder.glob(tensorboard_events.PATTERN))


def page_row(case: dict[str, Any], folder: Path) -> str:
    """A row of the page; of a refused log, the message without the file's name."""
    file = written(case, folder)
    try:
        rows = import_log.read([file], case["framework"], "imported/x")
    except UserError as error:
        return f"| {case['log']} | refused: {error.message.replace(str(file), 'the file')} | | |"
    columns = [name for name in (*import_log.OURS,) if any(row[name] is not None for row in rows)]
    names = import_log.unknown_names([file], case["framework"]).items()
    others = [f"`{name}` ({near})" if near else f"`{name}`" for name, near in names]
    return f"| {case['log']} | {', '.join(columns)} | {', '.join(others)} | {', '.join(collapse.unseen(rows))} |"


def page() -> str:
    """The whole page."""
    rows = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(page_row(case, Path(folder)))
    return HEAD + "\n".join(rows) + "\n"


def test_the_page_is_what_is_read() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"python -m {__spec__.name} writes it again"


READ = [case for case in CASES if case.get("events") or case["text"].count("\n") > 1]


@pytest.mark.parametrize("case", READ, ids=[case["log"] for case in READ])
def test_steps_and_rewards(case: dict[str, Any], tmp_path: Path) -> None:
    rows = import_log.read([written(case, tmp_path)], case["framework"], "imported/x")
    assert [row["step"] for row in rows] == [1, 2]
    assert rows[0]["reward_mean"] == pytest.approx(0.2)
    assert all(row["learning_rate"] is None or 0 < row["learning_rate"] < 1e-4 for row in rows)
    assert all(row["tokens_per_second"] is None or row["tokens_per_second"] > 0 for row in rows)
    assert all(row["reward_std"] != 0.3 for row in rows), "a group's"


LINES = [case for case in READ if "text" in case and case["file"] in ("train.log", "log.jsonl", "logging.jsonl")]


@pytest.mark.parametrize("case", LINES, ids=[case["log"] for case in LINES])
def test_a_resumed_training_and_a_cut_file(case: dict[str, Any], tmp_path: Path) -> None:
    """Lines count once, also in files of several ranks; a cut last line gives no wrong number."""
    file, name = written(case, tmp_path), case["framework"]
    rows = import_log.read([file], name, "imported/x")
    (tmp_path / "second").mkdir()
    other = written(case, tmp_path / "second")
    assert import_log.read([file, other], name, "imported/x") == rows
    text = file.read_text(encoding="utf-8")
    file.write_text(text + text, encoding="utf-8")
    assert import_log.read([file], name, "imported/x") == rows
    if file.suffix == ".log":
        for kept in range(text.rindex("\n", 0, -1) + 1, len(text) - 1, 7):
            file.write_text(text[:kept], encoding="utf-8")
            for whole, row in zip(rows, import_log.read([file], name, "imported/x"), strict=False):
                known = {key: value for key, value in row.items() if value is not None and key != "kl"}  # one of two
                assert known.items() <= whole.items()


def test_releases_have_no_names_that_are_not_tried() -> None:
    for framework in {case["framework"] for case in CASES} - {None}:
        named = str([case for case in CASES if case["framework"] == framework])
        assert all(name in named for name in adapter.load(framework).earlier_names)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")

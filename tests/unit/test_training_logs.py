"""Logs of each kind and release: what is read of them, what is left out and what they cannot show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frameworks import adapter, collapse, import_log, tensorboard_events
from system.yaml_files import read_yaml
from tests.user_errors import refused

CASES: list[dict[str, Any]] = read_yaml(Path(__file__).parent / "cases" / "training_logs.yaml")["logs"]
READ = [case for case in CASES if "reads" in case]
REFUSED = [case for case in CASES if "refused" in case]


def written(case: dict[str, Any], folder: Path) -> Path:
    """The log of a case as a file."""
    file: Path = folder / case["file"]
    if "text" in case:
        file.write_text(case["text"], encoding="utf-8")
        return file
    writer = tensorboard_events.Writer(folder, 0)
    for step, values in case["events"].items():
        writer.add(step, values)
    writer.close()
    return next(folder.glob(tensorboard_events.PATTERN))


def test_every_log_is_read_or_refused() -> None:
    assert len(READ) + len(REFUSED) == len(CASES) > 20


@pytest.mark.parametrize("case", READ, ids=[case["log"] for case in READ])
def test_what_is_read_left_out_and_unseen(case: dict[str, Any], tmp_path: Path) -> None:
    file = written(case, tmp_path)
    rows = import_log.read([file], case["framework"], "imported/x")
    assert [name for name in import_log.OURS if any(row[name] is not None for row in rows)] == case["reads"]
    left_out = {name: near or None for name, near in import_log.unknown_names([file], case["framework"]).items()}
    assert left_out == case.get("left_out", {})
    assert collapse.unseen(rows) == case["unseen"]


@pytest.mark.parametrize("case", REFUSED, ids=[case["log"] for case in REFUSED])
def test_the_console_of_another_program_is_refused(case: dict[str, Any], tmp_path: Path) -> None:
    with refused(case["refused"]):
        import_log.read([written(case, tmp_path)], case["framework"], "imported/x")


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

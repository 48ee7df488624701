"""JSON Lines: only a newline ends a line, whatever a model writes."""

import json

import pytest

from system import json_lines
from system.errors import StoppedInTime, UserError, run_command
from system.exit_status import RESUMABLE
from tests.hostile_text import TEXTS, encodable
from tests.user_errors import refused

HOSTILE = list(TEXTS.values())


@pytest.mark.parametrize("escaped", [True, False], ids=["escaped", "as it is"])
def test_hostile_text_comes_back_as_it_was(tmp_path, escaped):
    rows = [{"completion": text if escaped else encodable(text)} for text in HOSTILE]
    lines = [json_lines.dump(row) if escaped else json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    file = tmp_path / "rows.jsonl"
    file.write_bytes("".join(lines).encode())
    assert list(json_lines.read(file)) == rows


def test_a_torn_last_line_is_skipped_only_when_asked_for(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"a": 1}\r\n\n{"a": 2}\n{"a": "\xc3')
    assert list(json_lines.read(file, torn_last_line=True)) == [{"a": 1}, {"a": 2}]
    with refused("invalid-json", line=4):
        list(json_lines.read(file))


@pytest.mark.parametrize("line", [b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_bad_line_in_between_is_an_error(tmp_path, line):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    with refused("invalid-json", line=2):
        list(json_lines.read(file, torn_last_line=True))


@pytest.mark.parametrize(
    "error, status",
    [
        (StoppedInTime("saved", code="stopped-in-time"), RESUMABLE),
        (UserError("wrong", code="some-mistake"), "Error: wrong [some-mistake]"),
    ],
)
def test_only_a_command_that_stopped_in_time_is_worth_another_attempt(error, status):
    def main():
        raise error

    with pytest.raises(SystemExit) as ended:
        run_command(main)
    assert ended.value.code == status


@pytest.mark.slow
def test_no_flipped_bit_is_read_as_another_text(tmp_path):
    rows = [{"problem_id": "p0", "repeat": 0, "completion": "one \u2028 12"}, {"completion": "3", "reward": 0.5}, {}]
    whole, file = "".join(map(json_lines.dump, rows)).encode(), tmp_path / "rows.jsonl"
    file.write_bytes(whole)
    assert list(json_lines.read(file)) == rows
    for bit in range(8 * len(whole)):
        file.write_bytes(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
        try:
            rows_read = list(json_lines.read(file))
        except UserError:
            continue
        assert [{key: row.get(key) for key in old} for row, old in zip(rows_read, rows, strict=True)] == rows, bit

"""JSON Lines: one JSON object per line, where only "\\n" ends a line.

Model text holds U+0085, U+2028, \\x0b and other characters at which `str.splitlines` splits too. Writers that keep
non-ASCII text as it is (verl, many evaluation harnesses) put them into the file unescaped.

Our own lines end with a checksum, so that a flipped bit is never read as another text.
"""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from system.errors import UserError

CHECKSUM = "crosszero_crc32"


def read(path: Path, *, torn_last_line: bool = False) -> Iterator[dict[str, Any]]:
    r"""Yield the object of each line; empty lines are skipped.

    Args:
        path: a UTF-8 file; "\r\n" is accepted as a line end, because "\r" is JSON whitespace.
        torn_last_line: skip a last line that is not complete, as a killed writer leaves it.

    Raises:
        UserError: a line is not a JSON object, or not UTF-8.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:  # a binary file ends lines at b"\n" alone
        line = file.readline().removeprefix(codecs.BOM_UTF8)  # some editors write this mark
        number = 0
        while line:
            number, following = number + 1, file.readline()
            if line.strip():
                try:
                    yield _object(line)
                except (ValueError, RecursionError) as error:
                    if torn_last_line and not following:
                        return
                    cut = not following and not line.endswith(b"\n")
                    why = (
                        ", the last one, is cut: finish the file, or delete that line" if cut else ": mend or delete it"
                    )
                    if isinstance(error, UnicodeDecodeError):
                        why = ": unpack the file, or convert it to UTF-8"
                    raise UserError(
                        f"{path}: line {number} is not a JSON object ({error}){why}",
                        code="invalid-json",
                        line=number,
                        cut=cut,
                    ) from None
            line = following


class Follower:
    """Reads a file that grows: each call yields the objects appended since the call before."""

    def __init__(self, path: Path) -> None:
        """Start at the beginning of the file."""
        self.path, self._offset = path, 0

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the objects of the new complete lines; an incomplete last line waits until it is complete.

        Raises:
            UserError: a line is not a JSON object, or not UTF-8; the next call continues after it.
            OSError: the file cannot be read.
        """
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                start, self._offset = self._offset, self._offset + len(line)
                if line.strip():
                    try:
                        yield _object(line)
                    except (ValueError, RecursionError) as error:
                        raise UserError(
                            f"{self.path}: byte {start}: not a JSON object ({error})", code="invalid-json", byte=start
                        ) from None


def dump(row: dict[str, Any]) -> str:
    r"""One line for a row, "\n" included: ASCII, so that every reader splits the file at the same places."""
    text = json.dumps(row, ensure_ascii=True)
    return f'{text[:-1]}{", " if row else ""}"{CHECKSUM}": {zlib.crc32(text.encode())}}}\n'


def _object(line: bytes) -> dict[str, Any]:
    row = json.loads(line.decode("utf-8"))
    if not isinstance(row, dict):
        raise ValueError(f"it holds a {type(row).__name__}")
    before, ours, _ = line.rpartition(f'"{CHECKSUM}": '.encode())
    if ours and row.pop(CHECKSUM, None) != zlib.crc32(before.removesuffix(b", ") + b"}"):
        raise ValueError("it is damaged: its checksum is that of another line")
    return row

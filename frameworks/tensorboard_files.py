"""TensorBoard event files, written and read without TensorBoard, which the base environment does not have.

A file is a sequence of records: the length, its checksum, an event, its checksum. An event is a protocol buffer
(event.proto and summary.proto of TensorBoard). Scalars alone are written and read.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from system.errors import UserError

PATTERN = "events.out.tfevents.*"
VERSION = b"brain.Event:2"  # with it, TensorBoard drops what comes after the step of a restart
VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5  # wire types
WALL_TIME, STEP, FILE_VERSION, SUMMARY, SESSION = 1, 2, 3, 5, 7  # fields of an event
VALUE, TAG, SIMPLE_VALUE, STATUS, START = 1, 1, 2, 1, 1


class Scalar(NamedTuple):
    """One scalar of one event."""

    wall_time: float
    step: int
    tag: str
    value: float


def _crc_table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [(crc >> 1) ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return table


CRC = _crc_table()


def checksum(data: bytes) -> int:
    """The masked CRC-32C of TensorFlow's record files."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _field(number: int, value: bytes | int | float) -> bytes:
    """A field; a whole number becomes a varint, a float a double."""
    if isinstance(value, bytes):
        return _varint(number << 3 | BYTES) + _varint(len(value)) + value
    if isinstance(value, int):
        return _varint(number << 3 | VARINT) + _varint(value)
    return _varint(number << 3 | DOUBLE) + struct.pack("<d", value)


class Writer:
    """Appends scalars to a new event file.

    Args:
        folder: of the run; TensorBoard reads the files in it in the order of their names.
        after: step that the training resumes from; TensorBoard forgets later ones of earlier files.
    """

    def __init__(self, folder: Path, after: int = 0) -> None:
        """Open a new file."""
        folder.mkdir(parents=True, exist_ok=True)
        name = PATTERN.replace("*", f"{time.time_ns():020d}.crosszero")
        self._file = (folder / name).open("xb")
        self._write(_field(FILE_VERSION, VERSION))
        self._write(_field(STEP, after + 1) + _field(SESSION, _field(STATUS, START)))

    def _write(self, event: bytes) -> None:
        data = _field(WALL_TIME, time.time()) + event
        length = struct.pack("<Q", len(data))
        self._file.write(length + struct.pack("<I", checksum(length)) + data + struct.pack("<I", checksum(data)))
        self._file.flush()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Append the scalars of a step, by tag."""
        summary = b"".join(
            _field(VALUE, _field(TAG, tag.encode()) + _varint(SIMPLE_VALUE << 3 | FLOAT) + struct.pack("<f", value))
            for tag, value in values.items()
        )
        self._write(_field(STEP, step) + _field(SUMMARY, summary))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a protocol buffer; of fixed sizes, the bytes."""
    place = 0

    def varint() -> int:
        nonlocal place
        number = shift = 0
        while True:
            byte = data[place]
            number, shift, place = number | (byte & 0x7F) << shift, shift + 7, place + 1
            if byte < 0x80:
                return number

    while place < len(data):
        key = varint()
        if key & 7 == VARINT:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == BYTES else {DOUBLE: 8, FLOAT: 4}[key & 7]
        yield key >> 3, data[place : place + size]
        place += size


def read(file: Path) -> Iterator[Scalar]:
    """The scalars of an event file, up to a last record that was not written to its end.

    Raises:
        UserError: a record before the end is damaged.
    """
    with file.open("rb") as stream:
        while len(header := stream.read(12)) == 12:
            (length,), (expected,) = struct.unpack("<Q", header[:8]), struct.unpack("<I", header[8:])
            if checksum(header[:8]) != expected:
                raise UserError(f"{file} should be a TensorBoard event file, but a record in it is damaged")
            data, end = stream.read(length), stream.read(4)
            if len(end) < 4:
                return
            if struct.pack("<I", checksum(data)) != end:
                raise UserError(f"{file} should be a TensorBoard event file, but a record in it is damaged")
            try:
                scalars = list(_scalars(data))
            except (KeyError, IndexError, struct.error) as error:
                raise UserError(f"{file} should be a TensorBoard event file, but a record is none ({error})") from None
            yield from scalars


def _scalars(event: bytes) -> Iterator[Scalar]:
    fields = list(_fields(event))
    found = dict(fields)
    (wall_time,) = struct.unpack("<d", found[WALL_TIME])
    for value in (
        value for number, summary in fields if number == SUMMARY for key, value in _fields(summary) if key == VALUE
    ):
        parts = dict(_fields(value))
        if SIMPLE_VALUE in parts:
            (number,) = struct.unpack("<f", parts[SIMPLE_VALUE])
            yield Scalar(wall_time, found.get(STEP, 0), parts[TAG].decode("utf-8", "replace"), number)

"""TensorBoard event files: written for every training, and read as a trainer wrote them.

TensorBoard itself is not needed; the base environment does not have it.

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
PREFIX = "train/"  # of the tags of transformers' and OpenRLHF's trainers

TimedValues = dict[int, dict[str, tuple[float, float]]]  # by step and tag, wall time and value


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
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


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
    position = 0

    def varint() -> int:
        nonlocal position
        number = shift = 0
        while True:
            byte = data[position]
            number, shift, position = number | (byte & 0x7F) << shift, shift + 7, position + 1
            if byte < 0x80:
                return number

    while position < len(data):
        key = varint()
        if key & 7 == VARINT:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == BYTES else {DOUBLE: 8, FLOAT: 4}[key & 7]
        yield key >> 3, data[position : position + size]
        position += size


def read_scalars(file: Path) -> Iterator[Scalar]:
    """The scalars of an event file, up to a last record that was not written to its end.

    Raises:
        UserError: a record before the end is damaged.
    """
    with file.open("rb") as stream:
        while len(header := stream.read(12)) == 12:
            (length,), (expected,) = struct.unpack("<Q", header[:8]), struct.unpack("<I", header[8:])
            if checksum(header[:8]) != expected:
                raise _damaged(file, "its length has another checksum")
            data, end = stream.read(length), stream.read(4)
            if len(end) < 4:
                return
            if struct.pack("<I", checksum(data)) != end:
                raise _damaged(file, "it has another checksum")
            try:
                scalars = list(_scalars(data))
            except (KeyError, IndexError, struct.error) as error:
                raise _damaged(file, f"it is no event: {error}") from None
            yield from scalars


def _damaged(file: Path, reason: str) -> UserError:
    sentence = f"{file} should be a TensorBoard event file, but a record in it is damaged ({reason}); copy it again"
    return UserError(sentence, code="damaged-event-file", path=str(file))


def _scalars(event: bytes) -> Iterator[Scalar]:
    fields = list(_fields(event))
    by_number = dict(fields)
    (wall_time,) = struct.unpack("<d", by_number[WALL_TIME])
    for summary in (content for number, content in fields if number == SUMMARY):
        for parts in (dict(_fields(content)) for number, content in _fields(summary) if number == VALUE):
            if SIMPLE_VALUE in parts:
                (value,) = struct.unpack("<f", parts[SIMPLE_VALUE])
                yield Scalar(wall_time, by_number.get(STEP, 0), parts[TAG].decode("utf-8", "replace"), value)


def metrics_by_step(folder: Path) -> dict[int, dict[str, float]]:
    """By native step, the scalars below the tag `train/`; where a resumed training repeated a step, the later counts.

    An event file that cannot be read is reported, and the rest of it left out.
    """
    timed: TimedValues = {}
    for file in sorted(folder.rglob(PATTERN)):
        try:
            _add_scalars(timed, file, PREFIX)
        except (UserError, OSError) as error:
            print(f"WARNING: {file} cannot be read, so the training log has gaps: {error}", flush=True)
    return _newest_values(timed)


def metrics_of_file(file: Path, prefix: str = PREFIX) -> dict[int, dict[str, float]]:
    """The same of one event file, which has to be whole.

    Args:
        file: the file.
        prefix: of the tags that are read; it is left out of the names.

    Raises:
        UserError: it is no event file, or is damaged.
    """
    timed: TimedValues = {}
    _add_scalars(timed, file, prefix)
    return _newest_values(timed)


def _add_scalars(timed: TimedValues, file: Path, prefix: str) -> None:
    for scalar in read_scalars(file):
        if scalar.tag.startswith(prefix):
            values, name = timed.setdefault(scalar.step, {}), scalar.tag.removeprefix(prefix)
            values[name] = max(values.get(name, (0.0, 0.0)), (scalar.wall_time, scalar.value))


def _newest_values(timed: TimedValues) -> dict[int, dict[str, float]]:
    return {step: {name: value for name, (_, value) in values.items()} for step, values in sorted(timed.items())}

"""Compressed files, read as far as text packs: one that is made to fill the memory or the disk ends early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LEAST, RATIO = 64 << 20, 50  # bytes, or times the packed size; models' texts pack to a twentieth
PART = 1 << 20  # bytes


def parts(stream: Any, packed: int) -> Iterator[bytes]:
    """What a stream unpacks to, in parts.

    Args:
        stream: has read(bytes).
        packed: the size of what it reads from.

    Raises:
        ValueError: it is more than LEAST bytes, and than RATIO times the packed size.
    """
    most, size = max(LEAST, RATIO * packed), 0
    while part := stream.read(PART):
        size += len(part)
        if size > most:
            raise ValueError(f"it unpacks to more than {most:,} bytes from {packed:,}")
        yield bytes(part)

"""An order that nobody chose: by a hash of what things are called, the same on every machine."""

from __future__ import annotations

import hashlib


def key(*names: object) -> str:
    """Where a thing of this name stands in the order. Names may hold lone surrogates, as model text does."""
    return hashlib.sha256("\0".join(map(str, names)).encode("utf-8", "surrogatepass")).hexdigest()


def half(name: str) -> int:
    """Which half a problem, or a cluster of them, is in, 0 or 1, by its name alone."""
    return int(key("half of", name)[:2], 16) % 2

"""What a result depends on, as one short hash: Snakemake records it and makes the result again when it changes."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def fingerprint(settings: Any) -> str:
    """Sixteen hex digits of the sha256 of settings: plain data, in which the order of keys does not count."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

"""Knights and Knaves: who is what, read from lines like `(1) Zoey is a knight` (the verifier)."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 5000  # characters: eight people need about 250
_CLAIM = re.compile(r"([^\W\d_]{1,40})\s{1,5}is\s{1,5}an?\s{1,5}(knight|knave)(?![a-z])", re.I)


def identities(text: str) -> dict[str, bool] | None:
    """Lower-case name → whether a knight; None if nobody is named or somebody is called both."""
    found: dict[str, bool] = {}
    for claim in _CLAIM.finditer(text[:LONGEST]):
        name, knight = claim[1].lower(), claim[2].lower() == "knight"
        if found.setdefault(name, knight) != knight:
            return None
    return found or None


def verify(answer: str, names: Sequence[str], knights: Sequence[bool]) -> str:
    """Judge an answer against the identities of all people.

    `correct` if everybody is named and right; `wrong` if everybody is named and somebody is not; `format_error` if
    somebody is missing or called both (Logic-RL's "unparsable"), if others are named, or if the text is too long.
    """
    claimed = identities(answer) if len(answer) <= LONGEST else None
    expected = {name.lower(): bool(knight) for name, knight in zip(names, knights, strict=True)}
    if claimed is None or claimed.keys() != expected.keys():
        return "format_error"
    return "correct" if claimed == expected else "wrong"

"""The verifier of Knights and Knaves: reads who is what from lines like `(1) Zoey is a knight`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

LONGEST = 5000  # characters: eight people need about 250


@cache
def _claim_pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(name)}\b\s+is\s+a\s+\b(knight|knave)\b", re.IGNORECASE)


def identities(text: str, names: Sequence[str]) -> list[bool] | None:
    """Whether each of these people is called a knight; None unless the text says it exactly once of each.

    Logic-RL's rule: "knight" and "knave" together occur as often as there are people, in any words, and for everybody
    the text has "is a knight" or "is a knave". So a second claim about one person, or a claim about a stranger, makes
    the answer unreadable.
    """
    lower = text.lower()
    if len(text) > LONGEST or lower.count("knight") + lower.count("knave") != len(names):
        return None
    claims = [_claim_pattern(name).search(text) for name in names]
    return [claim[1].lower() == "knight" for claim in claims if claim] if all(claims) else None


def verify(answer: str, names: Sequence[str], knights: Sequence[bool]) -> str:
    """Judge an answer against the identities of all people: `correct`, `wrong`, or `format_error` if not readable.

    Raises:
        ValueError: there are not as many identities as names, or no names.
    """
    if len(names) != len(knights) or not names:
        raise ValueError(f"{len(names)} names and {len(knights)} identities: there should be one for each name")
    claimed = identities(answer, names)
    if claimed is None:
        return "format_error"
    return "correct" if claimed == [bool(knight) for knight in knights] else "wrong"

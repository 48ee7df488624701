"""Check reasoning with given numbers, one operation a line, as in Countdown and the game of 24.

    3 * 4 = 12
    12 - 2 = 10, left 10 6

The numbers have to be available, and the result right. A line may state what is left; without it, what is left is
worked out. A line may go back to any earlier state.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

_NUMBER = r"-?\d{1,9}(?:/\d{1,9})?"
_LINE = re.compile(
    rf"(?:(?:step\s+)?\d{{1,3}}[.:)]\s+|[-*•]\s+)?({_NUMBER})(\s*[-+*/×÷]\s*)({_NUMBER})\s*=\s*({_NUMBER})"
    rf"(?:[,;]?\s*\(?left:?\s+({_NUMBER}(?:[\s,]+{_NUMBER})*)?\)?)?\.?",
    re.IGNORECASE,
)
MOST_STATES = 500  # that a line may go back to


def _calculate(a: Fraction, sign: str, b: Fraction) -> Fraction | None:
    if sign in "/÷":
        return a / b if b else None
    return a + b if sign == "+" else a - b if sign == "-" else a * b


class Operations:
    """The states that a completion has reached: the given numbers, and what is left after each of its right lines."""

    def __init__(self, numbers: Sequence[int]) -> None:
        """Begin with the given numbers."""
        self.states = [Counter(Fraction(number) for number in numbers)]

    def check(self, text: str) -> list[str] | None:
        """The faults of a line; None if it is no operation."""
        match = _LINE.fullmatch(text)
        if not match:
            return None
        sign = match[2].strip()
        if sign == match[2] and sign in "/÷" and "/" in match[1] + match[3]:
            return None  # `8/1/3` may mean two things
        try:
            a, b, stated = Fraction(match[1]), Fraction(match[3]), Fraction(match[4])
            left = Counter(map(Fraction, re.findall(_NUMBER, match[5]))) if match[5] else None
        except ZeroDivisionError:
            return None
        used, faults = Counter([a, b]), []
        if (result := _calculate(a, sign, b)) != stated:
            faults.append(f"{match[1]} {sign} {match[3]} is {'nothing' if result is None else result}, not {match[4]}")
        possible = [state for state in reversed(self.states) if used <= state]
        if not possible:
            faults.append(f"{match[1]} and {match[3]} are not both available")
        following = [state - used + Counter([stated]) for state in possible]
        if left is not None and possible and left not in following:
            faults.append("what is left is not what it says")
        if following and len(self.states) < MOST_STATES:
            self.states.append(left if left is not None and left in following else following[0])
        return faults

"""`[ … ]`, `test` and `[[ … ]]`: true, false, or not decided by what the script says."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from translate.shell.expansion import Expansion
from translate.shell.patterns import with_classes
from translate.shell.scanning import piece_end, raw_words
from translate.shell.values import Decision, as_written, is_unknown, unknown, unknown_names

_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq, "-ne": operator.ne, "-lt": operator.lt, "-le": operator.le, "-gt": operator.gt,
    "-ge": operator.ge,
}  # fmt: skip
_REPEATED_GROUP, MOST_LETTERS = re.compile(r"[*+}|][^()]*\)+[*+{]"), 1000
_TEXTS = ("=", "==", "!=", "<", ">", "=~")


class Condition:
    """One test; `names` are the variables that it needs and nobody says."""

    def __init__(self, expansion: Expansion, text: str, double: bool) -> None:
        """Of the text between the brackets; `double`: words are not split, and patterns match."""
        self.expansion, self.double, self.position = expansion, double, 0
        self.names: list[str] = []
        self.unset: list[str] = []  # variables that count as empty
        self.raw = list(_separated(text)) if double else [*raw_words(text)]

    def decision(self) -> Decision:
        """Whether it holds; None: the script does not say."""
        return self._either() if self.raw else False

    def _next(self, offset: int = 0) -> str:
        at = self.position + offset
        return self.raw[at] if at < len(self.raw) else ""

    def _taken(self, *tokens: str) -> bool:
        taken = bool(self._next()) and self._next() in tokens
        self.position += taken
        return taken

    def _either(self) -> Decision:
        result = self._both()
        while self._taken("||", "-o"):
            result = either(result, self._both())
        return result

    def _both(self) -> Decision:
        result = self._single()
        while self._taken("&&", "-a"):
            result = both(result, self._single())
        return result

    def _single(self) -> Decision:
        if self._next() == "!" and self._next(1):
            self.position += 1
            result = self._single()
            return None if result is None else not result
        if self._taken("(", r"\("):
            result = self._either()
            self._taken(")", r"\)")
            return result
        sign = self._next(1)
        if sign in _TEXTS or sign in _COMPARED or sign in (r"\<", r"\>"):
            self.position += 3
            return self._compared(self._next(-3), sign.lstrip("\\"), self._next(-1))
        if re.fullmatch(r"-[a-zA-Z]", self._next()) and sign and sign not in ("&&", "||", ")"):
            self.position += 2
            return self._of_one(self._next(-2), self._next(-1))
        self.position += 1
        value = self._text(self._next(-1)) or ""
        return None if self._note(value) else bool(value)

    def _text(self, raw: str) -> str | None:
        """What a word gives; None where that is no word, which an empty value without quotes is in `[ … ]`."""
        if self.double:
            return self.expansion.one_word(raw)
        fields = self.expansion.fields(raw)
        return " ".join(fields) if fields else None

    def _note(self, *values: str) -> bool:
        """Whether one of the values is unknown; its variables are noted."""
        self.names += [name for value in values for name in unknown_names(value)]
        return any(map(is_unknown, values))

    def _compared(self, left: str, sign: str, right: str) -> Decision:
        one, other = self._text(left), self._text(right)
        if one is None or other is None:
            return False  # `[ = a ]` is an error
        if self._note(one, other):
            if sign == "=~":
                self._matched([unknown("${BASH_REMATCH[@]}")])
            return None
        if sign in _COMPARED and not self.double:
            is_plain = all(re.fullmatch(r"\s*[-+]?\d+\s*", value) for value in (one, other))
            return is_plain and _COMPARED[sign](int(one), int(other))
        if sign in _COMPARED:
            numbers = self.expansion.number(one), self.expansion.number(other)
            return None if None in numbers else _COMPARED[sign](numbers[0] or 0, numbers[1] or 0)
        if sign == "=~":
            return self._searched(self.expansion.with_signs_escaped(right, r"[][\\^$.|?*+(){}]"), one)
        if sign in ("<", ">"):
            return one < other if sign == "<" else one > other
        if not self.double:
            return (one == other) == (sign != "!=")
        pattern = self.expansion.pattern(right, has_groups=True)
        return (
            None if self._note(pattern) else self.expansion.glob(pattern, has_groups=True).fits(one) == (sign != "!=")
        )

    def _searched(self, pattern: str, text: str) -> Decision:
        if _REPEATED_GROUP.search(pattern) or len(text) > MOST_LETTERS:  # Python may search for ever
            self._matched([unknown("${BASH_REMATCH[@]}")])
            return None
        try:
            ignores_case = bool(self.expansion.state.options.get("nocasematch"))
            match = re.search(with_classes(pattern), text, re.IGNORECASE * ignores_case)
        except re.error:
            self._matched([unknown("${BASH_REMATCH[@]}")])
            return None
        self._matched([match[0], *(group or "" for group in match.groups())] if match else [])
        return bool(match)

    def _matched(self, parts: list[str]) -> None:
        self.expansion.state.assign("BASH_REMATCH", parts)

    def _of_one(self, sign: str, raw: str) -> Decision:
        """Emptiness, which a variable that nobody sets has; files are not looked at."""
        if sign == "-v":
            return self._is_set(raw)
        value = self._text(raw)
        if value is None:
            return True  # `[ -n ]` tests the sign, a word
        if sign not in ("-z", "-n"):
            self.names += unknown_names(value)
            return None
        unset = re.fullmatch(r"\"?\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})\"?", raw)
        name, state = unset and (unset[1] or unset[2]), self.expansion.state
        if name and (state.value(name) is None or (name in state.empty and value == "")):
            self.unset.append(name)
            return sign == "-z" or not (self.double or '"' in raw)
        if self._note(value) and not re.sub("\ue000[^\ue001]*\ue001", "", value):
            return None
        return bool(as_written(value)) == (sign == "-n")

    def _is_set(self, raw: str) -> Decision:
        """Of a variable, or an element of an array."""
        name = self._text(raw) or ""
        if self._note(name):
            return None
        array, bracket, key = name.partition("[")
        value = self.expansion.one_word(f"${{{array}[{key}-}}") if bracket and key != "]" else None
        return bool(value) if bracket else self.expansion.state.text(name) is not None


def both(one: Decision, other: Decision) -> Decision:
    """And, of three values."""
    return False if one is False or other is False else None if one is None or other is None else True


def either(one: Decision, other: Decision) -> Decision:
    """Or, of three values."""
    return True if one is True or other is True else None if one is None or other is None else False


def _separated(text: str) -> list[str]:
    """Words of `[[ … ]]`, with brackets as words of their own."""
    result = list[str]()
    for word in raw_words(text):
        is_pattern = bool(result) and result[-1] in ("=~", "==", "=", "!=")
        opening = "" if is_pattern else re.match(r"(?:!?\()*", word)[0]  # type: ignore[index]
        closing = _unopened(word[len(opening) :])
        end = len(word) - closing
        result += [*opening, *([word[len(opening) : end]] if len(opening) < end else []), *word[end:]]
    return result


def _unopened(word: str) -> int:
    """How many brackets at a word's end nothing in it has opened."""
    depth, position = 0, 0
    while position < len(word):
        depth += (word[position] == "(") - (word[position] == ")")
        position = piece_end(word, position)
    return min(max(0, -depth), len(word) - len(word.rstrip(")")))

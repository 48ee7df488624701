"""Whole-number expressions of bash, with assignments; precedence as in its manual, "Shell Arithmetic"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(\d+#\w+|0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*(?:\[[^\]]*\])?"
    r"|<<=|>>=|\*\*|\+\+|--|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),])"
)
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
_MOST_BITS = 64


def _divided(one: int, other: int) -> int:
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def _power(one: int, other: int) -> int:
    if not 0 <= other <= _MOST_BITS:
        raise ValueError("an exponent out of range")
    result: int = one**other
    return result


def _shifted(one: int, other: int) -> int:
    return one << (other % _MOST_BITS)


_OPERATIONS: Mapping[str, Callable[[int, int], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided, "%": lambda a, b: a - b * _divided(a, b),
    "**": _power, "<<": _shifted, ">>": lambda a, b: a >> (b % _MOST_BITS), "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le,
    ">=": operator.ge, "&&": lambda a, b: bool(a) and bool(b), "||": lambda a, b: bool(a) or bool(b),
}  # fmt: skip


class Arithmetic:
    """One expression."""

    def __init__(self, text: str, variables: MutableMapping[str, int]) -> None:
        """Of a text whose expansions are done; `variables` raises KeyError for a name without a whole number."""
        self.tokens, position = list[str](), 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if not match:
                raise ValueError(f"'{text}' is no sum")
            self.tokens.append(match[1])
            position = match.end()
        self.variables, self.position, self.counts = variables, 0, True  # counts: what is read now is evaluated

    def value(self) -> int:
        """The value; assignments are done. Raises ValueError, KeyError or ZeroDivisionError where there is none."""
        if not self.tokens:
            return 0
        result = self._list()
        if self.position < len(self.tokens):
            raise ValueError(f"'{self.tokens[self.position]}' does not belong here")
        return result

    def _next(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _taken(self, *wanted: str) -> str:
        token = self._next()
        if token not in wanted:
            return ""
        self.position += 1
        return token

    def _list(self) -> int:
        result = self._assignment()
        while self._taken(","):
            result = self._assignment()
        return result

    def _assignment(self) -> int:
        name, sign = self._next(), self.tokens[self.position + 1] if self.position + 1 < len(self.tokens) else ""
        is_assignment = sign == "=" or (sign.endswith("=") and sign[:-1] in _OPERATIONS and sign not in _OPERATIONS)
        if re.match(r"[A-Za-z_]", name) and is_assignment:
            self.position += 2
            value = self._assignment()
            return self._set(name, value if sign == "=" else self._operated(sign[:-1], self._value_of(name), value))
        condition = self._level(0)
        if not self._taken("?"):
            return condition
        yes = self._only_if(bool(condition), self._assignment)
        if not self._taken(":"):
            raise ValueError("'?' without ':'")
        no = self._only_if(not condition, self._assignment)
        return yes if condition else no

    def _only_if(self, counts: bool, follow: Callable[[], int]) -> int:
        """Read what is evaluated only then, as behind `&&`; it has no effects otherwise."""
        before, self.counts = self.counts, self.counts and counts
        try:
            return follow()
        finally:
            self.counts = before

    def _value_of(self, name: str) -> int:
        return self.variables[name] if self.counts else 0

    def _set(self, name: str, value: int) -> int:
        if self.counts:
            self.variables[name] = value
        return value

    def _operated(self, sign: str, one: int, other: int) -> int:
        return _wrapped(_OPERATIONS[sign](one, other)) if self.counts else 0

    def _level(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._powers()
        result = self._level(level + 1)
        while sign := self._taken(*_LEVELS[level]):
            is_open = sign not in ("&&", "||") or bool(result) == (sign == "&&")
            result = self._operated(sign, result, self._only_if(is_open, lambda: self._level(level + 1)))
        return result

    def _powers(self) -> int:
        base = self._unary()
        return self._operated("**", base, self._powers()) if self._taken("**") else base

    def _unary(self) -> int:
        sign = self._taken("+", "-", "!", "~", "++", "--")
        if sign in ("++", "--"):
            return self._stepped(self._name(), 1 if sign == "++" else -1)
        if sign:
            value = self._unary()
            return {"+": value, "-": -value, "!": int(not value), "~": ~value}[sign]
        if self._taken("("):
            value = self._list()
            if not self._taken(")"):
                raise ValueError("'(' without ')'")
            return value
        return self._operand()

    def _operand(self) -> int:
        token = self._next()
        self.position += 1
        if re.match(r"[A-Za-z_]", token):
            if sign := self._taken("++", "--"):
                before = self._value_of(token)
                self._stepped(token, 1 if sign == "++" else -1)
                return before
            return self._value_of(token)
        base, hash_sign, digits = token.partition("#")
        if hash_sign:
            return int(digits, int(base))
        return int(token, 16 if token[:2].lower() == "0x" else 8 if re.fullmatch(r"0\d+", token) else 10)

    def _name(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def _stepped(self, name: str, by: int) -> int:
        return self._set(name, _wrapped(self._value_of(name) + by))


def _wrapped(value: Any) -> int:
    """In 64 bits with a sign, as bash counts."""
    half: int = 1 << (_MOST_BITS - 1)
    return (int(value) + half) % (2 * half) - half

"""The value of an arithmetic expression that a model wrote, in exact arithmetic; × ÷ − are read as * / -.

The verifiers of Countdown and of the game of 24 use it. The text is never evaluated as code: once it holds nothing but
whole numbers, + - * / (or × ÷ −) and brackets, Python's parser gives its structure.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

LONGEST = 300  # characters: six numbers need about 40
_TOKEN = re.compile(r"[1-9]\d{0,11}(?!\d)|0(?!\d)|[-+*/()]")  # no leading zeros, as in Python
_TOKENS = re.compile(rf"(?:\s*(?:{_TOKEN.pattern}))+\s*")
_SIGNS = str.maketrans("×÷−", "*/-")

Value = int | Fraction  # whole wherever it can be, which is many times faster


class Unparsable(ValueError):
    """The text is not an arithmetic expression."""


def _divide(value: Value, by: Value) -> Value:
    quotient, remainder = divmod(value, by)
    return Fraction(value) / by if remainder else int(quotient)


_OPERATIONS: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: _divide
}  # fmt: skip


def _node_value(node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.UAdd() | ast.USub()):
            return _node_value(node.operand) if isinstance(node.op, ast.UAdd) else -_node_value(node.operand)
        case ast.BinOp() if type(node.op) in _OPERATIONS:
            return _OPERATIONS[type(node.op)](_node_value(node.left), _node_value(node.right))
    raise Unparsable


def evaluate(expression: str) -> tuple[Value | None, list[int]]:
    """Value (None where it divides by zero) and numbers of an expression. Raises Unparsable."""
    text = expression.strip().translate(_SIGNS)
    if len(text) > LONGEST or not text.isascii() or not _TOKENS.fullmatch(text):
        raise Unparsable
    tokens = _TOKEN.findall(text)
    try:
        parsed = ast.parse(" ".join(tokens), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise Unparsable from None
    try:
        value = _node_value(parsed)
    except ZeroDivisionError:
        value = None
    return value, [int(token) for token in tokens if token.isdigit()]

"""What an assignment of a script leaves in its state."""

from __future__ import annotations

import re

from translate.shell.expansion import Expansion
from translate.shell.scanning import raw_words
from translate.shell.values import State, Value, unknown


def assign(state: State, expansion: Expansion, text: str, is_map: bool = False) -> str:
    """Follow `name=value`, `name+=value`, `name[key]=value` or `name=(…)`; returns the name."""
    match = re.match(r"([A-Za-z_]\w*)(?:\[(.*?)\])?(\+?)=(.*)\Z", text, re.DOTALL)
    if not match:
        return ""
    name, key, adds, written = match.groups()
    name = state.references.get(name, name)
    if written.startswith("(") and written.endswith(")"):
        state.assign(name, _array(state, expansion, name, written[1:-1], bool(adds), is_map))
    elif key is not None:
        _assign_element(state, expansion, name, key, adds, written)
    else:
        value = expansion.text(written, quotes=True)
        if adds and isinstance(before := state.value(name), list):
            state.assign(name, [(before or [""])[0] + value, *before[1:]])
        else:
            known = state.text(name) or "" if name in state.variables or not adds else None
            state.assign(name, (unknown(f"${name}") if known is None else known if adds else "") + value)
    return name


def _array(state: State, expansion: Expansion, name: str, written: str, adds: bool, is_map: bool) -> Value:
    before = state.variables.get(name)
    pairs = [re.fullmatch(r"\[(.*?)\]=(.*)", word, re.DOTALL) for word in raw_words(written)]
    if isinstance(before, dict) and adds and not any(pairs):  # an array with a gap
        fields = [field for word in raw_words(written) for field in expansion.fields(word)]
        free = max((int(key) for key in before if key.isdigit()), default=-1) + 1
        return before | {str(number): field for number, field in enumerate(fields, free)}
    if is_map or isinstance(before, dict):
        kept = dict(before) if adds and isinstance(before, dict) else {}
        return kept | {
            expansion.text(pair[1], quotes=True): expansion.text(pair[2], quotes=True)
            for pair in pairs if pair
        }  # fmt: skip
    fields = [field for word in raw_words(written) for field in expansion.fields(word)]
    if not adds:
        return fields
    first = before if isinstance(before, list) else [] if before is None else [str(before)]
    return [*first, *fields]


def _assign_element(state: State, expansion: Expansion, name: str, key: str, adds: str, written: str) -> None:
    value, before = expansion.text(written, quotes=True), state.variables.get(name)
    if isinstance(before, dict):
        at = expansion.text(key, quotes=True)
        state.assign(name, before | {at: (before.get(at, "") if adds else "") + value})
        return
    elements = list(before) if isinstance(before, list) else [] if before is None else [str(before)]
    number = expansion.number(key)
    if number is None or not -len(elements) <= number <= len(elements):
        state.assign(name, [*elements, unknown(f"${{{name}[{key}]}}")])
    elif number == len(elements):
        state.assign(name, [*elements, value])
    else:
        elements[number] = (elements[number] if adds else "") + value
        state.assign(name, elements)

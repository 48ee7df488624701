"""What an assignment of a script leaves in its state."""

from __future__ import annotations

import re

from translate.shell.expansion import Expansion
from translate.shell.scanning import raw_words
from translate.shell.values import Gapped, State, Value, array_of, is_unknown, unknown
from translate.shell.words import with_home


def assign(state: State, expansion: Expansion, text: str, is_map: bool = False) -> str:
    """Follow `name=value`, `name+=value`, `name[key]=value` or `name=(…)`; returns the name."""
    match = re.match(r"([A-Za-z_]\w*)(?:\[(.*?)\])?(\+?)=(.*)\Z", text, re.DOTALL)
    if not match:
        return ""
    name, key, adds, written = match.groups()
    name = state.target(name)
    is_sum = state.kinds.get(name) == "i"
    if written.startswith("(") and written.endswith(")"):
        state.assign(name, _array(state, expansion, name, written[1:-1], bool(adds), is_map))
    elif key is not None:
        value = expansion.one_word(written)
        if is_sum:
            value, adds = _sum(expansion, name, f"{name}[{key}]" if adds else "0", value), ""
        expansion.assign_element(name, key, value, bool(adds))
    else:
        value = expansion.one_word(with_home(written, is_assigned=True))
        if is_sum:
            value, adds = _sum(expansion, name, name if adds else "0", value), ""
        if (is_sum or adds) and isinstance(state.value(name), (list, dict)):
            expansion.assign_element(name, "0", value, bool(adds))
        else:
            known = state.text(name) or "" if name in state.variables or not adds else None
            state.assign(name, (unknown(f"${name}") if known is None else known if adds else "") + value)
    return name


def _sum(expansion: Expansion, name: str, before: str, added: str) -> str:
    number = None if is_unknown(added) else expansion.number(f"{before} + ({added or 0})")
    return unknown(f"${name}") if number is None else str(number)


def _array(state: State, expansion: Expansion, name: str, written: str, adds: bool, is_map: bool) -> Value:
    before = state.variables.get(name)
    written_fields = _written_fields(written)
    pairs = [re.fullmatch(r"\[(.*?)\]=(.*)", word, re.DOTALL) for word in written_fields]
    if is_map or (isinstance(before, dict) and not isinstance(before, Gapped)):
        kept = dict(before) if adds and isinstance(before, dict) else {}
        return kept | {
            expansion.one_word(pair[1]): expansion.one_word(pair[2])
            for pair in pairs if pair
        }  # fmt: skip
    elements = state.numbered(name) or {} if adds and before is not None else {}
    free = max(elements, default=-1) + 1
    for word, pair in zip(written_fields, pairs, strict=True):
        number = expansion.number(pair[1]) if pair else free
        if number is None:
            return [*elements.values(), unknown(f"${{{name}[@]}}")]
        fields = [expansion.one_word(pair[2])] if pair else expansion.fields(word)
        elements |= dict(enumerate(fields, number))
        free = number + len(fields)
    return array_of(elements)


def _written_fields(written: str) -> list[str]:
    """Fields between the brackets; a key may have spaces."""
    written_fields = list[str]()
    for word in raw_words(written):
        if written_fields and written_fields[-1].startswith("[") and "]" not in written_fields[-1]:
            written_fields[-1] += f" {word}"
        else:
            written_fields.append(word)
    return written_fields

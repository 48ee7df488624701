"""Words of a script with their quotes, variables, arrays, sums and substitutions, as bash expands them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, MutableMapping, Sequence

from system.errors import UserError
from translate.shell.arithmetic import Arithmetic
from translate.shell.patterns import Pattern, replaced, trimmed
from translate.shell.scanning import bracket_end, expansion_end, has_group, piece_end, unknown_end
from translate.shell.values import (
    BEGIN,
    MOST_CHARACTERS,
    WHITESPACE,
    Gapped,
    State,
    array_of,
    as_written,
    is_unknown,
    pieces,
    unknown,
    unknown_names,
    unknown_parts,
)
from translate.shell.words import Fields, unescaped, with_braces, with_home

_SUBSCRIPT = r"(\[(?:[^\[\]]|\[[^\]]*\])*\])?"
_PARAMETER = re.compile(rf"([A-Za-z_]\w*|\d+|[@*#?$!-]){_SUBSCRIPT}")
_DEFAULT = re.compile(rf"\$\{{([A-Za-z_]\w*|\d+|[@*?$-]){_SUBSCRIPT}(:?)([-=+?])(.*)\}}", re.DOTALL)
_LIST = re.compile(r"\$(?:\{!?)?(?:[A-Za-z_]\w*\[?)?([@*])")  # $@, ${*…}, ${name[@]…}, ${!name@} and their like
_BOTH = "'\""
_MARKED_QUOTES = ("$'", '$"')
_ESCAPED = '$`"\\\n'
_PLAIN = re.compile(rf"[^\\$`'\"{BEGIN}]*")
_ASSIGNED = re.compile(  # within a sum
    r"([A-Za-z_]\w*)(\[[^\]]*\])?\s*(?:<<|>>|[-+*/%&|^])?=(?!=)|(?:\+\+|--)\s*([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*(?:\+\+|--)"
)


class Expansion:
    """Expands words with a state."""

    def __init__(self, state: State, substituted: Callable[[str], str | None]) -> None:
        """Of a state, and what gives the output of a substituted command."""
        self.state, self.substituted = state, substituted

    @property
    def separators(self) -> str:
        """Those of IFS."""
        stated = self.state.text("IFS") if "IFS" in self.state.variables else None
        return WHITESPACE if stated is None or is_unknown(stated) else stated

    def together(self, elements: Sequence[str]) -> str:
        """Elements as one text, as `"$*"` has them."""
        return self.separators[:1].join(elements)

    def fields(self, word: str) -> list[str]:
        """What one word becomes: none, one, or several."""
        self.check_groups([word])
        return [field for one in with_braces(word) for field in self._fields(one)]

    def _fields(self, word: str) -> list[str]:
        fields = Fields()
        self._add(fields, with_home(word), _BOTH, self.separators)
        return fields.fields

    def one_word(self, written: str) -> str:
        """A text outside of quotes as one word: its quotes are removed."""
        return self.text(written, _BOTH)

    def text(self, written: str, quotes: str = "", escaped: str = _ESCAPED) -> str:
        """A text as within double quotes, or a heredoc, as one text; see _add."""
        fields = Fields()
        self._add(fields, written, quotes, escaped=escaped)
        return " ".join(fields.fields)

    def _add(
        self,
        fields: Fields,
        written: str,
        quotes: str = "",
        separators: str | None = None,
        plain: str | None = None,
        escaped: str = _ESCAPED,
    ) -> bool:
        """Add a text to fields; returns whether it has a list such as `$@`, which may have no elements.

        Args:
            fields: that it goes on with.
            written: the text.
            quotes: the signs that begin a quote: both outside of double quotes, `"` in the text of `"${name:-text}"`.
            separators: at which values outside of quotes are split; None: they are not.
            plain: at which plain signs are split, in a default.
            escaped: the signs that a backslash escapes; outside of quotes each.
        """
        position, is_quoted, has_list = 0, quotes != _BOTH, False
        while position < len(written):
            letter, start = written[position], position
            if letter == "\\" and (not is_quoted or written[start + 1 : start + 2] in {*escaped, *"}" * len(quotes)}):
                position += 2
                if written[start + 1 : position] != "\n":
                    fields.add(written[start + 1 : position])
            elif letter in quotes or (quotes and written[start : start + 2] in _MARKED_QUOTES):
                position = piece_end(written, start)
                self._add_quoted(fields, written[start:position])
            elif letter == BEGIN:
                position = unknown_end(written, start)
                fields.add(written[start:position])
            elif letter in "$`":
                position = expansion_end(written, start, is_quoted)
                has_list |= self._add_expansion(fields, written[start:position], quotes, separators)
            else:
                position = _PLAIN.match(written, start + 1).end()  # type: ignore[union-attr]
                fields.split(written[start:position], plain)
        return has_list

    def _add_quoted(self, fields: Fields, quoted: str) -> None:
        if quoted[0] == "'":
            fields.add(quoted[1:-1])
        elif quoted.startswith("$'"):
            fields.add(_unescaped(quoted[2:-1]))
        elif not self._add(fields, quoted.lstrip("$")[1:-1]):
            fields.add("")

    def _add_expansion(self, fields: Fields, written: str, quotes: str, separators: str | None) -> bool:
        """Add the value of one `$…` or backquoted text; returns as _add does."""
        default, is_quoted = _DEFAULT.fullmatch(written), quotes != _BOTH
        if default is None or bracket_end(written, 1) < len(written):
            return self._add_value(fields, written, is_quoted, separators)
        name, key, colon, sign, text = default.groups()
        values, quotes = self._values(name, key), '"' if is_quoted else _BOTH
        is_set = bool(values) and not (colon and values == [""])
        if is_set and sign == "+" and colon and (names := _of_unknown(values or [])):
            fields.add(unknown(written, names[0]))  # which may be empty
            return False
        if sign == "-" and not text and values is None:
            self.state.empty[name] = None
        if sign in "-+" and is_set == (sign == "+"):
            self._add(fields, text if is_quoted else with_home(text), quotes, separators, separators)
        elif sign == "+":
            return not values and "@" in (name, (key or "")[1:-1])
        elif sign == "?" and not is_set:
            fields.add(unknown(written))
        else:
            if not is_set:
                self._assign_default(name, key, self.text(text, quotes))
            return self._add_value(fields, f"${{{name}{key or ''}}}", is_quoted, separators)
        return False

    def _add_value(self, fields: Fields, written: str, is_quoted: bool, separators: str | None) -> bool:
        array, kind = self._whole_array(written), _LIST.match(written)
        separators = None if is_quoted else separators
        if array is None or kind is None:
            fields.split(self.expanded(written), separators)
        elif separators is None and kind[1] == "*":
            fields.split(self.together(array), None)
        elif separators is None:
            fields.extend(array)
        else:
            for number, element in enumerate(array):
                fields.open = fields.open and not number
                fields.split(element, separators)
        return bool(array is not None and kind and kind[1] == "@")

    def _assign_default(self, name: str, key: str | None, text: str) -> None:
        if key:
            self.assign_element(name, key[1:-1], text)
        else:
            self.state.assign(name, text)

    def _values(self, name: str, key: str | None) -> list[str] | None:
        """The elements of a whole array, or one value; None: nobody says it."""
        if name in "@*":
            return self.state.arguments()
        if key in ("[@]", "[*]"):
            return self.state.elements(name)
        value = self._element(name, key)
        return None if value is None else [value]

    def _whole_array(self, written: str) -> list[str] | None:
        """The elements where a text is `$@` or `${name[@]…}` alone, else None."""
        if written in ("$@", "$*", "${@}", "${*}"):
            return self.state.arguments()
        match = re.fullmatch(r"\$\{(!?)([A-Za-z_]\w*|[@*])(?:\[([@*])\])?(.*)\}", written, re.DOTALL)
        if match and match[1] and match[4] in ("@", "*"):
            return sorted(name for name in self.state.names() if name.startswith(match[2]))
        if not match or not (match[3] or match[2] in "@*") or bracket_end(written, 1) < len(written):
            return None
        if match[1]:
            value = self.state.variables.get(match[2])
            keys = list(value) if isinstance(value, dict) else [str(n) for n, _ in enumerate(self._elements(match[2]))]
            return keys if value is not None else [unknown(written)]
        elements, rest = self._values(match[2], "[@]"), match[4]
        if elements is None:
            return [unknown(written)]
        if rest.startswith(":"):
            return self._slice(written, rest)
        return [self._changed(element, rest, written) for element in elements] if rest else elements

    def _slice(self, written: str, rest: str) -> list[str]:
        """`${name[@]:from:count}`, where elements count by their numbers, and `${@:from:count}`, where $0 is one."""
        name, numbers = written[2:].partition("[")[0], [self.number(part) for part in rest[1:].split(":")]
        if isinstance(text := self.state.variables.get(self.state.target(name)), str):
            return [self._changed(text, rest, written)]
        numbered = self.state.numbered(name)
        if written[2] in "@*":
            numbered = dict(enumerate([self._value("0", "$0"), *(self.state.arguments())]))
        first, count = numbers[0], numbers[1] if len(numbers) > 1 else MOST_CHARACTERS
        parts = [part for element in (numbered or {}).values() for part in unknown_parts(element)]
        has_gap = any(part.endswith(("[@]}", "[*]}")) for part in parts)  # nobody says how many elements it is
        if numbered is None or has_gap or first is None or count is None or count < 0:
            return [unknown(written)]
        first += (max(numbered, default=-1) + 1) * (first < 0)
        return [element for number, element in numbered.items() if 0 <= first <= number][:count]

    def _elements(self, name: str) -> list[str]:
        return self.state.elements(name) or []

    def check_groups(self, patterns: list[str]) -> None:
        """Refuse a group such as `@(a|b)` where extglob is off: bash reads no script that has one there."""
        for pattern in patterns if self.state.options.get("extglob", False) is False else []:
            if has_group(pattern):
                raise UserError(
                    f"the pattern '{pattern}' is no bash without `shopt -s extglob` in a line before it; add that line",
                    code="not-bash",
                )

    def with_signs_escaped(self, written: str, signs: str) -> str:
        """A pattern with its values, in which the signs that are within quotes stand for themselves.

        Args:
            written: the pattern.
            signs: matches those that a backslash escapes.
        """
        parts, position = list[str](), 0
        while position < len(written):
            letter, start = written[position], position
            position = piece_end(written, start)
            if letter in "'\"" or written[start : start + 2] in _MARKED_QUOTES:
                text = self.one_word(written[start:position])
                parts.append(text if is_unknown(text) else re.sub(signs, r"\\\g<0>", text))
            else:
                parts.append(self.text(written[start:position]) if letter in "$`" else written[start:position])
        return "".join(parts)

    def pattern(self, written: str, has_groups: bool = False) -> str:
        """A shell pattern; see with_signs_escaped and glob."""
        pattern, options = self.with_signs_escaped(written, r"[-*?\[\]\\()|@+!^]"), self.state.options
        needed = ["nocasematch", *(["extglob"] if "(" in pattern and not has_groups else [])]
        undecided = [name for name in needed if options.get(name, False) is None]
        return unknown(written, undecided[0]) if undecided else pattern

    def glob(self, written: str, has_groups: bool = False, ignores_case: bool | None = None) -> Pattern:
        """What matches a pattern; as shopt has it where nothing is said of groups and case."""
        options = self.state.options
        ignores_case = bool(options.get("nocasematch")) if ignores_case is None else ignores_case
        pattern = Pattern(written, has_groups or bool(options.get("extglob")), ignores_case)
        if pattern.is_odd:
            raise _odd(written)
        return pattern

    def _sum(self, written: str, within: str) -> str:
        number, open_names = self.sum(within)
        return unknown(written, (open_names or [""])[0]) if number is None else str(number)

    def expanded(self, written: str) -> str:
        """The value of one `$…` or backquoted text that is no list."""
        if written.startswith("$((") and written.endswith("))"):
            return self._sum(written, written[3:-2])
        if written.startswith("$["):  # bash's older way to write it
            return self._sum(written, written[2:-1])
        if written.startswith(("$(", "`")):
            command = written[2:-1] if written[0] == "$" else re.sub(r"\\([\\$`])", r"\1", written[1:-1])
            output = self.substituted(command)
            return unknown(written) if output is None else output
        if written.startswith("${"):
            return self._parameter(written)
        return self._value(written[1:], written) if len(written) > 1 else written

    def _value(self, name: str, written: str) -> str:
        if name == "#":
            return unknown(written, "1") if self.state.positional is None else str(len(self.state.positional))
        value = self.state.text(name)
        if value is None:
            return "" if self.state.has_none(name) else unknown(written)
        return value

    def _parameter(self, written: str) -> str:
        inner = written[2:-1]
        if inner.startswith("#") and len(inner) > 1:
            return self._length(inner[1:], written)
        if inner.startswith("!"):
            target = self.state.text(inner[1:])
            value = None if target is None else self.state.text(target)
            return unknown(written) if value is None else value
        match = _PARAMETER.match(inner)
        if not match:
            return unknown(written)
        value, rest = self._element(match[1], match[2]), inner[match.end() :]
        has_none = self._is_whole(match[1], match[2]) if match[2] else self.state.has_none(match[1])
        if value is None and not has_none:
            return unknown(written, match[1] if re.match(":?[?]", rest) else "")  # what it says then decides nothing
        return self._changed(value or "", rest, written) if rest else value or ""

    def _is_whole(self, name: str, subscript: str) -> bool:
        """Whether an array and the subscript are known, so that an element that is not there is empty."""
        value, elements = self.state.variables.get(self.state.target(name)), self.state.elements(name) or []
        return value is not None and not any(map(is_unknown, [*elements, self.text(subscript)]))

    def _length(self, name: str, written: str) -> str:
        array = name.removesuffix("[@]").removesuffix("[*]")
        if array != name:
            elements = self.state.elements(array)
            known = elements is not None and not any(map(is_unknown, elements))
            return str(len(elements or [])) if known else unknown(written)
        match = _PARAMETER.fullmatch(name)
        value = self._element(match[1], match[2]) if match else None
        return unknown(written) if value is None or is_unknown(value) else str(len(value))

    def _element(self, name: str, subscript: str | None) -> str | None:
        """The value of a parameter, or of an array's element; None: nobody says it."""
        if subscript is None:
            return str(len(self.state.positional)) if name == "#" and self.state.positional else self.state.text(name)
        value, key = self.state.value(name), subscript[1:-1]
        if value is not None and (names := unknown_names(self.one_word(key))):
            return unknown(f"${{{name}{subscript}}}", names[0])
        if isinstance(value, dict) and not isinstance(value, Gapped):
            return value.get(self.one_word(key))
        (number, names), elements = self.sum(key), self.state.numbered(name)
        if number is None and value is not None and names:
            return unknown(f"${{{name}{subscript}}}", names[0])
        if number is None or elements is None:
            return None
        counts_from_end = number < 0 and not isinstance(value, str)
        return elements.get(max(elements, default=-1) + 1 + number if counts_from_end else number)

    def _changed(self, value: str, rest: str, written: str) -> str:
        """`${name%pattern}`, `${name/pattern/text}`, `${name:from:count}`, `${name^^}` and their like."""
        if is_unknown(value):
            return unknown(written)
        if match := re.match(r"(%%?|##?)(.*)\Z", rest, re.DOTALL):
            pattern = self.pattern(match[2])
            if is_unknown(pattern):
                return unknown(written, (unknown_names(pattern) or [""])[0])
            return trimmed(value, match[1], self.glob(pattern, ignores_case=False))
        if match := re.match(r"(//|/#|/%|/)(.*)\Z", rest, re.DOTALL):
            return self._replaced(value, match[1], match[2], written)
        if rest in ("^^", ",,", "^", ",", "@U", "@L", "@u"):
            changed = value.lower() if rest in (",,", ",", "@L") else value.upper()
            return changed[:1] + value[1:] if rest in ("^", ",", "@u") else changed
        if rest == "@Q" and value.isprintable():
            return "'" + value.replace("'", "'\\''") + "'"
        if rest.startswith(":"):
            numbers = [self.number(part) for part in rest[1:].split(":")]
            if None not in numbers:
                first = numbers[0] or 0
                first += len(value) * (first < 0)
                count = numbers[1] if len(numbers) > 1 else None
                end = len(value) if count is None else count + (first if count >= 0 else len(value))
                return unknown(written) if count and end < first else value[first:end] if first >= 0 else ""
        return unknown(written)

    def _replaced(self, value: str, sign: str, rest: str, written: str) -> str:
        end = 1 if sign == "//" and rest.startswith("/") else 0  # a pattern may begin with the sign that ends it
        while end < len(rest) and rest[end] != "/":
            end = piece_end(rest, end)
        pattern, raw = self.pattern(rest[:end]), rest[end + 1 :]
        replacement, unquoted = self.one_word(raw), re.sub(r"""\\.|'[^']*'|"[^"]*\"""", "", raw)
        if is_unknown(pattern):
            return unknown(written, (unknown_names(pattern) or [""])[0])
        if "&" in replacement and re.search("[&$`]", unquoted):  # it is what matches, but only from bash 5.2 on
            return unknown(written[1:])
        glob = self.glob(pattern)
        has_groups = glob.has_groups and "(" in pattern
        if re.search(r"\[[!^]\]", pattern) or (has_groups and (not value or (sign == "/%" and glob.fits("")))):
            raise _odd(written)
        return replaced(value, sign, glob, replacement)

    def assign_element(self, name: str, key: str, value: str, adds: bool = False) -> None:
        """Set an element of an array, by number or by key."""
        before = self.state.variables.get(name)
        if isinstance(before, dict) and not isinstance(before, Gapped):
            at = self.one_word(key)
            self.state.assign(name, before | {at: (before.get(at, "") if adds else "") + value})
            return
        elements = self.state.numbered(name) or {} if before is not None else {}
        number, last = self.number(key), max(elements, default=-1)
        if number is None or number < -last - 1:
            self.state.assign(name, [*elements.values(), unknown(f"${{{name}[{key}]}}")])
        else:
            at_number = number if number >= 0 else last + 1 + number
            text = (elements.get(at_number, "") if adds else "") + value
            self.state.assign(name, array_of(elements | {at_number: text}))

    def number(self, written: str) -> int | None:
        """A sum's value; None: it is unknown."""
        return self.sum(written)[0]

    def sum(self, written: str) -> tuple[int | None, list[str]]:
        """The same, and if it is unknown the variables that nobody says."""
        text = self.one_word(written)
        if not is_unknown(text):
            try:
                return Arithmetic(text, _Numbers(self)).value(), []
            except (ValueError, KeyError, ZeroDivisionError, RecursionError):
                pass
        open_names = self._unknown_operands(text)
        for match in _ASSIGNED.finditer(as_written(text)):  # what it would have assigned is unknown, too
            name = match[1] or match[3] or match[4]
            self.state.assign(name, [unknown(f"${{{name}[@]}}")] if match[2] else unknown(f"${name}"))
            self.state.causes[name] = [one for one in open_names if one != name]
        return None, open_names

    def _unknown_operands(self, text: str) -> list[str]:
        """The variables of an expanded sum that nobody says."""
        known = " ".join(piece for piece in pieces(text) if not is_unknown(piece))
        values = {name: self.state.text(name) for name in re.findall(r"(?<!\w)[A-Za-z_]\w*", known)}
        return [*unknown_names(text), *(name for name, value in values.items() if value is None or is_unknown(value))]


class _Numbers(MutableMapping[str, int]):
    """The variables of a state in sums: a name whose value is a name or a sum is followed."""

    def __init__(self, expansion: Expansion, depth: int = 0) -> None:
        self.expansion, self.depth = expansion, depth

    def __getitem__(self, name: str) -> int:
        match = _PARAMETER.match(name)
        value = self.expansion._element(match[1], match[2]) if match else None
        if match and value is None and match[2] and self.expansion._is_whole(match[1], match[2]):
            return 0
        if value is None or is_unknown(value) or self.depth > 8:
            raise KeyError(name)
        return Arithmetic(value, _Numbers(self.expansion, self.depth + 1)).value()

    def __setitem__(self, name: str, value: int) -> None:
        array, bracket, key = name.partition("[")
        if bracket:
            self.expansion.assign_element(array, key[:-1], str(value))
        else:
            self.expansion.state.assign(name, str(value))

    def __delitem__(self, name: str) -> None:
        self.expansion.state.variables.pop(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.expansion.state.variables)

    def __len__(self) -> int:
        return len(self.expansion.state.variables)


def _of_unknown(values: list[str]) -> list[str]:
    """The variables of values that are unknown as a whole; none if something of them is known."""
    return [] if any(not is_unknown(part) for value in values for part in pieces(value)) else unknown_names(values[0])


def _odd(pattern: str) -> UserError:
    return UserError(
        f"bash is not consistent about what the pattern '{pattern}' matches, so the script is not read; write what it "
        "gives in its place",
        code="odd-pattern",
    )


def _unescaped(text: str) -> str:
    return unescaped(text).partition("\0")[0]

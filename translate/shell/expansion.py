"""Words of a script with their quotes, variables, arrays, sums and substitutions, as bash expands them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, MutableMapping, Sequence

from system.errors import UserError
from translate.shell.arithmetic import Arithmetic
from translate.shell.patterns import Pattern, replaced, trimmed
from translate.shell.scanning import bracket_end, closing_quote, expansion_end, has_group, piece_end, raw_words
from translate.shell.values import (
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

_PARAMETER = re.compile(r"([A-Za-z_]\w*|\d+|[@*#?$!-])(\[(?:[^\[\]]|\[[^\]]*\])*\])?")
_LIST = re.compile(r"\$(?:\{!?)?(?:[A-Za-z_]\w*\[)?([@*])")  # $@, ${*…}, ${name[@]…} and their like
_BOTH = "'\""
_DEFAULTS = ("-", "=", "+", "?")
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

    def _default_fields(self, text: str) -> list[str]:
        """The words of a default, in which braces are plain signs."""
        return [field for word in raw_words(text) for field in self._fields(word)]

    def fields(self, word: str) -> list[str]:
        """What one word becomes: none, one, or several."""
        self.check_groups([word])
        return [field for one in with_braces(word) for field in self._fields(one)]

    def _fields(self, word: str) -> list[str]:
        fields, position, word = Fields(), 0, with_home(word)
        while position < len(word):
            letter, start = word[position], position
            if letter == "\\":
                position += 2
                if word[start + 1 : position] != "\n":
                    fields.add(word[start + 1 : position])
            elif letter in "'\"":
                position = closing_quote(word, start)
                self._add_quoted(fields, word[start:position])
            elif letter == "$" and word[start + 1 : start + 2] in ("'", '"'):
                position = expansion_end(word, start)
                quoted = word[start + 1 : position]
                fields.add(_unescaped(quoted[1:-1])) if letter + quoted[0] == "$'" else self._add_quoted(fields, quoted)
            elif letter in "$`":
                position = expansion_end(word, start)
                self._add_unquoted(fields, word[start:position])
            else:
                position += 1
                fields.add(letter)
        return fields.fields

    def _add_quoted(self, fields: Fields, quoted: str) -> None:
        if quoted[0] == "'":
            fields.add(quoted[1:-1])
            return
        inner = quoted[1:-1]
        start, position, has_array = 0, 0, False
        while position < len(inner):
            end = (
                expansion_end(inner, position, is_quoted=True)
                if inner[position] in "$`"
                else position + 1 + (inner[position] == "\\")
            )
            kind = _LIST.match(inner, position)
            array = self._whole_array(inner[position:end], '"') if kind else None
            if kind and array is not None:  # "${name[@]}" is a word for each element, "${name[*]}" one
                if position > start:
                    fields.add(self.text(inner[start:position]))
                fields.extend([self.together(array)] if kind[1] == "*" else array)
                start, has_array = end, True
            position = max(end, position + 1)
        if start < len(inner) or not has_array:
            fields.add(self.text(inner[start:]))

    def _add_unquoted(self, fields: Fields, written: str) -> None:
        default = re.fullmatch(r"\$\{(\w+)(\[[@*]\])?(:?)([-+])(.*['\"\\].*)\}", written, re.DOTALL)  # its quotes count
        if default and bracket_end(written, 1) == len(written):
            elements = self.state.elements(default[1]) if default[2] else self.state.text(default[1])
            if (elements not in ((None, [], [""], "") if default[3] else (None, []))) == (default[4] == "+"):
                fields.extend(self._default_fields(default[5]))
                return
        array = self._whole_array(written)
        if array is None:
            fields.split(self.expanded(written), self.separators)
            return
        for number, element in enumerate(array):
            if number:
                fields.open = False
            fields.split(element, self.separators)

    def _whole_array(self, written: str, quotes: str | None = None) -> list[str] | None:
        """The elements where a text is `$@` or `${name[@]…}` alone, also with a default; else None.

        Args:
            written: the text.
            quotes: the signs that begin a quote in the default, which is one text; None: it is split into words.
        """
        if written in ("$@", "$*", "${@}", "${*}"):
            return self.state.positional or []
        match = re.fullmatch(r"\$\{(!?)([A-Za-z_]\w*|[@*])(?:\[([@*])\])?(.*)\}", written, re.DOTALL)
        if not match or not (match[3] or match[2] in "@*") or bracket_end(written, 1) < len(written):
            return None
        if match[1]:
            value = self.state.variables.get(match[2])
            keys = list(value) if isinstance(value, dict) else [str(n) for n, _ in enumerate(self._elements(match[2]))]
            return keys if value is not None else [unknown(written)]
        elements = self.state.positional or [] if match[2] in "@*" else self.state.elements(match[2])
        return self._changed_array(written, elements, match[4], quotes)

    def _changed_array(self, written: str, elements: list[str] | None, rest: str, quotes: str | None) -> list[str]:
        sign, default = rest.lstrip(":")[:1], rest.lstrip(":")[1:]
        if sign in _DEFAULTS and sign and not re.match(r":\s", rest):
            is_set = bool(elements) and not (rest.startswith(":") and elements == [""])
            if is_set == (sign == "+"):
                if sign == "?":
                    return [unknown(written)]
                if quotes is None or re.search(r"\$\{?@|\[@\]", default):
                    return self._default_fields(default)
                return [self.text(default, quotes)]
            return [] if sign == "+" or elements is None else elements
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
            numbered = dict(enumerate([self._value("0", "$0"), *(self.state.positional or [])]))
        first, count = numbers[0], numbers[1] if len(numbers) > 1 else MOST_CHARACTERS
        parts = [part for element in (numbered or {}).values() for part in unknown_parts(element)]
        has_gap = any(part.endswith(("[@]}", "[*]}")) for part in parts)  # nobody says how many elements it is
        if numbered is None or has_gap or first is None or count is None or count < 0:
            return [unknown(written)]
        first += (max(numbered, default=-1) + 1) * (first < 0)
        return [element for number, element in numbered.items() if 0 <= first <= number][:count]

    def _elements(self, name: str) -> list[str]:
        return self.state.elements(name) or []

    def one_word(self, written: str) -> str:
        """A text outside of quotes as one word: its quotes are removed."""
        return self.text(written, _BOTH)

    def text(self, written: str, quotes: str = "", escaped: str = '$`"\\\n') -> str:
        """A text as within double quotes, or a heredoc.

        Args:
            written: the text.
            quotes: the signs that begin a quote: both outside of double quotes, `"` in the text of `"${name:-text}"`.
            escaped: the signs that a backslash escapes; outside of quotes each.
        """
        result, position, is_quoted = list[str](), 0, quotes != _BOTH
        while position < len(written):
            letter, start = written[position], position
            if letter == "\\" and (not is_quoted or written[start + 1 : start + 2] in {*escaped, *"}" * len(quotes)}):
                position += 2
                result.append("" if written[start + 1 : position] == "\n" else written[start + 1 : position])
            elif quotes and written[start : start + 2] == "$'":
                position = expansion_end(written, start)
                result.append(_unescaped(written[start + 2 : position - 1]))
            elif letter in "$`":
                position = expansion_end(written, start, is_quoted)
                result.append(self.expanded(written[start:position], is_quoted) if position > start + 1 else letter)
            elif letter in quotes:
                position = closing_quote(written, start)
                inner = written[start + 1 : position - 1]
                result.append(inner if letter == "'" else self.text(inner))
            else:
                position += 1
                result.append(letter)
        return "".join(result)

    def check_groups(self, patterns: list[str]) -> None:
        """Refuse a group such as `@(a|b)` where extglob is off: bash reads no script that has one there."""
        for pattern in patterns if self.state.options.get("extglob", False) is False else []:
            if has_group(pattern):
                raise UserError(
                    f"the pattern '{pattern}' is no bash without `shopt -s extglob` in a line before it; add that line",
                    code="not-bash",
                )

    def pattern(self, written: str, has_groups: bool = False) -> str:
        """A shell pattern, in which the signs that are within quotes stand for themselves; see glob."""
        parts, position = list[str](), 0
        while position < len(written):
            letter, start = written[position], position
            position = piece_end(written, start)
            if letter in "'\"":
                text = self.one_word(written[start:position])
                parts.append(text if is_unknown(text) else re.sub(r"([-*?\[\]\\()|@+!^])", r"\\\1", text))
            else:
                parts.append(self.text(written[start:position]) if letter in "$`" else written[start:position])
        pattern, options = "".join(parts), self.state.options
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
        open_names = self.unknown_operands(within)
        number = self.number(within)
        return unknown(written, (open_names or [""])[0]) if number is None else str(number)

    def expanded(self, written: str, is_quoted: bool = False) -> str:
        """The value of one `$…` or backquoted text, which may stand within double quotes."""
        if written.startswith('$"'):
            return self.text(written[2:-1])
        if written.startswith("$((") and written.endswith("))"):
            return self._sum(written, written[3:-2])
        if written.startswith("$["):  # bash's older way to write it
            return self._sum(written, written[2:-1])
        if written.startswith(("$(", "`")):
            command = written[2:-1] if written[0] == "$" else re.sub(r"\\([\\$`])", r"\1", written[1:-1])
            output = self.substituted(command)
            return unknown(written) if output is None else output
        if written.startswith("${"):
            return self._parameter(written, is_quoted)
        return self._value(written[1:], written) if len(written) > 1 else written

    def _value(self, name: str, written: str) -> str:
        if name in ("@", "*"):
            return self.together(self.state.positional or [])
        if name == "#":
            return unknown(written, "1") if self.state.positional is None else str(len(self.state.positional))
        value = self.state.text(name)
        return unknown(written) if value is None else value

    def _parameter(self, written: str, is_quoted: bool) -> str:
        inner = written[2:-1]
        if inner.startswith("#") and len(inner) > 1:
            return self._length(inner[1:], written)
        kind = _LIST.match(written)
        if kind and (array := self._whole_array(written, '"' if is_quoted else _BOTH)) is not None:
            return self.together(array) if kind[1] == "*" else " ".join(array)
        if inner.startswith("!"):
            target = self.state.text(inner[1:])
            value = None if target is None else self.state.text(target)
            return unknown(written) if value is None else value
        match = _PARAMETER.match(inner)
        if not match:
            return unknown(written)
        value, rest = self._element(match[1], match[2]), inner[match.end() :]
        sign = rest.lstrip(":")[:1]
        if rest and sign in _DEFAULTS and not re.match(r":\s*\d|:\s+-", rest):
            return self._with_default(match[1], value, rest, written, is_quoted)
        if value is None and not (match[2] and self._is_whole(match[1], match[2])):
            return unknown(written)
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
        value = self.state.text(name)
        return unknown(written) if value is None or is_unknown(value) else str(len(value))

    def _element(self, name: str, subscript: str | None) -> str | None:
        """The value of a parameter, or of an array's element; None: nobody says it."""
        if subscript is None:
            return str(len(self.state.positional)) if name == "#" and self.state.positional else self.state.text(name)
        value, key = self.state.value(name), subscript[1:-1]
        if isinstance(value, dict) and not isinstance(value, Gapped):
            return value.get(self.one_word(key))
        number, elements = self.number(key), self.state.numbered(name)
        if number is None or elements is None:
            return None
        return elements.get(number if number >= 0 else max(elements, default=-1) + 1 + number)

    def _with_default(self, name: str, value: str | None, rest: str, written: str, is_quoted: bool) -> str:
        """`${name:-text}` and its like; an empty value counts as none after a colon."""
        sign, default, quotes = rest.lstrip(":")[0], rest.lstrip(":")[1:], '"' if is_quoted else _BOTH
        is_set = value is not None and not (rest.startswith(":") and value == "")
        if sign == "+":
            return self.text(default, quotes) if is_set else ""
        if is_set:
            return value or ""
        if sign == "?":
            return unknown(written)
        result = self.text(default, quotes)
        if sign == "=":
            self.state.assign(name, result)
        return result

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
        text = self.one_word(written)
        if not is_unknown(text):
            try:
                return Arithmetic(text, _Numbers(self)).value()
            except (ValueError, KeyError, ZeroDivisionError, RecursionError):
                pass
        open_names = self.unknown_operands(written)
        for match in _ASSIGNED.finditer(as_written(text)):  # what it would have assigned is unknown, too
            name = match[1] or match[3] or match[4]
            self.state.assign(name, [unknown(f"${{{name}[@]}}")] if match[2] else unknown(f"${name}"))
            self.state.causes[name] = [one for one in open_names if one != name]
        return None

    def unknown_operands(self, written: str) -> list[str]:
        """The variables of a sum that nobody says."""
        text = self.one_word(written)
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


def _odd(pattern: str) -> UserError:
    return UserError(
        f"bash is not consistent about what the pattern '{pattern}' matches, so the script is not read; write what it "
        "gives in its place",
        code="odd-pattern",
    )


def _unescaped(text: str) -> str:
    return unescaped(text).partition("\0")[0]

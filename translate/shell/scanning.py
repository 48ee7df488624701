"""Where quotes, expansions and raw words of a script end; a script with them held, for the parser of its statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from system.errors import UserError
from translate.shell.values import BEGIN, END

_CLOSING = {"(": ")", "{": "}", "[": "]"}
_HEREDOC = re.compile(r"(?<!<)<<(?!<)(-?)[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s\\'\"`;&|<>()])+)")
_CASE_SIGN, _CASE_IN, _CASE_END = re.compile(r";;&?|;&"), re.compile(r"\s+in(?=\s)"), re.compile(r"esac\b")
_COMMAND_BEFORE = re.compile(r"(?:\A|[;&|(){}!\n`]|\b(?:do|then|else|elif|if|while|until))[ \t]*\Z")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*((?:\\\n)+)\Z")
_HELD = re.compile(r"__held_([0-9a-f]+)_")


def closing_quote(text: str, start: int, has_escapes: bool = False) -> int:
    """The position after the quote that begins at `start`; the text's end if it is not closed.

    Single quotes have escapes in `$'…'` alone.
    """
    quote, position = text[start], start + 1
    while position < len(text) and text[position] != quote:
        if text[position] == BEGIN:
            position = unknown_end(text, position)
        elif quote == "'" and not has_escapes:
            position += 1
        elif text[position] == "\\":
            position += 2
        elif quote == '"' and text[position] in "$`":
            position = expansion_end(text, position, is_quoted=True)
        else:
            position += 1
    return min(position + 1, len(text))


def expansion_end(text: str, start: int, is_quoted: bool = False) -> int:
    """The position after the `$(…)`, `${…}`, `$name` or backquoted text that begins at `start`.

    Outside of double quotes after that of `$'…'` and `$"…"`, too.
    """
    if text[start] == "`":
        return closing_quote(text, start)
    position = start + 1
    if not is_quoted and text[position : position + 1] in ("'", '"'):
        return closing_quote(text, position, has_escapes=True)
    if position < len(text) and text[position] in _CLOSING:
        return bracket_end(text, position)
    if position < len(text) and (text[position].isalpha() or text[position] == "_"):
        while position < len(text) and (text[position].isalnum() or text[position] == "_"):
            position += 1
        return position
    return min(position + 1, len(text)) if position < len(text) and text[position] in "0123456789@*#?$!-" else position


def bracket_end(text: str, start: int, is_sum: bool = False) -> int:
    """The position after the bracket that closes the one at `start`; in a sum, `<<` and `#` are signs of it."""
    opening, closing, depth, position = text[start], _CLOSING[text[start]], 0, start
    has_commands = opening == "(" and not is_sum and text[start + 1 : start + 2] != "("
    heredocs = list[_Heredoc]()
    while position < len(text):
        letter = text[position]
        if letter == BEGIN:
            position = unknown_end(text, position)
        elif letter == "\\":
            position += 2
        elif letter in "'\"`":
            position = closing_quote(text, position)
        elif letter == "$":
            position = expansion_end(text, position)
        elif has_commands and (sum_end := _sum_end(text, position)):
            position = sum_end
        elif has_commands and (heredoc := _heredoc(text, position)):
            heredocs.append(heredoc)
            position = heredoc.end
        elif has_commands and (pattern_end := _pattern_end(text, position)):
            position = pattern_end
        elif has_commands and letter == "\n" and heredocs:
            position += 1
            for heredoc in heredocs:
                _, position = heredoc.lines(text, position)
            heredocs = []
        elif has_commands and _begins_comment(text, position):
            position = _line_end(text, position)
        else:
            is_nested = letter == opening and (opening != "{" or not depth)  # `${a:-{}` ends with its first brace
            depth += is_nested - (letter == closing)
            position += 1
            if not depth:
                break
    return min(position, len(text))


def unknown_end(text: str, start: int) -> int:
    """The position after the unknown part that begins at `start`; a shell has put it into the text of another."""
    return text.find(END, start) + 1 or len(text)


def piece_end(text: str, start: int) -> int:
    """The position after the escape, quote, expansion or letter that begins at `start`."""
    if text[start] == "\\":
        return start + 2
    if text[start] == BEGIN:
        return unknown_end(text, start)
    if text[start] in "'\"`":
        return closing_quote(text, start)
    return max(expansion_end(text, start), start + 1) if text[start] == "$" else start + 1


def group_end(text: str, start: int) -> int:
    """The position after the group of a pattern, such as `@(a|b)`, that begins at `start`; 0 where none does."""
    if text[start] not in "?*+@!" or not text.startswith("(", start + 1):
        return 0
    before = text[:start] if text[start] == "!" else ""
    if text[start] == "!" and before.rstrip()[-1:] != "=" and before[-1:] in {"", *" \t\n;&|({"}:
        return 0  # it negates a statement, or what a test has in brackets
    end = bracket_end(text, start + 1, is_sum=True)
    return end if text[end - 1] == ")" else 0


def has_group(text: str) -> bool:
    """Whether a group of a pattern stands in a word outside of quotes."""
    position = 0
    while position < len(text):
        if group_end(text, position):
            return True
        position = piece_end(text, position)
    return False


def raw_words(text: str) -> Iterator[str]:
    """The words of a text, with their quotes and expansions as they are."""
    position, start = 0, None
    while position < len(text):
        letter = text[position]
        if letter.isspace():
            if start is not None:
                yield text[start:position]
            start, position = None, position + 1
            continue
        start = position if start is None else start
        position = group_end(text, position) or piece_end(text, position)
    if start is not None:
        yield text[start:]


def held_text(text: str) -> tuple[str, list[int]]:
    """A script in which quotes, escapes and expansions are plain words, without comments and continued lines.

    Parsers of bash misread some of them, such as `a=$b/c/$d/e`; released_text gives them back.

    Args:
        text: of the script.

    Returns:
        The script; by line of it, the line that it begins with in `text`, from 1.

    Raises:
        UserError: a quote is not closed.
    """
    result, rows, position, line = list[str](), [1], 0, 1
    heredocs = list[tuple[int, _Heredoc]]()  # with what stands for each: `< word`, which the grammar has anywhere

    def take(end: int, written: str) -> None:
        nonlocal position, line
        rows.extend(line + number for number in range(1, written.count("\n") + 1))
        result.append(written)
        line += text.count("\n", position, end)
        position = end

    while position < len(text):
        letter = text[position]
        if letter == "\\":
            take(position + 2, "" if text[position : position + 2] == "\\\n" else _held(text[position : position + 2]))
        elif letter == BEGIN:
            take(end := unknown_end(text, position), _held(text[position:end]))
        elif letter in "'\"`" or (letter == "$" and expansion_end(text, position) > position + 1):
            end = expansion_end(text, position) if letter == "$" else closing_quote(text, position)
            _check_closed(text, position, end)
            take(end, _held(text[position:end]))
        elif _begins_comment(text, position):
            take(_line_end(text, position), "")
        elif end := group_end(text, position):
            take(end, _held(text[position:end]))
        elif sum_end := _sum_end(text, position):
            take(sum_end, f"(({_held_sum(text[position + 2 : sum_end - 2])}))")
        elif heredoc := _heredoc(text, position):
            heredocs.append((len(result), heredoc))
            take(heredoc.end, f"< {_held(text[position : heredoc.end])}")
        elif letter == "\n" and heredocs:
            take(position + 1, "\n")
            for index, heredoc in heredocs:
                start, end = heredoc.lines(text, position)
                result[index] = "< " + _held(f"{heredoc.written}\n{text[position:start]}")
                take(end, "")
            heredocs = []
        else:
            take(position + 1, letter)
    return "".join(result), rows


def released_text(text: str) -> str:
    """A part of a held script as the script writes it."""
    return _HELD.sub(lambda match: bytes.fromhex(match[1]).decode(), text)


def _held(text: str) -> str:
    return f"__held_{text.encode().hex()}_" if text else ""


def _held_sum(text: str) -> str:
    """What is between `((` and `))`, which are the three parts of a loop's head or one sum."""
    parts = text.split(";")
    return ";".join(map(_held, parts)) if len(parts) == 3 else _held(text)


def _check_closed(text: str, start: int, end: int) -> None:
    quote = text[start]
    is_open = quote in "'\"`" and (end - start < 2 or text[end - 1] != quote)
    if is_open or (quote == "$" and text[start + 1] in _CLOSING and text[end - 1] != _CLOSING[text[start + 1]]):
        line = text.count("\n", 0, start) + 1
        raise UserError(
            f"the quote or bracket that line {line} opens is not closed; paste the whole script or command",
            code="quote-not-closed",
            line=line,
        )


class _Heredoc(NamedTuple):
    """A heredoc whose body begins with the next line."""

    written: str
    delimiter: str
    has_tabs: bool  # before its lines, which are removed
    end: int  # position after `<<delimiter`

    def lines(self, text: str, start: int) -> tuple[int, int]:
        """Where the line of the delimiter begins, and where it ends; the body begins at `start`."""
        while start < len(text):
            end = min(_line_end(text, start) + 1, len(text))
            line = text[start:end].removesuffix("\n")
            if (line.lstrip("\t") if self.has_tabs else line) == self.delimiter:
                return start, end
            start = end
        return start, start


def _heredoc(text: str, position: int) -> _Heredoc | None:
    match = _HEREDOC.match(text, position)
    if match is None:
        return None
    delimiter = re.sub(r"'([^']*)'|\"([^\"]*)\"|\\(.)", r"\1\2\3", match[2])
    return _Heredoc(match[0], delimiter, bool(match[1]), match.end())


def _sum_end(text: str, position: int) -> int:
    """The position after the `((…))` that begins here; 0 where none does."""
    end = bracket_end(text, position + 1, is_sum=True) if text.startswith("((", position) else 0
    return end + 1 if end and text.startswith(")", end) else 0


def _pattern_end(text: str, position: int) -> int:
    """The position after the pattern of a `case`, with its bracket, where `case … in` or `;;` begins; else 0."""
    start = _before_pattern(text, position)
    while start and (text[start : start + 1].isspace() or _begins_comment(text, start)):
        start = _line_end(text, start) if text[start] == "#" else start + 1
    if not start or _CASE_END.match(text, start):
        return start
    end = start + text.startswith("(", start)
    while end < len(text) and text[end] != ")":
        end = group_end(text, end) or piece_end(text, end)
    return end + 1


def _before_pattern(text: str, position: int) -> int:
    """The position after the `case … in` or `;;` that begins here; 0 where none does."""
    if text[position] == ";":
        match = _CASE_SIGN.match(text, position)
        return match.end() if match else 0
    if not text.startswith("case", position) or not _COMMAND_BEFORE.search(text, max(0, position - 20), position):
        return 0
    end = position + len("case")
    while end < len(text) and text[end].isspace():
        end += 1
    while end < len(text) and not text[end].isspace():
        end = piece_end(text, end)
    match = _CASE_IN.match(text, end)
    return match.end() if match else 0


def _begins_comment(text: str, position: int) -> bool:
    if text[position : position + 1] != "#":
        return False
    before = _CONTINUED.search(text, max(0, position - 100), position)
    start = before.start(1) if before else position  # a line that goes on ends no word
    return start == 0 or text[start - 1] in " \t\n;&|("


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end

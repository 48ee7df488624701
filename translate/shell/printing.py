"""Programs whose output is known: what they write, and whether they succeed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping

from translate.shell.arithmetic import Arithmetic
from translate.shell.inner_shells import Shell
from translate.shell.values import Outcome, is_unknown, unknown, unknown_parts
from translate.shell.words import unescaped

_PRINTED = re.compile(r"%%|%[-0+]?\d*(?:\.\d+)?([sdifeg])")
_ENDS = re.compile(r"(?<!\\)(?:\\\\)*\\c")  # `\c` ends what echo and printf write


def _echo(shell: Shell, arguments: list[str]) -> Outcome:
    written = list(itertools.dropwhile(lambda word: re.fullmatch("-[neE]+", word), arguments[1:]))
    options, text = "".join(arguments[1 : len(arguments) - len(written)]), " ".join(written)
    if options.rfind("e") > options.rfind("E"):
        ended, text = _ENDS.search(text), unescaped(text, octal="0[0-7]{0,3}", signs="")
        if ended and shell.output is not None:
            shell.output.append(None)
    if shell.output is not None:
        shell.output.append(text + "\n" * ("n" not in options))
    return Outcome()


def _printf(shell: Shell, arguments: list[str]) -> Outcome:
    values = [*arguments[1:], ""]
    if values[0] == "-v" and len(values) > 3:
        text = _formatted(values[2], values[3:-1])
        shell.state.assign(values[1], unknown(f"${values[1]}") if text is None else text)
    elif shell.output is not None:
        values = values[1:] if values[0] == "--" else values
        shell.output.append(_formatted(values[0], values[1:-1]))
    return Outcome()


def _formatted(layout: str, values: list[str]) -> str | None:
    """What printf writes; None where that is not a plain format, or a number that is unknown."""
    escaped, layout = layout, unescaped(layout)
    count = sum(map(bool, _PRINTED.findall(layout)))
    of_several = any(re.search(r"[@*]\]?\}?\Z", part) for value in values for part in unknown_parts(value))
    if (
        "%" in _PRINTED.sub("", layout)
        or _ENDS.search(escaped)
        or escaped.count("%") < layout.count("%")
        or is_unknown(layout)
        or of_several
    ):
        return None
    rounds = [values[start : start + count] for start in range(0, max(len(values), 1), count)] if count else [[]]
    try:
        return "".join(_filled(layout, one) for one in rounds)
    except ValueError:
        return None


def _filled(layout: str, values: list[str]) -> str:
    remaining = iter(values)

    def filled(match: re.Match[str]) -> str:
        if not match[1]:
            return "%"
        value = next(remaining, "")
        if is_unknown(value) and match[0] != "%s":
            raise ValueError("its width or number is unknown")
        if match[1] in "di":
            return str(match[0] % _whole_number(value))
        return str(match[0] % (value if match[1] == "s" else float(value or 0)))

    return _PRINTED.sub(filled, layout)


def _whole_number(text: str) -> int:
    """As C reads it: in base 8 with a leading zero, in base 16 with 0x."""
    return int(text or "0", 8 if re.fullmatch(r"[-+]?0\d+", text) else 16 if re.match(r"[-+]?0[xX]", text) else 10)


def _cat(shell: Shell, arguments: list[str]) -> Outcome:
    files = arguments[1:] or ["-"]
    texts = [shell.standard_input if file == "-" else shell.state.file(file) for file in files]
    if "-" in files:
        shell.standard_input = shell.standard_input and ""
    if shell.output is not None:
        shell.output += texts
    return Outcome()


def _grep(shell: Shell, arguments: list[str]) -> Outcome:
    """`grep`, with a text for its pattern, in what is known."""
    letters = "".join(word[1:] for word in arguments[1:] if word.startswith("-"))
    pattern, *files = [word for word in arguments[1:] if not word.startswith("-")] or [""]
    text = shell.state.file(files[0]) if files else shell.standard_input
    if text is None or is_unknown(text) or len(files) > 1 or not re.fullmatch(r"[\w ,:/=-]+", pattern):
        return writes(shell, arguments)
    if not set(letters) <= set("qiEFv"):
        return writes(shell, arguments)
    matches = re.compile(re.escape(pattern), re.IGNORECASE * ("i" in letters)).search
    lines = [line for line in text.removesuffix("\n").split("\n") if text and bool(matches(line)) != ("v" in letters)]
    if shell.output is not None and "q" not in letters:
        shell.output.append("".join(f"{line}\n" for line in lines))
    return Outcome(bool(lines))


def _computed(text_of: Callable[[list[str]], str | None]) -> Callable[[Shell, list[str]], Outcome]:
    """A program whose output is plain arithmetic on its words."""

    def run(shell: Shell, arguments: list[str]) -> Outcome:
        text = None if any(map(is_unknown, arguments)) else text_of(arguments[1:])
        if shell.output is not None:
            shell.output.append(None if text is None else text + "\n")
        return Outcome()

    return run


def _sequence(arguments: list[str]) -> str | None:
    if not arguments or len(arguments) > 3 or not all(re.fullmatch(r"-?\d+", word) for word in arguments):
        return None
    first, by, last = (1, 1, int(arguments[0])) if len(arguments) == 1 else (int(arguments[0]), 1, int(arguments[-1]))
    by = int(arguments[1]) if len(arguments) == 3 else by
    if not by or abs(last - first) // abs(by) > 10_000:
        return None
    return "\n".join(map(str, range(first, last + (1 if by > 0 else -1), by)))


def _base_name(arguments: list[str]) -> str | None:
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        return None
    name = arguments[0].rstrip("/").rpartition("/")[2]
    return name.removesuffix(arguments[1]) if len(arguments) == 2 and name != arguments[1] else name


def _folder_name(arguments: list[str]) -> str | None:
    return (arguments[0].rstrip("/").rpartition("/")[0] or ".") if len(arguments) == 1 else None


def _expression(arguments: list[str]) -> str | None:
    """`expr` of whole numbers, signs and brackets."""
    if not all(re.fullmatch(r"-?(0|[1-9]\d*)|[-+*/%()]", word) for word in arguments):
        return None
    try:
        return str(Arithmetic(" ".join(arguments), {}).value())
    except (ValueError, ZeroDivisionError, RecursionError):
        return None


def writes(shell: Shell, arguments: list[str]) -> Outcome:
    """A program whose output and success only running would tell."""
    if shell.output is not None:
        shell.output.append(None)
    return Outcome(None)


WRITING: Mapping[str, Callable[[Shell, list[str]], Outcome]] = {
    "echo": _echo, "printf": _printf, "cat": _cat, "grep": _grep, "seq": _computed(_sequence),
    "basename": _computed(_base_name), "dirname": _computed(_folder_name), "expr": _computed(_expression),
    **dict.fromkeys(
        ("ls", "tail", "head", "pip", "pip3", "git", "pwd", "date", "hostname", "module", "ulimit", "umask",
         "pushd", "popd", "hash"),
        writes,
    ),
}  # fmt: skip

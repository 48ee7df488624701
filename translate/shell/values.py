"""Values of a script: texts in which what only running would tell is marked, and the state that statements change.

An unknown part of a value stands as it is written in the script, between two characters for private use, so that it
goes through quotes, arrays and assignments, and can be named wherever it ends up.
"""

from __future__ import annotations

import copy
import itertools
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tree_sitter import Node

from system.errors import UserError

Value = str | list[str] | dict[str, str]  # a text, an array, or an array by key
Numbered = dict[int, str]
Decision = bool | None  # None: the script does not say

BEGIN, END, NAMED = "\ue000", "\ue001", "\ue002"
_MARKED = re.compile(f"{BEGIN}([^{BEGIN}{END}{NAMED}]*)(?:{NAMED}(\\w*))?{END}")
_SUBSTITUTION = re.compile(f"({BEGIN}(?:\\$\\([^(]|`)[^{BEGIN}{END}{NAMED}]*){END}")
_NAME = re.compile(r"\$\{?[#!]?([A-Za-z_]\w*|\d+)")
_QUOTES = re.compile(r"""\\.|"(?:[^"\\]|\\.)*"|'[^']*'""", re.DOTALL)
WHITESPACE = " \t\n"
MOST_CHARACTERS = 1_000_000  # of one variable; what doubles in a loop fills any memory


def unknown(text: str, name: str = "") -> str:
    """A value that only running would tell, as the script writes it, and the name by which a reader can say it."""
    return f"{BEGIN}{as_written(text)}{NAMED * bool(name)}{name}{END}"


def is_unknown(value: str) -> bool:
    """Whether a part of it is unknown."""
    return BEGIN in value


def as_written(value: str) -> str:
    """With its unknown parts as the script writes them."""
    return _MARKED.sub(lambda match: match[1], value)


def unknown_parts(value: str) -> list[str]:
    """Its unknown parts, as the script writes them."""
    return [match[1] for match in _MARKED.finditer(value)]


def unknown_names(value: str) -> list[str]:
    """The variables that its unknown parts depend on, each once, in order."""
    parts = [
        [match[2]] if match[2] else _NAME.findall(_QUOTES.sub(_without_single, match[1]))
        for match in _MARKED.finditer(value)
    ]
    return list(dict.fromkeys(name for names in parts for name in names))


def _without_single(match: re.Match[str]) -> str:
    return "" if match[0].startswith("'") else match[0]


def pieces(value: str) -> list[str]:
    """Its known and unknown parts in turn; the unknown ones with their marks."""
    return [part for part in re.split(f"({BEGIN}[^{END}]*{END})", value) if part]


class Gapped(dict[str, str]):
    """An array by number, some of whose elements are unset."""


def array_of(elements: Numbered) -> Value:
    """An array of elements by number: a list where none is unset."""
    if sorted(elements) == list(range(len(elements))):
        return [elements[number] for number in range(len(elements))]
    return Gapped({str(number): elements[number] for number in sorted(elements)})


class Outcome(NamedTuple):
    """Of a statement."""

    status: Decision = True  # success; None: not known
    flow: str = ""  # exit, return, `break 1` or `continue 1` (of how many loops), if it ends what is around it


class Ended(NamedTuple):
    """A branch that trains and then ends the function or the script, of which nobody says whether it runs."""

    flow: str  # exit or return
    names: list[str]  # that decide it
    line: int
    calls: list[Any]  # its trainings


class Left(NamedTuple):
    """A state in which a round of a loop may have been left on the way."""

    word: str  # break or continue
    levels: int  # how many loops
    state: State
    names: list[str]  # of the variables that decide it


@dataclass
class State:
    """What statements change. A copy shares nothing that changes, but for the last three."""

    outside: Mapping[str, str]  # variables that the reader says, for what the script leaves open
    variables: dict[str, Value] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    functions: dict[str, list[Node | None]] = field(default_factory=dict)  # what each may be; None: not defined
    positional: list[str] | None = None  # None: those of the script, which nobody says
    files: dict[str, str | None] = field(default_factory=dict)  # that the script has written; None: not known what
    references: dict[str, str] = field(default_factory=dict)  # names that stand for other variables
    kinds: dict[str, str] = field(default_factory=dict)  # of variables: i (integers), u (upper case), l (lower case)
    hidden: dict[str, Value | None] | None = None  # in a function, what variables of its own are outside it
    causes: dict[str, list[str]] = field(default_factory=dict)  # what decides a variable, `@`, `/file` or `f()`
    options: dict[str, Decision] = field(default_factory=dict)  # of shopt, by name
    aliases: set[str] = field(default_factory=set)
    traps: tuple[str, ...] = ("",)  # what may run at the end of the shell
    ended: tuple[Ended, ...] = ()  # branches in whose place this state may be
    empty: dict[str, None] = field(default_factory=dict)  # that nobody says and `${name:-}` takes so; of all copies
    folders: set[str] = field(default_factory=set)  # variables that are the script's own folder; likewise
    replaced: list[str] = field(default_factory=list)  # variables with the reader's value for an unknown one; likewise

    def copy(self) -> State:
        """A state that changes alone."""
        variables = {
            name: value if isinstance(value, str) else copy.copy(value) for name, value in self.variables.items()
        }
        return replace(
            self, variables=variables, exported=set(self.exported), functions=dict(self.functions),
            positional=None if self.positional is None else list(self.positional), files=dict(self.files),
            causes=dict(self.causes), references=dict(self.references), kinds=dict(self.kinds),
            options=dict(self.options), aliases=set(self.aliases),
            hidden=None if self.hidden is None else dict(self.hidden),
        )  # fmt: skip

    def file(self, name: str) -> str | None:
        """What the script has written to a file; None: nothing that is known."""
        return self.files.get(self.own_name(name))

    def own_name(self, name: str) -> str:
        """A file's name, from the script's own folder where it begins with that."""
        first, *others = pieces(name) or [""]
        is_own = is_own_folder(first) or bool(self.folders.intersection(unknown_names(first)))
        return posixpath.normpath("".join(others).lstrip("/") if is_own and is_unknown(first) else name)

    def with_files_of(self, other: State) -> State:
        """This state with the files of a shell that it started."""
        self.files = other.files
        self.causes |= {name: names for name, names in other.causes.items() if name.startswith("/")}
        return self

    def write(self, name: str, text: str | None) -> None:
        """Have a file hold a text; None: not known what."""
        self.files[self.own_name(name)] = text
        self.causes.pop(f"/{self.own_name(name)}", None)

    def take(self, other: State) -> None:
        """Become another state."""
        self.variables, self.exported, self.functions = other.variables, other.exported, other.functions
        self.positional, self.files, self.causes = other.positional, other.files, other.causes
        self.references, self.hidden, self.ended = other.references, other.hidden, other.ended
        self.kinds, self.options, self.traps = other.kinds, other.options, other.traps
        self.aliases = other.aliases

    def assign(self, name: str, value: Value) -> None:
        """Set a variable; what the reader says of it counts where the script's own value is unknown."""
        if self.references.get(name) == "" and isinstance(value, str):
            self.refer(name, value)
            return
        name = self.target(name)
        before = self.variables.get(name)
        if isinstance(value, str) and before and not isinstance(before, str):
            value = _with_first(before, value)
        if name in self.kinds:
            value = _of_kind(self.kinds[name], name, value)
        if isinstance(value, str) and is_unknown(value):
            (self.folders.add if is_own_folder(value) else self.folders.discard)(name)
            named = _SUBSTITUTION.sub(rf"\g<1>{NAMED}{name}{END}", value)
            value = self._said(name, unknown(f"${name}", name) if _SUBSTITUTION.fullmatch(value) else named)
        elif value == [unknown(f"${{{name}[@]}}")] and name in self.outside:
            value = self._said(name, "").split()
        parts = [value] if isinstance(value, str) else value.values() if isinstance(value, dict) else value
        if len(parts) + sum(map(len, parts)) > MOST_CHARACTERS:
            raise UserError(
                f"the variable {name} grows to more than {MOST_CHARACTERS:,} characters, so the commands are not read: "
                "paste the training command alone",
                code="endless-script",
            )
        self.variables[name] = value
        if not (isinstance(value, str) and name in unknown_names(value)):  # else it goes on with what it was
            self.causes.pop(name, None)

    def value(self, name: str) -> Value | None:
        """A variable, or a parameter by number; None: nobody says it."""
        if name.isdecimal() and int(name) and (self.positional is not None or self.causes.get("@")):
            arguments = self.positional or []
            return arguments[int(name) - 1] if int(name) <= len(arguments) else None
        name = self.target(name)
        return self.variables.get(name, self.outside.get(name))

    def arguments(self) -> list[str]:
        """The script's or the function's: none where nobody says those of the script."""
        if self.positional is None and "@" in self.causes:
            return [unknown("$@", (self.causes["@"] or ["1"])[0])]
        return self.positional or []

    def names(self) -> set[str]:
        """The variables that are set."""
        return {name for name, value in self.variables.items() if value != []} | set(self.outside)

    def has_none(self, name: str) -> bool:
        """Whether a parameter without a value is unset or behind the last argument, rather than not said by anybody."""
        is_behind = name.isdecimal() and int(name) > 0 and self.positional is not None
        return is_behind or self.variables.get(self.target(name)) == []

    def target(self, name: str) -> str:
        """The variable that a name stands for: itself, if it is no reference."""
        for _ in self.references:
            name = self.references.get(name) or name
        return name

    def refer(self, name: str, target: str) -> None:
        """Have a name stand for another, as `declare -n` does; without one, for that which is assigned to it next."""
        self.variables.pop(name, None)
        self.references.pop(name, None)
        if is_unknown(target):
            self.variables[name] = unknown(f"${name}")
        else:
            self.references[name] = target

    def export(self, name: str, is_exported: bool = True) -> None:
        """Have the environment of programs have a variable, or no longer."""
        if is_exported:
            self.exported.add(name)
        else:
            self.exported.discard(name)

    def unset(self, name: str, number: Callable[[str], int | None]) -> None:
        """Forget a variable, or an element of an array, whose others keep their numbers."""
        match = re.fullmatch(r"(\w+)\[(.*)\]", name)
        array = self.target(match[1]) if match else ""
        value, elements = self.variables.get(array), self.numbered(array)
        if match is None or value is None or isinstance(value, str):
            self.variables[self.target(name)] = []
            self.exported.discard(self.target(name))
            self.kinds.pop(self.target(name), None)
        elif elements is None and isinstance(value, dict):
            self.variables[array] = {key: element for key, element in value.items() if key != match[2]}
        elif elements is None or (at := number(match[2])) is None:
            self.variables[array] = [unknown(f"${{{array}[@]}}")]
        else:
            elements.pop(at if at >= 0 else max(elements, default=-1) + 1 + at, None)
            self.variables[array] = array_of(elements)

    def text(self, name: str) -> str | None:
        """The same as one text: of an array its first element, as in bash."""
        value = self.value(name)
        if isinstance(value, dict):
            return value.get("0")
        return value if isinstance(value, str) or value is None else value[0] if value else None

    def elements(self, name: str) -> list[str] | None:
        """The elements of an array; None: nobody says it."""
        value = self.value(name)
        if isinstance(value, str):
            return value.split() if self.target(name) not in self.variables else [value]
        return list(value.values()) if isinstance(value, dict) else value

    def numbered(self, name: str) -> Numbered | None:
        """The same by number; None also for an array by key."""
        value, elements = self.value(name), self.elements(name)
        if isinstance(value, Gapped):
            return {int(number): element for number, element in value.items()}
        return None if elements is None or isinstance(value, dict) else dict(enumerate(elements))

    def merge(self, one: State, other: State, names: list[str]) -> None:
        """Become what holds whichever of two states comes: a variable that differs is unknown, or as the reader says.

        Args:
            one: state.
            other: state.
            names: of the variables that decide which comes.
        """
        self.take(one)
        for name in {*one.variables, *other.variables}:
            mine, theirs = one.variables.get(name), other.variables.get(name)
            if mine != theirs:
                self.variables[name] = self._undecided(name, mine, theirs)
                self.causes[name] = [*one.causes.get(name, []), *other.causes.get(name, []), *names]
        self.exported |= other.exported
        self.aliases |= other.aliases
        self.kinds = other.kinds | self.kinds
        for name in {*one.options, *other.options}:
            is_on = one.options.get(name, False)
            if is_on != other.options.get(name, False):
                self.options[name], self.causes[name] = None, names
        self._merge_functions(one, other, names)
        for file in {*one.files, *other.files}:
            if file not in one.files or one.files[file] != other.files.get(file):
                self.files[file], self.causes[f"/{file}"] = None, names
        self.traps = tuple(dict.fromkeys((*one.traps, *other.traps)))
        self.ended += tuple(one for one in other.ended if one not in self.ended)
        self.hidden = None if self.hidden is None else (other.hidden or {}) | self.hidden
        if one.positional != other.positional:
            self.positional, self.causes["@"] = None, names

    def _merge_functions(self, one: State, other: State, names: list[str]) -> None:
        for name in {*one.functions, *other.functions}:
            versions = [*one.functions.get(name, [None]), *other.functions.get(name, [None])]
            self.functions[name] = list({version and version.text: version for version in versions}.values())
            if one.functions.get(name) != other.functions.get(name):
                self.causes[f"{name}()"] = names

    def _undecided(self, name: str, *values: Value | None) -> Value:
        is_array = name not in self.outside and any(isinstance(value, (list, dict)) for value in values)
        return [unknown(f"${{{name}[@]}}")] if is_array else self._said(name, unknown(f"${name}"))

    def _said(self, name: str, otherwise: str) -> str:
        """What the reader says of a variable that is unknown, if anything."""
        if name in self.outside:
            self.replaced.append(name)
        return self.outside.get(name, otherwise)


def _with_first(array: list[str] | dict[str, str], value: str) -> Value:
    """An array to which a text is assigned, which is its first element then."""
    if isinstance(array, dict):
        return type(array)(array | {"0": value})
    others = array[not array[0].endswith(f"[@]}}{END}") :]  # the first may stand for them all
    return [value, *others]


def _of_kind(kind: str, name: str, value: Value) -> Value:
    """What a variable of a kind takes of a value."""
    if isinstance(value, str):
        return _text_of_kind(kind, name, value)
    if isinstance(value, dict):
        return type(value)((key, _text_of_kind(kind, name, one)) for key, one in value.items())
    return [_text_of_kind(kind, name, one) for one in value]


def _text_of_kind(kind: str, name: str, text: str) -> str:
    """The same of a text; unknown, if it is a sum that still is to be made."""
    if is_unknown(text):
        return text
    if kind == "i":
        return text if re.fullmatch(r"-?(0|[1-9]\d*)", text) else unknown(f"${name}")
    return text.upper() if kind == "u" else text.lower()


def is_own_folder(value: str) -> bool:
    """Whether an unknown part is the folder of the script itself, such as `$(dirname "$0")`."""
    written = as_written(value)
    return bool(re.search(r"\$\{?(0|BASH_SOURCE)\b", written)) and ("dirname" in written or "%/*" in written)


def stated_arguments(outside: Mapping[str, str]) -> list[str] | None:
    """The script's arguments as the reader says them, from 1 on without a gap; an empty first one alone says: none."""
    numbers = itertools.takewhile(lambda number: str(number) in outside, itertools.count(1))
    stated = [outside[str(number)] for number in numbers]
    return [] if stated == [""] else stated or None

"""What follows a script, and the shells that the script starts, with the environment that they have."""

from __future__ import annotations

import getopt
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from frameworks.command_parser import set_options
from system.errors import UserError
from translate.shell.expansion import Expansion
from translate.shell.scanning import raw_words
from translate.shell.values import Decision, Outcome, State, as_written

SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
_READS_SCRIPTS = (*SHELLS, "sbatch", "qsub", "source", ".")
_RUNS_ELSEWHERE = ("ssh", "pdsh", "clush")
_OPTIONS_OF_ENV = ["ignore-environment", "unset=", "chdir=", "debug"]


class Shell(ABC):
    """What follows a script."""

    state: State
    folder: Path  # where the script's own files are searched
    beside: dict[str, str]  # those that were read there, by name
    training_word: Callable[[list[str]], int | None]  # where a program's words name a training, if they do
    output: list[str | None] | None = None  # of a substituted command; None within: not known
    standard_input: str | None = None  # what is left of it
    calls: list[Any]  # of trainings
    program_line: int = 0  # of the script, where the program stands that is followed
    status: Decision = True  # of the last statement
    loops: int = 0  # around the statement that is followed, within its function
    returned: list[tuple[State, list[str]]] | None  # where this function may have returned, and why; None: in none

    @property
    @abstractmethod
    def expansion(self) -> Expansion:
        """Of words, with the state as it is now."""

    @abstractmethod
    def run_text(self, text: str) -> Outcome:
        """Follow a text; raises UserError where it is not bash."""

    @abstractmethod
    def run_script(self, text: str, sourced: bool) -> Outcome:
        """Follow another script, in this shell or in one of its own; raises UserError where it is not bash."""

    @abstractmethod
    def run_program(self, arguments: list[str], line: int) -> Outcome:
        """Follow a program, a function, or a command of the shell."""

    @abstractmethod
    def deciding(self, names: list[str]) -> list[str]:
        """The variables that a reader can say so that these are known."""

    @abstractmethod
    def tested(self, text: str, double: bool) -> Outcome:
        """The outcome of a test."""


def not_decided(names: list[str], line: int, what: str = "which training runs") -> UserError:
    """The error where nobody says which of several trainings runs."""
    return UserError(
        f"{what} is decided by {', '.join(f'${name}' for name in names)} (line {line}), "
        f"which the script does not say; add {set_options(names)}",
        code="branch-not-decided",
        variables=names,
    )


def starts_a_shell(shell: Shell, arguments: list[str]) -> bool:
    """Follow `bash -c …`, a script that the script has written or that stands beside it, and standard input."""
    name = as_written(arguments[0]).rpartition("/")[2]
    if name in _RUNS_ELSEWHERE and shell.standard_input is not None:
        _follow(shell, shell.standard_input, [])
        return True
    written = written_text(shell, arguments[0]) if "/" in arguments[0] else None
    if written is not None:
        _follow(shell, written, arguments[1:], arguments[0])
        return True
    if name not in _READS_SCRIPTS:
        return False
    options, rest = _shell_options(arguments[1:]) if name in SHELLS else ("", arguments[1:])
    if "c" in options and rest:
        _follow(shell, rest[0], rest[2:], rest[1] if len(rest) > 1 else arguments[0])
        return True
    if not rest or "s" in options:
        if shell.standard_input is not None:
            _follow(shell, shell.standard_input, rest, arguments[0])
        return shell.standard_input is not None
    return _follow_file(shell, name, rest)


def written_text(shell: Shell, file: str) -> str | None:
    """What the script has written to a file that is run, or that a training reads; None: nothing.

    Raises:
        UserError: a branch decides it, or a program has changed it.
    """
    name = shell.state.own_name(file)
    text = shell.state.files.get(name, "")
    if text is None:
        names, line = shell.deciding([f"/{name}"]), shell.program_line
        if names != [f"/{name}"]:
            raise not_decided(names, line, f"what is in {name}")
        raise UserError(
            f"line {line} reads {name}, and what the script's programs have made of it is not known; write what it "
            "holds into the script",
            code="unknown-content",
            file=name,
        )
    return shell.state.file(name)


def _shell_options(arguments: list[str]) -> tuple[str, list[str]]:
    """The letters of a shell's options, and the words after them."""
    letters, rest = "", arguments
    while rest and rest[0][:1] in ("-", "+"):
        option, *rest = rest
        if option in ("-", "--"):
            break
        letters += "" if option.startswith("--") else option[1:]
        rest = rest[option[-1:] in "oO" and not option.startswith("--") :]  # whose value is a word of its own
    return letters, rest


def _follow_file(shell: Shell, name: str, arguments: list[str]) -> bool:
    file = next((word for word in arguments if not word.startswith("-")), "")
    text = written_text(shell, file)
    name_beside = as_written(shell.state.own_name(file)) if file else ""
    beside = shell.folder / name_beside
    if text is None and file.endswith((".sh", ".bash", ".slurm", ".env")) and beside.is_file():
        text = shell.beside[name_beside] = beside.read_text(encoding="utf-8")
    if text is None:
        return False
    same_shell = name in ("source", ".")
    _follow(shell, text, arguments[arguments.index(file) + 1 :], file if name in SHELLS else None, same_shell)
    return True


def _follow(
    shell: Shell, text: str, positional: list[str] | None, name: str | None = None, same_shell: bool = False
) -> None:
    """Another script: in the same shell, or in one that has its own name and the exported variables alone."""
    if same_shell:
        before_arguments, stated = shell.state.positional, positional or []
        shell.state.positional = positional or before_arguments
        shell.run_script(text, sourced=True)
        left = shell.state.positional
        if stated and left is not None and left == stated[len(stated) - len(left) :]:  # `set` would have changed them
            shell.state.positional = before_arguments
        return
    before, shell.state = shell.state, shell.state.copy()
    shell.state.variables = {
        name: value
        for name, value in shell.state.variables.items()
        if name in shell.state.exported and isinstance(value, str)  # an array goes into no environment
    }
    if name is not None:
        shell.state.variables["0"] = name
    functions = shell.state.functions.items()
    shell.state.functions = {name: body for name, body in functions if exported_function(name) in shell.state.exported}
    shell.state.positional, shell.state.options, shell.state.aliases = positional, {}, set()
    received, shell.standard_input = shell.standard_input, None
    try:
        shell.run_script(text, sourced=False)
    finally:
        shell.state, shell.standard_input = before.with_files_of(shell.state), received


def followed_within(shell: Shell, arguments: list[str]) -> Outcome | None:
    """Follow what a program starts: a shell after its options, or a whole command in one of its words."""
    for number, word in enumerate(arguments[1:], 1):
        if word.rpartition("/")[2] == "env":
            return in_environment(shell, arguments[number:])
        if word.rpartition("/")[2] in SHELLS and starts_a_shell(shell, arguments[number:]):
            return Outcome()
        text = written_text(shell, word) if re.search(r"\.(sh|bash|slurm|sbatch)\Z", word) else None
        if text is not None:
            _follow(shell, text, arguments[number + 1 :])
            return Outcome()
        if re.search(r"\S\s+\S", word) and shell.training_word(list(raw_words(word))) is not None:
            _follow(shell, word, None)
            return Outcome()
    return None


def exported_function(name: str) -> str:
    """The name by which the environment has a function."""
    return f"BASH_FUNC_{name}%%"


def in_environment(shell: Shell, arguments: list[str]) -> Outcome:
    """`env`: the rest is a program, which has fewer or more variables in its environment."""
    try:
        options, rest = getopt.getopt(arguments[1:], "iu:C:v", _OPTIONS_OF_ENV)
    except getopt.GetoptError as error:
        raise UserError(
            f"`env` in line {shell.program_line} is not read ({error}); write its command without it",
            code="option-not-read",
        ) from None
    before, shell.state = shell.state, shell.state.copy()
    try:
        rest = _with_environment(shell.state, dict(options), {value for _, value in options}, rest)
        return shell.run_program(["command", *rest], shell.program_line) if rest else Outcome()
    finally:
        shell.state = before.with_files_of(shell.state)


def _with_environment(state: State, options: Mapping[str, str], removed: set[str], arguments: list[str]) -> list[str]:
    """Change the environment; returns the program and its arguments."""
    is_empty = arguments[:1] == ["-"] or options.keys() & {"-i", "--ignore-environment"}
    state.exported -= state.exported if is_empty else removed
    rest = arguments[arguments[:1] == ["-"] :]
    while rest and "=" in rest[0]:
        name, _, value = rest.pop(0).partition("=")
        state.assign(name, value)
        state.exported.add(name)
    return rest

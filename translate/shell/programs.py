"""Commands of the shell: what the script's statements need of them."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Callable, Mapping

from system.errors import UserError
from translate.shell.inner_shells import Shell, exported_function, in_environment
from translate.shell.printing import WRITING, writes
from translate.shell.reading import map_file, read
from translate.shell.values import Outcome, as_written, is_unknown, unknown, unknown_names

_READING = (  # programs that leave the files that they name as they are
    "ls", "head", "tail", "wc", "diff", "cmp", "less", "more", "stat", "file", "realpath", "readlink", "du", "md5sum",
    "sha256sum", "scp", "git", "tar", "curl", "wget", "source", ".", "bash", "sh", "sort", "uniq", "cut", "tr", "jq",
)  # fmt: skip
_IN_WORD = " getopts"  # where it is within one word of several letters


def _get_options(shell: Shell, arguments: list[str]) -> Outcome:
    """`getopts letters name`: one option of the script's arguments at each call."""
    if len(arguments) < 3:
        return Outcome(False)
    state, letters, name, index_text = shell.state, arguments[1], arguments[2], shell.state.text("OPTIND") or "1"
    if state.positional is None or not index_text.isdecimal():
        for one in (name, "OPTARG", "OPTIND"):
            state.assign(one, unknown(f"${one}"))
        return Outcome(None)
    options, index = arguments[3:] or state.positional, max(1, int(index_text))
    word, at = options[index - 1] if index <= len(options) else "", int(state.text(_IN_WORD) or 1)
    state.variables.pop("OPTARG", None)
    if not re.match(r"-.", word) or word == "--":
        state.assign("OPTIND", str(index + (word == "--")))
        state.assign(name, "?")
        return Outcome(False)
    at = at if at < len(word) else 1
    letter, rest, is_quiet = word[at], word[at + 1 :], letters.startswith(":")
    is_known, takes = letter != ":" and letter in letters, f"{letter}:" in letters.lstrip(":")
    follows = [rest] if rest else options[index : index + 1]
    if not is_known or (takes and not follows):
        state.assign(name, ":" if is_known and is_quiet else "?")
        if is_quiet:
            state.assign("OPTARG", letter)
    else:
        state.assign(name, letter)
        if takes:
            state.assign("OPTARG", follows[0])
    ends = takes or not rest
    state.assign("OPTIND", str(index + ends + (takes and not rest and bool(follows))))
    state.assign(_IN_WORD, "1" if ends else str(at + 1))
    return Outcome()


def _set(shell: Shell, arguments: list[str]) -> Outcome:
    """`set`: its options, of which `-o` has a name; what follows them are the script's arguments from now on."""
    rest = arguments[1:]
    while rest and re.match(r"[-+]\w", rest[0]):
        rest = rest[1 + ("o" in rest[0]) :]
    first, others = rest[:1], rest[1:]
    if first == ["--"] or (others and first == ["-"]):
        shell.state.positional = others
    elif len(rest) == 1 and is_unknown(rest[0]):  # options or arguments
        _forget_arguments(shell, rest[0])
        return Outcome()
    elif rest and first != ["-"]:
        shell.state.positional = rest
    if shell.state.positional is not None:
        shell.state.causes.pop("@", None)
    return Outcome()


def _forget_arguments(shell: Shell, text: str) -> None:
    """Know no arguments from now on, since they depend on what is unknown in a text."""
    shell.state.positional, shell.state.causes["@"] = None, unknown_names(text)


def _shift(shell: Shell, arguments: list[str]) -> Outcome:
    text = arguments[1] if len(arguments) > 1 else "1"
    if is_unknown(text):
        _forget_arguments(shell, text)
    if shell.state.positional is None:
        return Outcome()
    count = int(text) if text.isascii() and text.isdecimal() else len(shell.state.positional) + 1
    if count > len(shell.state.positional):
        return Outcome(False)
    shell.state.positional = shell.state.positional[count:]
    return Outcome()


def _let(shell: Shell, arguments: list[str]) -> Outcome:
    values = [shell.expansion.number(word) for word in arguments[1:]]
    return Outcome(None if not values or values[-1] is None else values[-1] != 0)


def _evaluate(shell: Shell, arguments: list[str]) -> Outcome:
    return shell.run_text(as_written(" ".join(arguments[1:])))


def _test(shell: Shell, arguments: list[str]) -> Outcome:
    quoted = " ".join(word if is_unknown(word) else _quoted(word) for word in arguments[1:])
    return shell.tested(as_written(quoted), double=False)


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[-!=<>()\w]+", word) else "'" + word.replace("'", "'\\''") + "'"


def _unset(shell: Shell, arguments: list[str]) -> Outcome:
    for word in arguments[1:]:
        if "-n" in arguments:
            shell.state.references.pop(word, None)
        elif "-f" in arguments:
            shell.state.functions.pop(word, None)
            shell.state.exported.discard(exported_function(word))
        else:
            shell.state.unset(word, shell.expansion.number)
    return Outcome()


def _export(shell: Shell, arguments: list[str]) -> Outcome:
    for word in arguments[1:]:
        name, equals, value = word.partition("=")
        if equals:
            shell.state.assign(name, value)
        if arguments[0] == "export":
            shell.state.export(name, is_exported="-n" not in arguments)
    return Outcome()


def _shopt(shell: Shell, arguments: list[str]) -> Outcome:
    signs = "".join(word for word in arguments[1:] if word.startswith("-"))
    names = [word for word in arguments[1:] if not word.startswith("-")]
    if "o" not in signs and ("s" in signs or "u" in signs):
        shell.state.options |= dict.fromkeys(names, "s" in signs)
    elif names == ["extglob"]:
        return Outcome(shell.state.options.get("extglob", False))
    return Outcome()


def _alias(shell: Shell, arguments: list[str]) -> Outcome:
    names = {word.partition("=")[0] for word in arguments[1:] if "=" in word}
    shell.state.aliases |= names
    return Outcome() if names else writes(shell, arguments)


def _unalias(shell: Shell, arguments: list[str]) -> Outcome:
    shell.state.aliases -= shell.state.aliases if "-a" in arguments else set(arguments[1:])
    return Outcome()


def refuse_alias(shell: Shell, name: str, line: int) -> None:
    """Refuse a call of an alias where the shell follows aliases, or may: it does not follow one of the same line."""
    if name in shell.state.aliases and shell.state.options.get("expand_aliases", False) is not False:
        raise UserError(
            f"line {line} calls the alias `{name}`, and aliases are not read; write what it stands for in its place",
            code="alias-not-read",
        )


def _wrapped(shell: Shell, arguments: list[str]) -> Outcome:
    """`command` and `builtin`: the rest is the command, which is no function."""
    rest = arguments[1:]
    while rest and rest[0].startswith("-"):
        if re.match("-p?[vV]", rest[0]):  # says where the command is
            return writes(shell, arguments)
        rest = rest[1:]
    if not rest:
        return Outcome()
    versions = shell.state.functions.pop(rest[0], None)
    try:
        return shell.run_program(rest, shell.program_line)
    finally:
        if versions is not None:
            shell.state.functions[rest[0]] = versions


def _exec(shell: Shell, arguments: list[str]) -> Outcome:
    """`exec`: with a command, nothing follows it; with redirections alone, of which `{name}` may be left, all does."""
    rest = arguments[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[1 + (rest[0] == "-a") :]
    if not rest or re.fullmatch(r"\{\w+\}", rest[0]):
        return Outcome()
    outcome = _wrapped(shell, ["command", *rest])
    shell.state.traps = ("",)
    return Outcome(outcome.status, "exit")


def _trap(shell: Shell, arguments: list[str]) -> Outcome:
    """`trap text signals`: that a signal comes is not the course of things, that the shell ends is."""
    rest = arguments[2:] if arguments[1:2] == ["--"] else arguments[1:]
    if not rest or re.match("-[lpP]", rest[0]):
        return writes(shell, arguments)
    text, signals = ("-", rest) if len(rest) == 1 or rest[0].isdecimal() else (rest[0], rest[1:])
    signals = [signal.upper() for signal in signals]
    if "EXIT" in signals or "0" in signals:
        shell.state.traps = ("" if text == "-" else as_written(text),)
    if ("DEBUG" in signals or "RETURN" in signals) and trains(shell, lambda: shell.run_text(as_written(text))):
        raise in_trap()
    return Outcome()


def in_trap() -> UserError:
    """The error where a trap starts a training, and when it runs is not followed."""
    return UserError(
        "a `trap` of the script starts a training, and it is not read when that runs; paste its command alone",
        code="training-in-trap",
    )


def trains(shell: Shell, follow: Callable[[], object]) -> bool:
    """Whether what is followed starts a training; nothing of it is kept."""
    before, output, started = shell.state, shell.output, len(shell.calls)
    shell.state, shell.output = before.copy(), []
    try:
        follow()
        return len(shell.calls) > started
    finally:
        shell.state, shell.output = before, output
        del shell.calls[started:]


def _appends(shell: Shell, arguments: list[str]) -> Outcome:
    """`xargs`: a training has the words that come to it, too."""
    rest = arguments[1:]
    while rest and re.match("-[rt]+$", rest[0]):
        rest = rest[1:]
    if not rest or not trains(shell, lambda: shell.run_program(rest, shell.program_line)):
        return writes(shell, arguments)
    try:
        if shell.standard_input is None or rest[0].startswith("-"):
            raise ValueError("nobody says them, or how many each training gets")
        return shell.run_program([*rest, *shlex.split(shell.standard_input)], shell.program_line)
    except ValueError:
        raise _from_elsewhere(shell, arguments) from None


def _multiplies(shell: Shell, arguments: list[str]) -> Outcome:
    """`parallel`, which starts a program many times."""
    if trains(shell, lambda: shell.run_program(arguments[1:], shell.program_line)):
        raise _from_elsewhere(shell, arguments)
    return writes(shell, arguments)


def _from_elsewhere(shell: Shell, arguments: list[str]) -> UserError:
    return UserError(
        f"`{arguments[0]}` in line {shell.program_line} gives a training words that the text does not say; write them "
        "behind it",
        code="words-from-elsewhere",
    )


def _ends(flow: str) -> Callable[[Shell, list[str]], Outcome]:
    def run(shell: Shell, arguments: list[str]) -> Outcome:
        text = arguments[1] if len(arguments) > 1 else "$?"
        return Outcome(shell.status if as_written(text) == "$?" else None if is_unknown(text) else text == "0", flow)

    return run


def _returns(shell: Shell, arguments: list[str]) -> Outcome:
    """`return`, which fails outside of functions and of scripts that are sourced."""
    return Outcome(False) if shell.returned is None else _ends("return")(shell, arguments)


def _leaves(flow: str) -> Callable[[Shell, list[str]], Outcome]:
    def run(shell: Shell, arguments: list[str]) -> Outcome:
        count = arguments[1] if len(arguments) > 1 else "1"
        levels = min(int(count) if count.isdecimal() else 1, shell.loops)
        return Outcome(flow=f"{flow} {levels}" if levels else "")

    return run


def _succeeds(shell: Shell, arguments: list[str]) -> Outcome:
    return Outcome()


def _fails(shell: Shell, arguments: list[str]) -> Outcome:
    return Outcome(False)


def _removes(shell: Shell, arguments: list[str]) -> Outcome:
    """`rm`: what it removes is written anew or not at all."""
    for word in map(shell.state.own_name, arguments[1:]):
        for name in [name for name in shell.state.files if fnmatch.fnmatch(f"{name}/", f"{word}/*")]:
            shell.state.write(name, "")
    return Outcome()


def _copies(shell: Shell, arguments: list[str]) -> Outcome:
    """`cp`, `mv` and `ln`: one file has what another has, or nobody knows what."""
    names = [word for word in arguments[1:] if not word.startswith("-")]
    known = len(names) == 2 and arguments[0] != "ln"
    for name in names[-1:]:
        shell.state.write(name, shell.state.file(names[0]) if known else None)
    if arguments[0] == "mv":
        for name in names[:-1]:
            shell.state.write(name, "")
    return Outcome()


def changes_files(shell: Shell, arguments: list[str]) -> None:
    """Forget what files hold that a program may change: `sed -i`, `tee`, or one that the script does not explain."""
    program, parts = arguments[0].rpartition("/")[2], [part for word in arguments[1:] for part in word.split("=")]
    if program in ("sed", "perl", "awk", "yq") and not any(
        re.match("-i|--in-place|-[a-z]*i", word) for word in arguments[1:]
    ):
        return
    if program not in _READING:
        for name in set(map(shell.state.own_name, parts)) & shell.state.files.keys():
            shell.state.write(name, None)


BUILT_IN: Mapping[str, Callable[[Shell, list[str]], Outcome]] = {
    **WRITING,
    "read": read, "mapfile": map_file, "readarray": map_file, "set": _set,
    "shift": _shift, "getopts": _get_options, "let": _let, "shopt": _shopt, "eval": _evaluate, "test": _test,
    "alias": _alias, "unalias": _unalias,
    "unset": _unset, "export": _export, "declare": _export, "local": _export, "readonly": _export, "typeset": _export,
    "env": in_environment, "xargs": _appends, "parallel": _multiplies,
    "exec": _exec, "trap": _trap, "command": _wrapped, "builtin": _wrapped, "exit": _ends("exit"), "return": _returns,
    "break": _leaves("break"), "continue": _leaves("continue"), "true": _succeeds, ":": _succeeds, "false": _fails,
    "rm": _removes, **dict.fromkeys(("cp", "mv", "ln"), _copies),
    **dict.fromkeys(("cd", "mkdir", "wait", "sleep", "touch", "chmod"), _succeeds),
}  # fmt: skip

"""The training commands of a launch script, or of a pasted command, as words; nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from contracts.run_file import framework_names
from frameworks.command_parser import ScriptCommand, set_options
from system.errors import UserError
from translate.bash_reading import refuse_other_trainings
from translate.shell.branches import Call
from translate.shell.interpreter import Interpreter
from translate.shell.values import BEGIN, END, NAMED, as_written, unknown_names, unknown_parts

_SETTING = re.compile(r"--|[+~]{0,2}\w+(\.\w+)+=")  # a word that is no program
_STARTS_PYTHON = re.compile(r"(\A|/)(python[\d.]*|torchrun|deepspeed|launch|run)\Z")
_NO_LAUNCHERS = (  # programs that may name a training's file or process
    "echo", "printf", "cat", "ls", "rm", "cp", "mv", "tail", "head", "grep", "egrep", "sed", "awk", "find", "wc",
    "diff", "less", "pip", "git", "tee", "vim", "nano", "wget", "curl", "rsync", "scp", "tar", "chmod", "touch", "ln",
    "stat", "file", "realpath", "which", "type", "pkill", "killall", "pgrep", "md5sum", "sha256sum", "du", "test", "[",
    "black", "ruff", "flake8",
)  # fmt: skip


def training_commands(
    text: str, entry: re.Pattern[str], assigned_outside: Mapping[str, str], folder: Path
) -> list[ScriptCommand]:
    """The commands of a text that start a training.

    Args:
        text: of a script, or a command.
        entry: what the word of the training's module or script matches.
        assigned_outside: variables that the text does not assign.
        folder: of the script; scripts beside it that it calls are read.

    Raises:
        UserError: the text is no bash, a comment cuts a command off from the rest of its options, or a branch or an
            array depends on what the text does not say.
    """
    last_options, unnamed = list[str](), list[str]()

    def training_word(arguments: list[str]) -> int | None:
        if _SETTING.match(arguments[0]) and interpreter.calls:
            last_options.append(arguments[0])
        if as_written(arguments[0]).rpartition("/")[2] in _NO_LAUNCHERS:
            return None
        pairs = list(zip(["", *arguments], arguments, strict=False))
        start = next((number for number, pair in enumerate(pairs) if starts_training(entry, *pair)), None)
        if start == len(arguments) - 1 and _names_a_script(arguments[:start]):
            return None  # it is the last argument of another script
        if start is None:
            names = [name for before, word in pairs if _is_program(before, word) for name in unknown_names(word)]
            unnamed.extend(interpreter.deciding(names))
        return start

    interpreter = Interpreter(training_word, folder, assigned_outside)
    text = text.translate(dict.fromkeys(map(ord, (BEGIN, END, NAMED)))).replace("\r\n", "\n")
    try:
        outcome = interpreter.run_script(text, sourced=False)
    except RecursionError:
        sentence = "the script nests brackets or substitutions too deep to be read; paste its training command alone"
        raise UserError(sentence, code="endless-script") from None
    if last_options:
        raise UserError(
            f"the option {last_options[0]} follows a comment or an empty line within the command, where a shell ends "
            "it; delete the comment, or end the line before with a backslash",
            code="command-cut-off",
            option=last_options[0],
        )
    if unnamed and not interpreter.calls:
        raise _unknown_program(list(dict.fromkeys(unnamed)))
    is_named = any(starts_training(entry, *pair) for pair in pairwise(["", *text.split()]))
    unset = list(interpreter.unset or interpreter.state.empty)
    if outcome.flow == "exit" and (unset or is_named) and not interpreter.calls:
        raise _ends_before(unset)
    commands = [_script_command(call) for call in interpreter.calls]
    if commands and not interpreter.state.replaced:  # of such a variable bash has another value
        refuse_other_trainings(interpreter, text)
    return commands


def starts_training(entry: re.Pattern[str], before: str, word: str) -> bool:
    """Whether a word names a training's script or module, rather than a folder, an environment or a run of that name.

    Args:
        entry: what its name matches.
        before: the word before it; empty for the first of a command.
        word: of a command.
    """
    if not entry.search(word) or set(" =") & set(word):
        return False
    is_named = word.endswith(".py") or ("." in word and "/" not in word)
    return is_named or before in ("", "-m", "--module") or before.rpartition("/")[2] in framework_names()


def _ends_before(unset: list[str]) -> UserError:
    names = ", ".join(f"${name}" for name in unset)
    why = f"where nothing says {names}" if unset else "with the values that it sets and takes by default"
    which = set_options(unset) if unset else "--set NAME=VALUE for the one that decides it"
    return UserError(
        f"the script ends before it starts a training {why}; add {which}", code="ends-before-training", variables=unset
    )


def _unknown_program(names: list[str]) -> UserError:
    return UserError(
        f"which program the text starts depends on {', '.join(f'${name}' for name in names)}, which it does not say; "
        f"add {set_options(names)}",
        code="unknown-program",
        variables=names,
    )


def _is_program(before: str, word: str) -> bool:
    """Whether a word names a program, module or script, by what stands before it or how it ends, but not which."""
    name = word.rpartition("/")[2]
    is_named = before == "" or before == "-m" or bool(_STARTS_PYTHON.search(before)) or word.endswith(".py")
    return is_named and END in name and not word.startswith("-") and "=" not in word


def _names_a_script(arguments: Sequence[str]) -> bool:
    """Whether arguments name a Python script, and no other program after it."""
    scripts = [number for number, word in enumerate(arguments) if re.fullmatch(r"[^-=][^=]*\.py", word)]
    after = arguments[scripts[-1] :] if scripts else []
    return bool(scripts) and not any(_STARTS_PYTHON.search(word) or word == "--" for word in after)


def _script_command(call: Call) -> ScriptCommand:
    outputs = [name for name in call.missing if not re.fullmatch(r"\w+", name)]
    if outputs:
        raise UserError(
            f"the command in line {call.line} takes settings from {', '.join(outputs)}, whose output the text does not "
            "say; write the output in its place",
            code="unknown-output",
            commands=outputs,
        )
    if call.missing:
        names, options = ", ".join(f"${name}" for name in call.missing), set_options(call.missing)
        raise UserError(
            f"the command in line {call.line} takes settings from {names}, which the text does not say; add {options} "
            "(nothing after '=' if there are none)",
            code="unknown-settings",
            variables=call.missing,
        )
    arguments = [as_written(word) for word in call.arguments]
    exported = {name: as_written(value) for name, value in call.environment.items()}
    before, program, after = arguments[: call.start], arguments[call.start], arguments[call.start + 1 :]
    files = {as_written(name): as_written(text) for name, text in call.files.items()}
    return ScriptCommand(before, after, program, exported, files, _left_open(call))


def _left_open(call: Call) -> list[str]:
    texts = [*call.arguments[: call.start], *call.arguments[call.start + 1 :], *call.environment.values()]
    texts += call.files.values()
    parts = [[*(f"${name}" for name in unknown_names(text)), *unknown_parts(text)] for text in texts]
    return list(dict.fromkeys(part for of_text in parts for part in of_text if not part.startswith(("${", "$(("))))


def plain_words(text: str) -> list[str]:
    """The words of settings alone, without a command before them; raises UserError for a quote that is not closed."""
    try:
        return shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError:
        raise UserError(
            "the text has a quote that is not closed; paste the whole script or command", code="quote-not-closed"
        ) from None

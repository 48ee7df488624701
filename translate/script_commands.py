"""The training command in a launch script, or in a pasted command, as words; nothing is run.

Read are comments, line continuations, quotes, several commands, and variables where the text assigns them (also arrays,
`${NAME:-default}` and sums in `$((…))`). What only running would tell, such as `$(date)`, stays as it is written.
"""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from frameworks.command_parser import ScriptCommand
from system.errors import UserError

_SEPARATORS = ";&|\n"
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:\[@\])?(?::?-([^${}]*))?\})")
_ARRAY = re.compile(r"^[ \t]*([A-Za-z_]\w*)=\(([^()]*)\)", re.MULTILINE)
_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`]*`")
_HELD = 0xE000  # characters for private use, one for each substitution while the text is split
_SUM = re.compile(r"\$\(\(([^()]*)\)\)")
_REDIRECTION = re.compile(r"\d*>+")
_DECLARE = ("export", "declare", "local", "readonly")
_NO_LAUNCHERS = (
    "cd", "echo", "printf", "mkdir", "ls", "rm", "cp", "mv", "cat", "tail", "source", ".", "conda", "module", "pip",
    "git",
)  # fmt: skip
_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def training_commands(text: str, entry: re.Pattern[str], assigned_outside: Mapping[str, str]) -> list[ScriptCommand]:
    """The commands of a text that start a training.

    Args:
        text: of a script, or a command.
        entry: what the word of the training's module or script matches.
        assigned_outside: variables that the text does not assign.

    Raises:
        UserError: a quote is not closed, or a comment cuts a command off from the rest of its options.
    """
    variables, exported, found_commands = dict(assigned_outside), dict[str, str](), list[ScriptCommand]()
    for statement in _statements(text):
        tokens = statement[1:] if statement[0] in _DECLARE else statement
        while tokens and (assigned := _ASSIGNMENT.match(tokens[0])) and "." not in assigned[1]:
            variables[assigned[1]] = _expanded(assigned[2], variables)
            if statement[0] == "export" or len(tokens) > 1:
                exported[assigned[1]] = variables[assigned[1]]
            tokens = tokens[1:]
        tokens = [part for word in tokens for part in _expanded_words(word, variables)]
        if tokens and tokens[0].startswith("--") and found_commands:
            raise UserError(
                f"the option {tokens[0]} follows a comment or an empty line within the command, where a shell ends it; "
                "delete the comment, or end the line before with a backslash",
                code="command-cut-off",
                option=tokens[0],
            )
        positions = [number for number, word in enumerate(tokens) if entry.search(word)]
        if positions and tokens[0] not in _NO_LAUNCHERS:
            found_commands.append(ScriptCommand(tokens[: positions[0]], tokens[positions[0] + 1 :], dict(exported)))
    return found_commands


def plain_words(text: str, variables: Mapping[str, str]) -> list[str]:
    """The words of settings alone, without a command before them."""
    return [part for statement in _statements(text) for word in statement for part in _expanded_words(word, variables)]


def _statements(text: str) -> Iterator[list[str]]:
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[0])
        return chr(_HELD + len(held) - 1)

    text = _SUBSTITUTION.sub(hold, _joined_lines(text))
    text = _ARRAY.sub(lambda match: f"{match[1]}={shlex.quote(shlex.join(_shell_words(match[2])))}", text)
    text = _SUM.sub(lambda match: f"$(({''.join(match[1].split())}))", text)
    statement: list[str] = []
    to_file = False
    for word in [*_shell_words(text, _SEPARATORS), "\n"]:
        if not word.strip(_SEPARATORS):
            if statement:
                yield statement
            statement, to_file = [], False
        elif _REDIRECTION.match(word):
            to_file = bool(_REDIRECTION.fullmatch(word))  # its file is the next word
        elif to_file:
            to_file = False
        else:
            statement.append(
                "".join(held[ord(one) - _HELD] if 0 <= ord(one) - _HELD < len(held) else one for one in word)
            )


def _joined_lines(text: str) -> str:
    """Continued lines as one; a comment ends a command, as in a shell."""
    lines, pending = list[str](), ""
    for line in text.split("\n"):
        if line.lstrip().startswith("#"):
            lines.append(pending)
            pending = ""
        elif re.search(r"(?<!\\)(\\\\)*\\\Z", line.rstrip("\r")):
            pending += line.rstrip("\r")[:-1]
        else:
            lines.append(pending + line)
            pending = ""
    return "\n".join([*lines, pending])


def _shell_words(text: str, separators: str = "") -> list[str]:
    """Words as a shell splits them, with runs of separators as words."""
    text = text.replace("\n", "\n\n")  # a comment eats one
    lexer = shlex.shlex(text, posix=True, punctuation_chars=separators or False)
    lexer.whitespace, lexer.whitespace_split = (" \t\r" if separators else " \t\r\n"), True
    try:
        return list(lexer)
    except ValueError:
        raise UserError(
            "the text has a quote that is not closed; paste the whole script or command", code="quote-not-closed"
        ) from None


def _expanded_words(word: str, variables: Mapping[str, str]) -> list[str]:
    """A word with its variables; a word that is only a variable may be several."""
    if word in ("$@", "$*", "${@}", "${@:1}"):
        return []
    expanded = _expanded(word, variables)
    return shlex.split(expanded) if _VARIABLE.fullmatch(word) and expanded != word else [expanded]


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    """A word with the variables that are known; sums of known numbers become numbers."""

    def value(match: re.Match[str]) -> str:
        name, default = match[1] or match[2], match[3]
        return variables.get(name) or (match[0] if default is None else default)

    for _ in range(10):  # defaults may hold variables
        word, before = _VARIABLE.sub(value, word), word
        if word == before:
            break
    return _SUM.sub(lambda match: _sum_text(match[1], variables) or match[0], word)


def _sum_text(text: str, variables: Mapping[str, str]) -> str:
    """The value of a sum of whole numbers; empty if it is something else."""
    try:
        return str(_number(ast.parse(text, mode="eval").body, variables))
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError):
        return ""


def _number(node: ast.expr, variables: Mapping[str, str]) -> int:
    if isinstance(node, ast.BinOp):
        return int(_OPERATORS[type(node.op)](_number(node.left, variables), _number(node.right, variables)))
    return int(variables[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node))

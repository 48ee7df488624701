"""The statements of a script by tree-sitter's grammar of bash, and what is read of them."""

from __future__ import annotations

import re
import string

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from system.errors import UserError
from translate.shell.scanning import held_text, released_text

_LANGUAGE = Language(tree_sitter_bash.language())
_WITHOUT_LIST = re.compile(r"(\bfor[ \t]+[A-Za-z_]\w*)[ \t]+do\b")
_HERESTRING = re.compile(r"<<<[ \t]*(?:(\$?'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|([^\s;|&<>()'\"]+))")
_WORD = r"[^\s;|&<>()]"
_ASSIGNMENT = rf"[A-Za-z_]\w*(?:\[[^\]\n]*\])?\+?=(?:\([^()]*\)|{_WORD}*)"
_REDIRECTION = rf"\d?(?:&?>>?|<)[|&]?[ \t]*{_WORD}+"
_ASSIGNMENTS = re.compile(  # to the end of their line; else an array, whose lines end nothing
    rf"(?<![^\s;&|(){{}}])({_ASSIGNMENT}(?:[ \t]+(?:{_ASSIGNMENT}|{_REDIRECTION}))+)(?=[ \t]*\n)|=\([^()]*\)"
)
_IN_BELOW = re.compile(r"(\bfor[ \t]+[A-Za-z_]\w*)[ \t]*\n(?=[ \t]*in\b)")


def parsed(text: str) -> tuple[Node, list[int]]:
    """The statements of a text, and by line of them the text's; raises UserError where it is not bash."""
    root, rows = _tree(text)
    if _first_error(root) is not None and (changed := _as_the_grammar_has_it(text)) != text:
        root, rows = _tree(changed)
    if (error := _first_error(root)) is not None:
        line = rows[error.start_point[0]]
        raise UserError(
            f"line {line} of the script cannot be read ('{' '.join(text_of(error).split())[:60]}'), it is no bash; "
            "paste the whole script, or its training command alone",
            code="not-bash",
            line=line,
        )
    return root, rows


def _tree(text: str) -> tuple[Node, list[int]]:
    """The same with errors; a line of assignments gets a semicolon, or the grammar takes the next one to it."""
    last = len(text.rstrip("\\" + string.whitespace))
    if "\\\\" not in text[last:]:
        text = text[:last] + text[last:].partition("\\")[0]  # after the last backslash nothing goes on
    held, rows = held_text(text)
    held = _ASSIGNMENTS.sub(lambda match: f"{match[0]};" if match[1] else match[0], held)
    root = Parser(_LANGUAGE).parse(held.encode()).root_node
    return root, rows


def _as_the_grammar_has_it(text: str) -> str:
    """A script whose `for v do` has a semicolon, whose `for v` and `in` are in one line, and without `<<<`."""
    text = _IN_BELOW.sub(r"\1 \\\n", _WITHOUT_LIST.sub(r"\1;do", text))
    return _HERESTRING.sub(lambda match: f"< <(printf '%s\\n' {match[1] or _quoted(match[2])})", text)


def _quoted(word: str) -> str:
    return f'"{word}"'


def _first_error(node: Node) -> Node | None:
    if is_empty_list(node):
        return None
    if node.type == "ERROR" or node.is_missing:
        return node if text_of(node).strip() or node.is_missing else None
    errors = (_first_error(child) for child in node.children if child.has_error or child.is_missing)
    return next((error for error in errors if error is not None), None)


def is_empty_list(node: Node) -> bool:
    """Whether a node is the `in` of `for v in ; do`, which bash takes and the grammar does not."""
    parent = node.parent
    return node.type == "ERROR" and parent is not None and parent.type == "for_statement" and text_of(node) == "in"


def joined(nodes: list[Node]) -> list[str]:
    """Words as the script writes them; what stands side by side is one."""
    result, end = list[str](), -1
    for node in nodes:
        if node.type in ("in", ";", "comment", "\n"):
            continue
        text = text_of(node)
        if result and node.start_byte == end:
            result[-1] += text
        else:
            result.append(text)
        end = node.end_byte
    return result


def text_of(node: Node) -> str:
    """A node as the script writes it."""
    return released_text((node.text or b"").decode())


def named(nodes: list[Node]) -> list[Node]:
    """Those of nodes that are no signs."""
    return [node for node in nodes if node.is_named]


def assigned(node: Node) -> str:
    """The name that an assignment is of."""
    return re.split(r"[+\[=]", text_of(node), maxsplit=1)[0]


def redirect_target(node: Node) -> str:
    """The word that a redirection goes to."""
    return _redirected_words(node)[0]


def words_behind_redirections(command: Node) -> list[str]:
    """Those of a command that stand behind its redirections, to which the grammar takes them."""
    statement = command.parent
    if statement is None or statement.type != "redirected_statement":
        return []
    redirections = [child for child in statement.children if child.type == "file_redirect"]
    return [word for one in redirections for word in _redirected_words(one)[1:]]


def _redirected_words(node: Node) -> list[str]:
    signs = ("<", ">", ">>", ">|", "file_descriptor", ">&", "&>", "&>>")
    return joined([child for child in node.children if child.type not in signs])


def case(item: Node) -> tuple[list[str], list[Node]]:
    """The patterns and statements of one case."""
    types = [child.type for child in item.children]
    end = types.index(")")
    patterns = [text_of(child) for child in item.children[:end] if child.type not in ("(", "|")]
    return patterns, named(item.children[end + 1 :])

"""Redirections of a script: what its statements read, and the files that they write."""

from __future__ import annotations

import posixpath
import re
from abc import abstractmethod
from collections.abc import Callable

from tree_sitter import Node

from system.errors import UserError
from translate.shell.loops import Loops
from translate.shell.syntax import redirect_target, text_of
from translate.shell.values import Outcome
from translate.shell.words import with_home

_WITH_INPUT = ("while_statement", "for_statement", "compound_statement", "if_statement", "case_statement", "subshell")


class Redirections(Loops):
    """Follows statements with redirections."""

    @abstractmethod
    def output_of(self, command: str) -> str | None:
        """The output of a command; None if a program would make it."""

    @abstractmethod
    def follow_list(self, node: Node, follow_right: Callable[[], Outcome]) -> Outcome:
        """Follow `left && right` or `left || right`, whose right side is followed so."""

    def _run_redirected_statement(self, node: Node) -> Outcome:
        """Follow a statement with redirections; the grammar gives a list those of its last statement."""
        body = node.child_by_field_name("body")
        if body is not None and body.type == "list":
            return self.follow_list(body, lambda: self._redirected(node, body.children[-1]))
        return self._redirected(node, body)

    def _redirected(self, node: Node, body: Node | None) -> Outcome:
        received, is_given = self.standard_input, False
        for child in node.children:
            if child.type == "herestring_redirect":
                self.standard_input = self.herestring(child)
            elif _is_input(child):
                self.standard_input = self._content(redirect_target(child))
            else:
                continue
            is_given = True
        target = _written_file(node)
        outer, started = self.output, len(self.calls)
        if target is not None:
            self.output = []
        try:
            outcome = self.run(body) if body is not None else Outcome()
            if len(self.calls) > started and body is not None and body.type not in _WITH_INPUT:
                self._refuse_placeholders(node)
            if target is not None:
                self._write(self.expansion.one_word(redirect_target(target)), text_of(target))
        finally:
            self.output = outer
            if is_given:
                self.standard_input = received
        return outcome

    def _content(self, word: str) -> str | None:
        """What a file of the script's own, `<(a command)` or a heredoc gives; None: it is not known."""
        if word.startswith("<<"):
            return self._heredoc(word)
        if not word.startswith("<("):
            file = self.expansion.one_word(word)
            return "" if file == "/dev/null" else self.state.file(file)
        return self.output_of(word[2:-1])

    def _refuse_placeholders(self, node: Node) -> None:
        """Refuse a training with `<your path>` in it, which bash takes for redirections that swallow settings."""
        for child in node.children:
            text = text_of(child)
            reads = _is_input(child) and not redirect_target(child).startswith(("<(", "<<", "/dev/"))
            if child.type == "file_redirect" and (reads or redirect_target(child).startswith("-")):
                raise UserError(
                    f"the command in line {self.line(node)} has '{text}', which a shell takes for a redirection; "
                    "replace the placeholder by a value",
                    code="placeholder",
                )

    def _write(self, file: str, redirection: str) -> None:
        lines, appends = self.output or [], redirection.lstrip("1&").startswith(">>")
        before = self.state.files.get(posixpath.normpath(file), "") if appends else ""
        if not file.startswith("/dev/"):
            parts = [before, *lines]
            self.state.write(file, None if None in parts else "".join(part or "" for part in parts))

    def herestring(self, node: Node) -> str:
        """What `<<< word` gives."""
        return self.expansion.one_word(with_home(text_of(node)[3:].strip())) + "\n"

    def _heredoc(self, written: str) -> str:
        start, _, text = written.partition("\n")
        if start.startswith("<<-"):
            text = re.sub(r"^\t+", "", text, flags=re.MULTILINE)
        return text if re.search(r"['\"\\]", start) else self.expansion.text(text, escaped="$`\\\n")


def _written_file(node: Node) -> Node | None:
    """The last redirection of a statement's output to a file."""
    written = [part for part in node.children if part.type == "file_redirect" and text_of(part).lstrip("1&")[:1] == ">"]
    return written[-1] if written else None


def _is_input(node: Node) -> bool:
    """Whether a redirection is of standard input, from a file or from `<(a command)`."""
    return node.type == "file_redirect" and text_of(node).startswith("<") and not text_of(node).startswith(("<<", "<&"))

"""Statements of a launch script in the order in which bash runs them; no program is run.

What a script's programs would do is not known: that a program succeeds is taken as the course of things, and where a
condition is not decided by what the script and the reader say, both of its branches are followed. A variable that they
leave different is unknown after them, and named wherever its value is needed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tree_sitter import Node

from system.errors import UserError
from translate.shell import programs
from translate.shell.assignments import assign
from translate.shell.branches import Call
from translate.shell.conditions import Condition
from translate.shell.expansion import Expansion
from translate.shell.inner_shells import exported_function, followed_within, not_decided, starts_a_shell, written_text
from translate.shell.redirections import Redirections
from translate.shell.syntax import assigned, joined, parsed, text_of, words_behind_redirections
from translate.shell.values import (
    Decision,
    Left,
    Outcome,
    State,
    Value,
    as_written,
    is_unknown,
    stated_arguments,
    unknown,
    unknown_names,
    unknown_parts,
)
from translate.shell.words import with_braces, with_home

MOST_STATEMENTS = 100_000
DEEPEST = 40  # scripts within scripts, and calls of functions
_OWN = ("local", "declare", "typeset")  # in a function, these make a variable of its own
_TESTS = ("test_command", "compound_statement", "negated_command", "list")
_STATEMENTS_WITHIN = ("program", "compound_statement", "do_group", "else_clause")


@dataclass
class Interpreter(Redirections):
    """Follows a script."""

    training_word: Callable[[list[str]], int | None]  # where a program's words name a training, if they do
    folder: Path  # where the script's own files are searched
    outside: Mapping[str, str]
    calls: list[Call] = field(default_factory=list)
    beside: dict[str, str] = field(default_factory=dict)
    output: list[str | None] | None = None  # of a substituted command; None within: not known
    standard_input: str | None = None
    statements: int = 0
    program_line: int = 0
    depth: int = 0
    loops: int = 0
    substituted_status: Decision = True  # of the command whose output was taken last
    undecided: list[str] = field(default_factory=list)
    unset: dict[str, None] = field(default_factory=dict)  # variables that tests take as empty, as nobody says them
    left: list[Left] = field(default_factory=list)
    returned: list[tuple[State, list[str]]] | None = None
    rows: list[int] = field(default_factory=lambda: [1])  # the script's line by line of what is parsed

    def __post_init__(self) -> None:
        """With what the reader says."""
        self.state = State(self.outside, positional=stated_arguments(self.outside))

    # texts

    def run_text(self, text: str) -> Outcome:
        """Follow a text; raises UserError where it is not bash."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise UserError(
                "the script calls itself again and again, so its commands cannot be read", code="endless-script"
            )
        before = self.rows
        try:
            root, self.rows = parsed(text)
            return self.run(root)
        finally:
            self.depth, self.rows = self.depth - 1, before

    def run_script(self, text: str, sourced: bool) -> Outcome:
        """See Shell."""
        return self._apart(lambda: self.run_text(text), returns=sourced)

    @property
    def expansion(self) -> Expansion:
        """Of words, with the state as it is now."""
        return Expansion(self.state, self.substituted)

    def substituted(self, command: str) -> str | None:
        """The output of a command without NULs and line ends at its end; None if a program would make it."""
        output = self.output_of(command)
        return None if output is None else output.replace("\0", "").rstrip("\n")

    def output_of(self, command: str) -> str | None:
        """The same with them."""
        if match := re.fullmatch(r"\s*(?:<|cat\s)\s*(\S+)\s*", command):
            self.substituted_status = True
            return self.state.file(self.expansion.one_word(match[1]))
        before, outer, self.output = self.state, self.output, []
        self.state = self.state.copy()
        lines: list[str | None] = [None]
        self.substituted_status = None
        try:
            status = self._apart(lambda: self.run_text(command)).status
            lines, self.substituted_status = self.output, status
        except UserError as error:
            if error.code == "endless-script":
                raise
        finally:
            self.state, self.output = before.with_files_of(self.state), outer
        return None if None in lines else "".join(line or "" for line in lines)

    def line(self, node: Node) -> int:
        """Where a statement begins in the script, from 1; within a function it is the function's text that counts."""
        return self.rows[min(node.start_point[0], len(self.rows) - 1)]

    # statements

    def run(self, node: Node) -> Outcome:
        """Follow one statement."""
        self.statements += 1
        if self.statements > MOST_STATEMENTS:
            raise UserError(f"the script is not at its end after {MOST_STATEMENTS} statements", code="endless-script")
        is_sum = [child.type for child in node.children[:1]] == ["(("]
        if node.type in _STATEMENTS_WITHIN and not is_sum:
            return self.run_all(node.named_children)
        handler = getattr(self, f"_run_{node.type}", None)
        if handler is None and self.output is not None:
            self.output.append(None)
        outcome: Outcome = handler(node) if handler else Outcome()
        self.status = outcome.status
        return outcome

    def run_all(self, nodes: list[Node]) -> Outcome:
        """Follow statements in turn."""
        outcome = Outcome()
        for node in nodes:
            if node.type != "comment":
                is_apart = node.next_sibling is not None and node.next_sibling.type == "&"
                outcome = self._in_subshell(lambda node=node: self.run(node)) if is_apart else self.run(node)  # type: ignore[misc]
            if outcome.flow:
                break
        return outcome

    def _run_compound_statement(self, node: Node) -> Outcome:
        number, self.undecided = self.expansion.sum(text_of(node)[2:-2])  # ((…)): braces were followed before
        return Outcome(None if number is None else number != 0)

    def _run_subshell(self, node: Node) -> Outcome:
        return self._in_subshell(lambda: self.run_all(node.named_children))

    def _in_subshell(self, follow: Callable[[], Outcome]) -> Outcome:
        before, self.state = self.state, self.state.copy()
        try:
            return Outcome(self._apart(follow).status)
        finally:
            self.state = before.with_files_of(self.state)

    def _apart(self, follow: Callable[[], Outcome], returns: bool | None = None) -> Outcome:
        """Follow what no `break` or `return` leaves for what is around it: a function, or a shell of its own.

        Args:
            follow: follows it.
            returns: whether it may return; None: where what is around it may.
        """
        outer, is_shell = (self.loops, self.left, self.returned), returns is not True
        if is_shell:
            self.state.traps = ("",)
        may_return = self.returned is not None if returns is None else returns
        self.loops, self.left, self.returned = 0, [], [] if may_return else None
        try:
            outcome = follow()
            for state, names in self.returned or []:
                self.state.merge(self.state.copy(), state, names)
                self.undecided, outcome = names, Outcome(None, outcome.flow)
            if is_shell:
                self._run_traps()
        finally:
            self.loops, self.left, self.returned = outer
        self.state.ended = tuple(one for one in self.state.ended if one.flow != "return")
        return outcome

    def _run_traps(self) -> None:
        """Follow what `trap` has run at the end of a shell."""
        (traps, self.state.traps), started = (self.state.traps, ("",)), len(self.calls)
        for text in traps:
            self.run_text(text)
        if len(traps) > 1 and len(self.calls) > started:
            raise programs.in_trap()

    def _run_list(self, node: Node) -> Outcome:
        return self.follow_list(node, lambda: self.run(node.children[-1]))

    def follow_list(self, node: Node, follow_right: Callable[[], Outcome]) -> Outcome:
        """See Redirections."""
        left, sign = node.children[0], node.children[1].type
        first = self.run(left)
        if first.flow:
            return first
        if first.status is None:
            is_test = left.type in _TESTS or text_of(left).split()[0] in self.state.functions
            if sign == "&&" and not is_test:
                return follow_right()  # a program that succeeds
            return self.forked([follow_right, lambda: Outcome(sign == "||")], self.line(node))
        return follow_right() if first.status == (sign == "&&") else first

    def _run_negated_command(self, node: Node) -> Outcome:
        outcome = self.run(node.named_children[0])
        return Outcome(None if outcome.status is None else not outcome.status, outcome.flow)

    def _run_pipeline(self, node: Node) -> Outcome:
        outcome, received, after = Outcome(), self.standard_input, self.standard_input
        is_negated = text_of(node).startswith("!")  # the grammar takes it for the first part's own
        for number, part in enumerate(node.named_children):
            is_last = number == len(node.named_children) - 1
            outer, self.standard_input = self.output, received
            if not is_last:
                self.output = []
            outcome = self._of_last(part) if is_last else self._in_subshell(lambda part=part: self.run(part))  # type: ignore[misc]
            after = after if number else self.standard_input
            if not is_last:
                lines = self.output or [None]
                received = None if None in lines else "".join(line or "" for line in lines)
            self.output = outer
        self.standard_input = after
        return Outcome(
            not outcome.status if is_negated and outcome.status is not None else outcome.status, outcome.flow
        )

    def _of_last(self, node: Node) -> Outcome:
        """Follow the last part of a pipeline, which `shopt -s lastpipe` has run in the shell itself."""
        is_here = self.state.options.get("lastpipe", False)
        ways = [lambda: self.run(node), lambda: self._in_subshell(lambda: self.run(node))]
        self.undecided = ["lastpipe"] if is_here is None else []
        return self.forked(ways, self.line(node)) if is_here is None else ways[not is_here]()

    def _run_variable_assignments(self, node: Node) -> Outcome:
        return self._assigned(node.named_children)

    def _run_variable_assignment(self, node: Node) -> Outcome:
        return self._assigned([node])

    def _assigned(self, nodes: list[Node]) -> Outcome:
        """Follow assignments, which succeed as the last command does whose output they take."""
        self.substituted_status = True
        for node in nodes:
            self.assign(text_of(node))
        return Outcome(self.substituted_status)

    def assign(self, text: str, is_map: bool = False) -> str:
        """Follow an assignment; returns its name."""
        return assign(self.state, self.expansion, text, is_map)

    def _run_declaration_command(self, node: Node) -> Outcome:
        """Values are expanded before the first is assigned, except arrays, which bash makes in turn."""
        options = [text_of(child) for child in node.children if re.match(r"[-+]\w", text_of(child))]
        kind, later = node.children[0].type, list[str]()
        prints = any("p" in option for option in options)
        if self.output is not None and (len(node.children) == 1 or prints):
            self.output.append(None)
        for child in node.named_children:
            written = text_of(child)
            if re.match(r"[^=]*=\(", written):
                self._declare(kind, options, written)
            else:
                later += map(self._with_value, with_braces(written))
        for text in later:
            self._declare(kind, options, text)
        return Outcome(not prints or all(self.state.value(name) is not None for name in later if name[:1] != "-"))

    def _declare(self, command: str, signs: list[str], text: str) -> None:
        if not re.match(r"[A-Za-z_]\w*(\[.*?\])?\+?=|-", text):
            text = _requoted(self.expansion.one_word(text))
        options = "".join(sign for sign in signs if sign.startswith("-"))
        refers, name = "n" in options and command != "export", ""
        is_local = self.state.hidden is not None and command in _OWN and "g" not in options
        if is_local and not refers and re.match(r"[A-Za-z_]\w*", text):
            self._hide(re.split(r"\W", text)[0], [] if "a" in options else "")
        if (kind := re.search("[iul]", options)) and re.match(r"[A-Za-z_]\w*", text):
            self.state.kinds[self.state.target(re.split(r"\W", text)[0])] = kind[0]
        if any(re.match(r"\+\w*[iul]", sign) for sign in signs):
            self.state.kinds.pop(self.state.target(text.partition("=")[0]), None)
        if "+n" in signs:
            self.state.references.pop(text.partition("=")[0], None)
        if refers and not text.startswith("-"):
            self.state.refer(text.partition("=")[0], self.expansion.one_word(text.partition("=")[2]))
        elif not text.startswith("-"):
            name = self.assign(text, is_map="A" in options) if "=" in text else text
            if "A" in options and name not in self.state.variables:
                self.state.assign(name, {})
        if name and (command == "export" or any("x" in sign for sign in signs)):
            is_exported = "n" not in options and not any(re.match(r"\+\w*x", sign) for sign in signs)
            self.state.export(exported_function(name) if "f" in options else name, is_exported)

    def _with_value(self, written: str) -> str:
        """A word of a declaration with its value expanded."""
        match = re.match(r"([A-Za-z_]\w*(?:\[.*?\])?\+?=)(.*)\Z", written, re.DOTALL)
        if match is None:
            return written
        return match[1] + shlex.quote(self.expansion.one_word(with_home(match[2], is_assigned=True)))

    def _run_unset_command(self, node: Node) -> Outcome:
        names = [self.expansion.one_word(text_of(child)) for child in node.named_children]
        return programs.BUILT_IN["unset"](self, ["unset", *names])

    def _run_function_definition(self, node: Node) -> Outcome:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.state.functions[text_of(name)] = [body]
            self.state.causes.pop(f"{text_of(name)}()", None)
        return Outcome()

    # tests and programs

    def _run_test_command(self, node: Node) -> Outcome:
        text = text_of(node)
        if text.startswith("(("):
            return self._run_compound_statement(node)
        double = text.startswith("[[")
        return self.tested(text[2:-2] if double else text[1:-1], double)

    def tested(self, text: str, double: bool) -> Outcome:
        """The outcome of a test."""
        condition = Condition(self.expansion, text, double)
        decision = condition.decision()
        self.undecided = condition.names if decision is None else []
        self.unset |= dict.fromkeys(condition.unset)
        return Outcome(decision)

    def _run_command(self, node: Node) -> Outcome:
        prefix = [child for child in node.children if child.type == "variable_assignment"]
        before = {name: self.state.variables.get(name) for name in map(assigned, prefix)}
        argument_nodes = [child for child in node.children if child.type not in _NO_WORDS]
        herestrings = [child for child in node.children if child.type == "herestring_redirect"]
        received = self.standard_input
        for child in herestrings:
            self.standard_input = self.herestring(child)
        written = [*joined(argument_nodes), *words_behind_redirections(node)]
        programs.refuse_alias(self, "".join(written[:1]), self.line(node))
        arguments = [field for word in written for field in self._fields(word)]
        for child in prefix:
            self.assign(text_of(child))
        if not arguments:
            self.standard_input = received
            return Outcome()
        lent = before.keys() - self.state.exported
        self.state.exported |= lent
        try:
            return self.run_program(arguments, self.line(node))
        finally:
            self.state.exported -= lent
            if herestrings:
                self.standard_input = received
            for name, value in before.items():
                if value is None:
                    self.state.variables.pop(name, None)
                else:
                    self.state.variables[name] = value

    def _fields(self, written: str) -> list[str]:
        """What a word becomes; `<(a command)` is a file that has its output."""
        if not written.startswith("<("):
            return self.expansion.fields(written)
        file, output = unknown(written), self.output_of(written[2:-1])
        if output is not None:
            self.state.write(file, output)
        return [file]

    def run_program(self, arguments: list[str], line: int) -> Outcome:
        """Follow a program, a function, or a command of the shell."""
        self.program_line, self.undecided = line, []
        if arguments[0] == "time":  # unlike programs that start others, it is a word of the shell
            arguments = arguments[1 + (arguments[1:2] == ["-p"]) :] or ["true"]
        if arguments[0] in self.state.functions:
            return self._run_any_version(arguments)
        built_in = programs.BUILT_IN.get(as_written(arguments[0]).rpartition("/")[2])
        if built_in:
            return built_in(self, arguments)
        if starts_a_shell(self, arguments):
            return Outcome()
        if self.output is not None:
            self.output.append(None)
        if (start := self.training_word(arguments)) is not None:
            missing = self.deciding(_names_of_settings(arguments[start + 1 :]))
            call = Call(arguments, start, self.environment(), line, missing, self._named_files(arguments))
            for ended in self.state.ended:
                if call not in ended.calls:
                    raise not_decided(ended.names, ended.line)
            if not self.state.ended:  # else it is in the place of the same one, after which the script ended
                self.calls.append(call)
            return Outcome()
        programs.changes_files(self, arguments)
        return followed_within(self, arguments) or Outcome(None)

    def _named_files(self, arguments: list[str]) -> dict[str, str]:
        """By name, the texts of files that words name, alone or behind an equals sign, and the script has written."""
        names = [name for word in arguments for name in (word, word.partition("=")[2])]
        return {name: text for name in names if (text := written_text(self, name)) is not None}

    def environment(self) -> dict[str, str]:
        """The exported variables, in the order in which the script names them."""
        values = {name: value for name, value in self.state.variables.items() if name in self.state.exported}
        return {name: value for name, value in values.items() if isinstance(value, str)}

    def _run_any_version(self, arguments: list[str]) -> Outcome:
        """Follow a function, or each that it may be: which it is, and whether it is defined, a branch may decide."""
        name, line = arguments[0], self.program_line
        versions = self.state.functions[name]
        ways = [
            (lambda body=body: self.run_function(arguments, body))  # type: ignore[misc]
            if body is not None
            else lambda: programs.BUILT_IN["command"](self, ["command", *arguments])
            for body in versions
        ]
        if len(ways) == 1:
            return ways[0]()
        self.undecided = self.state.causes.get(f"{name}()", [])
        return self.forked(ways, line)

    def run_function(self, arguments: list[str], body: Node) -> Outcome:
        """Follow a function of the script; its local variables are all of its own."""
        positional, self.state.positional = self.state.positional, arguments[1:]
        references, self.state.references = self.state.references, dict(self.state.references)
        hidden, self.state.hidden = self.state.hidden, {}
        kinds, self.state.kinds = self.state.kinds, dict(self.state.kinds)
        exported = set(self.state.exported)
        self.depth += 1
        try:
            if self.depth > DEEPEST:
                raise UserError(f"the function {arguments[0]} calls itself without an end", code="endless-script")
            outcome = self._apart(lambda: self.run(body), returns=True)
        finally:
            self.depth -= 1
            self.state.kinds = kinds | {n: k for n, k in self.state.kinds.items() if n not in (self.state.hidden or {})}
            self._show_again(exported)
            self.state.positional, self.state.references, self.state.hidden = positional, references, hidden
        return Outcome(outcome.status, "exit" if outcome.flow == "exit" else "")

    def _hide(self, name: str, value: Value) -> None:
        """Give a function a variable of its own."""
        if self.state.hidden is not None and name not in self.state.hidden:
            self.state.hidden[name] = self.state.variables.get(name)
            self.state.variables[name] = value

    def _show_again(self, exported: set[str]) -> None:
        """Give the variables that a function had of its own what they have outside: values, and whether exported."""
        for name, value in (self.state.hidden or {}).items():
            self.state.export(name, name in exported)
            if value is None:
                self.state.variables.pop(name, None)
            else:
                self.state.variables[name] = value


def _requoted(text: str) -> str:
    """An assignment that has been expanded, with its value in quotes, or a name alone."""
    name, equals, value = text.partition("=")
    return f"{name}={shlex.quote(value)}" if equals else name


def _names_of_settings(arguments: list[str]) -> list[str]:
    """The variables of words that may be settings: an array, or a variable alone where no option wants a value."""
    missing = list[str]()
    for before, word in zip(["", *arguments], arguments, strict=False):
        is_alone = is_unknown(word) and unknown_parts(word) == [as_written(word)]
        is_value = before.startswith("-") and "=" not in before
        is_array = any(part.endswith(("[@]}", "[*]}")) for part in unknown_parts(word))
        if is_array or (is_alone and not is_value):
            missing += unknown_names(word) or [as_written(word)]
    return missing


_NO_WORDS = ("variable_assignment", "herestring_redirect", "file_redirect", "comment")

"""Statements of a launch script in the order in which bash runs them; no program is run.

What a script's programs would do is not known: that a program succeeds is taken as the course of things, and where a
condition is not decided by what the script and the reader say, both of its branches are followed. A variable that they
leave different is unknown after them, and named wherever its value is needed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tree_sitter import Node

from system.errors import UserError
from translate.shell import programs
from translate.shell.assignments import assign
from translate.shell.conditions import Condition
from translate.shell.expansion import Expansion, glob_pattern
from translate.shell.syntax import assigned, case, is_empty_list, joined, named, parsed, redirect_target, text_of
from translate.shell.values import (
    Outcome,
    State,
    Value,
    as_written,
    is_unknown,
    stated_arguments,
    unknown_names,
    unknown_parts,
)

MOST_STATEMENTS = 100_000
MOST_ROUNDS = 1_000  # of one loop
DEEPEST = 40  # scripts within scripts, and calls of functions
_LEAVES = re.compile(r"\b(?:break|continue)\b")
_OWN = ("local", "declare", "typeset")  # in a function, these make a variable of its own
_STATEMENTS_WITHIN = ("program", "compound_statement", "do_group", "else_clause")


@dataclass
class Call:
    """A training that the script starts."""

    arguments: list[str]
    start: int  # where they name the training
    environment: dict[str, str]  # exported before it, or set for it
    line: int = field(compare=False)
    missing: list[str] = field(compare=False)  # variables that its settings depend on and nobody says


@dataclass
class Interpreter(programs.Shell):
    """Follows a script."""

    training_word: Callable[[list[str]], int | None]  # where a program's words name a training, if they do
    folder: Path  # where the script's own files are searched
    outside: Mapping[str, str]
    calls: list[Call] = field(default_factory=list)
    output: list[str | None] | None = None  # of a substituted command; None within: not known
    standard_input: str | None = None
    statements: int = 0
    depth: int = 0
    undecided: list[str] = field(default_factory=list)  # variables that the last condition needs
    leaving: list[str] | None = None  # those that decide whether this round of a loop is left on the way
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

    @property
    def expansion(self) -> Expansion:
        """Of words, with the state as it is now."""
        return Expansion(self.state, self.substituted)

    def substituted(self, command: str) -> str | None:
        """The output of a command; None if a program would make it."""
        if match := re.fullmatch(r"\s*(?:<|cat\s)\s*(\S+)\s*", command):
            text = self.state.file(self.expansion.text(match[1], quotes=True))
            return None if text is None else text.rstrip("\n")
        before, outer, self.output = self.state, self.output, []
        self.state = self.state.copy()
        lines: list[str | None] = [None]
        try:
            self.run_text(command)
            lines = self.output
        except UserError as error:
            if error.code == "endless-script":
                raise
        finally:
            self.state, self.output = before, outer
        known = bool(lines) and None not in lines
        return "".join(line or "" for line in lines).rstrip("\n") if known else None

    def line(self, node: Node) -> int:
        """Where a statement begins in the script, from 1; within a function it is the function's text that counts."""
        return self.rows[min(node.start_point[0], len(self.rows) - 1)]

    # statements

    def run(self, node: Node) -> Outcome:
        """Follow one statement."""
        self.statements += 1
        if self.statements > MOST_STATEMENTS:
            raise UserError(f"the script is not at its end after {MOST_STATEMENTS} statements", code="endless-script")
        if node.type in _STATEMENTS_WITHIN and not text_of(node).startswith("(("):
            return self.run_all(node.named_children)
        handler = getattr(self, f"_run_{node.type}", None)
        return handler(node) if handler else Outcome()

    def run_all(self, nodes: list[Node]) -> Outcome:
        """Follow statements in turn."""
        outcome = Outcome()
        for node in nodes:
            if node.type != "comment":
                outcome = self.run(node)
            if outcome.flow:
                break
        return outcome

    def _run_compound_statement(self, node: Node) -> Outcome:
        number = self.expansion.number(text_of(node)[2:-2])  # ((…)): braces were followed before
        self.undecided = re.findall(r"[A-Za-z_]\w*", text_of(node)) if number is None else []
        return Outcome(None if number is None else number != 0)

    def _run_subshell(self, node: Node) -> Outcome:
        before, self.state = self.state, self.state.copy()
        try:
            outcome = self.run_all(node.named_children)
        finally:
            self.state = before
        return Outcome(outcome.status)

    def _run_list(self, node: Node) -> Outcome:
        left, sign, right = node.children[0], node.children[1].type, node.children[-1]
        first = self.run(left)
        if first.flow:
            return first
        if first.status is None:
            is_test = left.type in ("test_command", "compound_statement", "negated_command", "list")
            if sign == "&&" and not is_test:
                return self.run(right)  # a program that succeeds
            return self.forked([lambda: self.run(right), lambda: Outcome(sign == "||")], node)
        return self.run(right) if first.status == (sign == "&&") else first

    def _run_negated_command(self, node: Node) -> Outcome:
        outcome = self.run(node.named_children[0])
        return Outcome(None if outcome.status is None else not outcome.status, outcome.flow)

    def _run_pipeline(self, node: Node) -> Outcome:
        outcome, received = Outcome(), self.standard_input
        for number, part in enumerate(node.named_children):
            is_last = number == len(node.named_children) - 1
            before, outer, self.standard_input = self.state, self.output, received
            self.state = self.state.copy()
            if not is_last:
                self.output = []
            outcome = self.run(part)
            if not is_last:
                lines = self.output or [None]
                received = None if None in lines else "".join(line or "" for line in lines)
            self.state, self.output, self.standard_input = before, outer, None
        return Outcome(outcome.status)

    def _run_redirected_statement(self, node: Node) -> Outcome:
        before, body = self.standard_input, node.child_by_field_name("body")
        for child in node.children:
            if child.type == "heredoc_redirect":
                self.standard_input = self._heredoc(child)
            elif child.type == "herestring_redirect":
                self.standard_input = self.expansion.text(text_of(child)[3:].strip(), quotes=True) + "\n"
        target = _written_file(node)
        outer, started = self.output, len(self.calls)
        if target is not None:
            self.output = []
        try:
            outcome = self.run(body) if body is not None else Outcome()
            if len(self.calls) > started:
                self._refuse_placeholders(node)
            if target is not None:
                self._write(self.expansion.text(redirect_target(target), quotes=True), text_of(target))
        finally:
            self.standard_input, self.output = before, outer
        return outcome

    def _refuse_placeholders(self, node: Node) -> None:
        """Refuse a training with `<your path>` in it, which bash takes for redirections that swallow settings."""
        for child in node.children:
            text = text_of(child)
            reads = text.startswith("<") and not text.startswith(("<<", "<&", "<("))
            if child.type == "file_redirect" and (reads or redirect_target(child).startswith("-")):
                raise UserError(
                    f"the command in line {self.line(node)} has '{text}', which a shell takes for a redirection; "
                    "replace the placeholder by a value",
                    code="placeholder",
                )

    def _write(self, file: str, redirection: str) -> None:
        lines, appends = self.output or [], redirection.lstrip("1&").startswith(">>")
        file, before = posixpath.normpath(file), (self.state.file(file) or "") if appends else ""
        if file.startswith("/dev/"):
            return
        if None not in lines:
            self.state.files[file] = before + "".join(line or "" for line in lines)
        elif not appends:
            self.state.files.pop(file, None)

    def _heredoc(self, node: Node) -> str:
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        start = next(text_of(child) for child in node.children if child.type == "heredoc_start")
        text = text_of(body) if body is not None else ""
        if text_of(node).startswith("<<-"):
            text = re.sub(r"^\t+", "", text, flags=re.MULTILINE)
        return text if re.search(r"['\"\\]", start) else self.expansion.text(text)

    def _run_variable_assignments(self, node: Node) -> Outcome:
        return self.run_all(node.named_children)

    def _run_variable_assignment(self, node: Node) -> Outcome:
        self.assign(text_of(node))
        return Outcome()

    def assign(self, text: str, is_map: bool = False) -> str:
        """Follow an assignment; returns its name."""
        return assign(self.state, self.expansion, text, is_map)

    def _run_declaration_command(self, node: Node) -> Outcome:
        options = "".join(text_of(child) for child in node.children if text_of(child).startswith("-"))
        refers = "n" in options and node.children[0].type != "export"
        is_plain = any(text_of(child) == "+n" for child in node.children)
        exports = node.children[0].type == "export" or "x" in options
        is_local = self.state.hidden is not None and node.children[0].type in _OWN and "g" not in options
        for child in node.named_children:
            text, name = text_of(child), ""
            if is_local and not refers and re.match(r"[A-Za-z_]\w*", text):
                self._hide(re.split(r"\W", text)[0], [] if "a" in options else "")
            if is_plain:
                self.state.references.pop(text.partition("=")[0], None)
            if refers and not text.startswith("-"):
                self.state.refer(text.partition("=")[0], self.expansion.text(text.partition("=")[2], quotes=True))
            elif child.type == "variable_assignment":
                name = self.assign(text, is_map="A" in options)
            elif child.type in ("variable_name", "word", "string") and not text.startswith("-"):
                written = self.expansion.text(text, quotes=True)
                name = self.assign(written) if "=" in written else text
                if "A" in options and name not in self.state.variables:
                    self.state.assign(name, {})
            if exports and name and "n" not in options:
                self.state.exported.add(name)
        return Outcome()

    def _run_unset_command(self, node: Node) -> Outcome:
        names = [self.expansion.text(text_of(child), quotes=True) for child in node.named_children]
        return programs.BUILT_IN["unset"](self, ["unset", *names])

    def _run_function_definition(self, node: Node) -> Outcome:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.state.functions[text_of(name)] = body
        return Outcome()

    # branches and loops

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
        return Outcome(decision)

    def _run_if_statement(self, node: Node) -> Outcome:
        parts: list[tuple[list[Node], list[Node]]] = [([], [])]
        after = False
        for child in node.children:
            if child.type == "then":
                after = True
            elif child.type == "elif_clause":
                split = [one.type for one in child.children].index("then")
                parts.append((named(child.children[1:split]), named(child.children[split + 1 :])))
            elif child.type == "else_clause":
                parts.append(([], child.named_children))
            elif child.is_named:
                parts[0][1 if after else 0].append(child)
        return self._branch(parts, node)

    def _branch(self, parts: list[tuple[list[Node], list[Node]]], node: Node) -> Outcome:
        if not parts:
            return Outcome()
        condition, body = parts[0]
        if not condition:
            return self.run_all(body)
        self.undecided = []
        outcome = self.run_all(condition)
        if outcome.flow:
            return outcome
        if outcome.status is None:
            return self.forked([lambda: self.run_all(body), lambda: self._branch(parts[1:], node)], node)
        return self.run_all(body) if outcome.status else self._branch(parts[1:], node)

    def forked(self, branches: list[Callable[[], Outcome]], node: Node) -> Outcome:
        """Follow each of several branches, of which nobody says which runs; raises UserError if trainings differ."""
        names, before, start = self.deciding(self.undecided), self.state, len(self.calls)
        ends: list[tuple[Outcome, State, list[Call]]] = []
        for branch in branches:
            self.state = before.copy()
            outcome = branch()
            ends.append((outcome, self.state, self.calls[start:]))
            del self.calls[start:]
        self.state = before
        started = [calls for _, _, calls in ends if calls]
        started = [calls for number, calls in enumerate(started) if calls not in started[:number]]
        if len(started) > 1 and names:
            raise _not_decided(names, self.line(node))
        self.calls += [call for calls in started for call in calls]
        going_on = [end for end in ends if end[0].flow not in ("exit", "return")] or ends[:1]
        first = going_on[0]
        self.state.take(first[1])
        for _, state, _ in going_on[1:]:
            self.state.merge(self.state.copy(), state, names)
        flows = {outcome.flow for outcome, _, _ in going_on}
        statuses = {outcome.status for outcome, _, _ in going_on}
        self.undecided = names
        if len(flows) > 1:  # some leave a loop's round
            self.leaving = [*(self.leaving or []), *names]
        return Outcome(first[0].status if len(statuses) == 1 else None, first[0].flow if len(flows) == 1 else "")

    def deciding(self, names: list[str]) -> list[str]:
        """The variables that a reader can say so that these are known."""
        causes = [self.state.causes.get(name) or [name] for name in names]
        return list(dict.fromkeys(cause for names_of_one in causes for cause in names_of_one))

    def _run_case_statement(self, node: Node) -> Outcome:
        value = node.child_by_field_name("value")
        text = self.expansion.text(text_of(value), quotes=True) if value is not None else ""
        items = [child for child in node.named_children if child.type == "case_item"]
        if is_unknown(text):
            self.undecided = unknown_names(text)
            bodies = [lambda item=item: self.run_all(case(item)[1]) for item in items]
            takes_all = any("*" in case(item)[0] for item in items)
            return self.forked([*bodies, *([] if takes_all else [Outcome])], node)
        goes_on, outcome = False, Outcome()
        for item in items:
            patterns, body = case(item)
            wanted = (glob_pattern(self.expansion.pattern(one), longest=True) for one in patterns)
            if goes_on or any(re.fullmatch(one, text, re.DOTALL) for one in wanted):
                outcome, sign = self.run_all(body), item.children[-1].type
                if outcome.flow or sign not in (";&", ";;&"):
                    return outcome
                goes_on = sign == ";&"
        return outcome

    def _run_for_statement(self, node: Node) -> Outcome:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        raw = node.children[node.children.index(name) + 1 : node.children.index(body)] if name and body else []
        if any(map(is_empty_list, raw)):
            return Outcome()
        values = [field for word in joined(raw) for field in self.expansion.fields(word)]
        if not any(child.type == "in" for child in raw):
            values = self.state.positional or []
        for value in values[:MOST_ROUNDS]:
            self.state.assign(text_of(name), value)  # type: ignore[arg-type]
            before = self._before_round(body)  # type: ignore[arg-type]
            outcome, names = self._round(body)  # type: ignore[arg-type]
            if outcome.flow in ("exit", "return"):
                return outcome
            if before and names is not None:
                self.state.merge(before, self.state.copy(), names)
            if outcome.flow == "break":
                break
        return Outcome()

    def _run_c_style_for_statement(self, node: Node) -> Outcome:
        body = node.child_by_field_name("body")
        inner = re.match(r"for\s*\(\((.*?);(.*?);(.*?)\)\)", text_of(node), re.DOTALL)
        if not inner or body is None:
            return Outcome()
        self.expansion.number(inner[1])
        return self._loop(lambda: self.expansion.number(inner[2] or "1"), body, inner[3])

    def _loop(self, condition: Callable[[], int | None], body: Node, after: str) -> Outcome:
        for _ in range(MOST_ROUNDS):
            number = condition()
            if number is None:
                return self._any_rounds(body)
            if not number:
                return Outcome()
            before, start = self._before_round(body), len(self.calls)
            outcome, names = self._round(body)
            if before and names is not None:
                self.state.take(before)
                del self.calls[start:]
                self.undecided = names
                return self._any_rounds(body)
            if outcome.flow in ("exit", "return"):
                return outcome
            if outcome.flow == "break":
                return Outcome()
            self.expansion.number(after)
        return Outcome(flow="exit")  # a loop that waits for ever

    def _before_round(self, body: Node) -> State | None:
        """What holds before a round that may be left on the way."""
        return self.state.copy() if _LEAVES.search(text_of(body)) else None

    def _round(self, body: Node) -> tuple[Outcome, list[str] | None]:
        """Follow a round of a loop; also the names that decide whether it is left on the way, None: no more is open."""
        outer, self.leaving = self.leaving, None
        outcome = self.run(body)
        names, self.leaving = self.leaving, outer
        return outcome, names

    def _any_rounds(self, body: Node) -> Outcome:
        """Follow a loop of which nobody says how often it runs, until another round changes nothing that is known."""
        names, start = self.undecided, len(self.calls)
        for _ in range(MOST_ROUNDS):
            del self.calls[start:]
            before, self.undecided = self.state.copy(), names
            outcome = self.forked([lambda: self._round(body)[0], Outcome], body)
            if outcome.flow in ("exit", "return"):
                return outcome
            if (self.state.variables, self.state.positional) == (before.variables, before.positional):
                break
        return Outcome(None)

    def _run_while_statement(self, node: Node) -> Outcome:
        body, until = node.child_by_field_name("body"), text_of(node).startswith("until")
        start = [child.type for child in node.children].index("while" if not until else "until")
        end = node.children.index(body) if body is not None else len(node.children)
        tests = named(node.children[start + 1 : end])

        def condition() -> int | None:
            status = self.run_all(tests).status
            return None if status is None else int(status != until)

        return self._loop(condition, body, "0") if body is not None else Outcome()

    # programs

    def _run_command(self, node: Node) -> Outcome:
        prefix = [child for child in node.children if child.type == "variable_assignment"]
        before = {name: self.state.variables.get(name) for name in map(assigned, prefix)}
        argument_nodes = [child for child in node.children if child.type not in _NO_WORDS]
        for child in node.children:
            if child.type == "herestring_redirect":
                self.standard_input = self.expansion.text(text_of(child)[3:].strip(), quotes=True) + "\n"
        arguments = [field for word in joined(argument_nodes) for field in self.expansion.fields(word)]
        for child in prefix:
            self.assign(text_of(child))
        if not arguments:
            return Outcome()
        exported, self.state.exported = self.state.exported, {*self.state.exported, *before}
        try:
            return self.run_program(arguments, self.line(node))
        finally:
            self.state.exported = exported
            for name, value in before.items():
                if value is None:
                    self.state.variables.pop(name, None)
                else:
                    self.state.variables[name] = value

    def run_program(self, arguments: list[str], line: int) -> Outcome:
        """Follow a program, a function, or a command of the shell."""
        if arguments[0] in self.state.functions:
            return self.run_function(arguments)
        built_in = programs.BUILT_IN.get(as_written(arguments[0]).rpartition("/")[2])
        if built_in:
            return built_in(self, arguments)
        if programs.starts_a_shell(self, arguments):
            return Outcome()
        if self.output is not None:
            self.output.append(None)
        if (start := self.training_word(arguments)) is not None:
            missing = self.deciding(_names_of_settings(arguments[start + 1 :]))
            self.calls.append(Call(arguments, start, self.environment(), line, missing))
            return Outcome()
        self.undecided = []
        return programs.followed_within(self, arguments) or Outcome(None)

    def environment(self) -> dict[str, str]:
        """The exported variables."""
        texts = {name: self.state.text(name) for name in self.state.exported if name in self.state.variables}
        return {name: text for name, text in texts.items() if text is not None}

    def run_function(self, arguments: list[str]) -> Outcome:
        """Follow a function of the script; its local variables are all of its own."""
        positional, self.state.positional = self.state.positional, arguments[1:]
        references, self.state.references = self.state.references, dict(self.state.references)
        hidden, self.state.hidden = self.state.hidden, {}
        self.depth += 1
        try:
            if self.depth > DEEPEST:
                raise UserError(f"the function {arguments[0]} calls itself without an end", code="endless-script")
            outcome = self.run(self.state.functions[arguments[0]])
        finally:
            self.depth -= 1
            self._show_again()
            self.state.positional, self.state.references, self.state.hidden = positional, references, hidden
        return Outcome(outcome.status, "exit" if outcome.flow == "exit" else "")

    def _hide(self, name: str, value: Value) -> None:
        """Give a function a variable of its own."""
        if self.state.hidden is not None and name not in self.state.hidden:
            self.state.hidden[name] = self.state.variables.get(name)
            self.state.variables[name] = value

    def _show_again(self) -> None:
        """Give the variables that a function had of its own the values that they have outside."""
        for name, value in (self.state.hidden or {}).items():
            if value is None:
                self.state.variables.pop(name, None)
            else:
                self.state.variables[name] = value


def _written_file(node: Node) -> Node | None:
    """The last redirection of a statement's output to a file."""
    parts = [part for child in node.children for part in [child, *(child.children if "heredoc" in child.type else [])]]
    written = [part for part in parts if part.type == "file_redirect" and text_of(part).lstrip("1&")[:1] == ">"]
    return written[-1] if written else None


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


_NO_WORDS = ("variable_assignment", "herestring_redirect", "file_redirect", "comment", "heredoc_redirect")


def _not_decided(names: list[str], line: int) -> UserError:
    options = " ".join(f"--set {name}=…" for name in names)
    return UserError(
        f"which training runs is decided by {', '.join(f'${name}' for name in names)} (line {line}), "
        f"which the script does not say; add {options}",
        code="branch-not-decided",
        variables=names,
    )

"""Loops of a script: followed round by round, or, where nobody says how often they run, until nothing changes."""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

from system.errors import UserError
from translate.shell.branches import Branches
from translate.shell.syntax import is_empty_list, joined, named, text_of
from translate.shell.values import Decision, Outcome, State, unknown

MOST_ROUNDS = 10_000  # of one loop
_LEAVES = re.compile(r"\b(?:break|continue|return)\b")
_SUM = re.compile(r"for\s*\(\((.*?);(.*?);(.*?)\)\)(?=\s*(?:;|do\b|\{))", re.DOTALL)


def outward(flow: str) -> str:
    """What `break 2` and its like in a loop are for what is around it; empty where the loop alone is left."""
    word, _, levels = flow.partition(" ")
    return flow if not levels else f"{word} {int(levels) - 1}" if int(levels) > 1 else ""


class Loops(Branches):
    """Follows `for`, `while`, `until` and `select`."""

    def _run_for_statement(self, node: Node) -> Outcome:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if name is None or body is None:
            return Outcome()
        raw = node.children[node.children.index(name) + 1 : node.children.index(body)]
        if any(map(is_empty_list, raw)):
            return Outcome()
        values = [field for word in joined(raw) for field in self.expansion.fields(word)]
        if not any(child.type == "in" for child in raw):
            values = self.state.positional or []
        if node.children[0].type == "select":
            values = [unknown(f"${text_of(name)}")]  # of which the user selects any
        if len(values) > MOST_ROUNDS:
            raise self._too_many_rounds(node)
        status: Decision = True
        for value in values:
            self.state.assign(text_of(name), value)
            before = self._before_round(body)
            outcome, names = self._round(body)
            if before and names is not None:
                self.state.merge(before, self.state.copy(), names)
            if outcome.flow and outcome.flow != "continue 1":
                return Outcome(outcome.status, outward(outcome.flow))
            status = outcome.status
        return Outcome(status)

    def _too_many_rounds(self, node: Node) -> UserError:
        return UserError(
            f"the loop in line {self.line(node)} is not at its end after {MOST_ROUNDS:,} rounds, so what follows it "
            "is not read; paste the training command alone",
            code="endless-script",
        )

    def _run_c_style_for_statement(self, node: Node) -> Outcome:
        body = node.child_by_field_name("body")
        inner = _SUM.match(text_of(node))
        if not inner or body is None:
            return Outcome()
        self.expansion.number(inner[1])
        return self._loop(lambda: self.expansion.number(inner[2].strip() or "1"), body, inner[3])

    def _run_while_statement(self, node: Node) -> Outcome:
        body, until = node.child_by_field_name("body"), text_of(node).startswith("until")
        if body is None:
            return Outcome()
        start = [child.type for child in node.children].index("while" if not until else "until")
        tests = named(node.children[start + 1 : node.children.index(body)])

        def condition() -> int | None:
            status = self.run_all(tests).status
            return None if status is None else int(status != until)

        return self._loop(condition, body, "0")

    def _loop(self, condition: Callable[[], int | None], body: Node, after: str) -> Outcome:
        status: Decision = True
        for _ in range(MOST_ROUNDS):
            first, received = self.state.copy(), self.standard_input
            number = condition()
            if number is None:
                return self._any_rounds(body)
            if not number:
                return Outcome(status)
            before, start = self._before_round(body), len(self.calls)
            outcome, names = self._round(body)
            if before and names is not None:
                self.state.take(before)
                del self.calls[start:]
                self.undecided = names
                return self._any_rounds(body)
            if outcome.flow and outcome.flow != "continue 1":
                return Outcome(outcome.status, outward(outcome.flow))
            status = outcome.status
            self.expansion.number(after)
            if self.standard_input == received and _is_same(self.state, first):
                return Outcome(flow="exit")  # it waits for ever
        raise self._too_many_rounds(body)

    def _before_round(self, body: Node) -> State | None:
        """What holds before a round that may be left on the way."""
        return self.state.copy() if _LEAVES.search(text_of(body)) else None

    def _round(self, body: Node) -> tuple[Outcome, list[str] | None]:
        """Follow a round of a loop; also the names that decide whether it is left on the way, None: no more is open."""
        outer, self.leaving = self.leaving, {}
        self.loops += 1
        try:
            outcome = self.run(body)
        finally:
            self.loops -= 1
        inner, self.leaving = self.leaving, outer
        for levels, names in inner.items():
            if levels > 1:
                outer[levels - 1] = [*outer.get(levels - 1, []), *names]
        return outcome, [name for names in inner.values() for name in names] if inner else None

    def _any_rounds(self, body: Node) -> Outcome:
        """Follow a loop of which nobody says how often it runs, until another round changes nothing that is known."""
        names, start = self.undecided, len(self.calls)
        for _ in range(MOST_ROUNDS):
            del self.calls[start:]
            before, self.undecided = self.state.copy(), names
            outcome = self.forked([lambda: self._round(body)[0], Outcome], body)
            if outcome.flow in ("exit", "return"):
                return outcome
            if _is_same(self.state, before):
                break
        return Outcome(None)


def _is_same(one: State, other: State) -> bool:
    """Whether another round would find the same."""
    return (one.variables, one.positional, one.files) == (other.variables, other.positional, other.files)

"""Loops of a script: followed round by round, or, where nobody says how often they run, until nothing changes."""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

from system.errors import UserError
from translate.shell.branches import Branches
from translate.shell.syntax import is_empty_list, joined, named, text_of
from translate.shell.values import Decision, Left, Outcome, State, unknown

MOST_ROUNDS = 10_000  # of one loop
PATIENT_ROUNDS = 100  # of a loop that may have been left
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
            values = self.state.arguments()
        if node.children[0].type == "select":
            values = [unknown(f"${text_of(name)}")]  # of which the user selects any
        if len(values) > MOST_ROUNDS:
            raise self._too_many_rounds(node)
        end, breaks = Outcome(), list[Left]()
        for value in values:
            self.state.assign(text_of(name), value)
            end = self._round(body, breaks)
            if end.flow:
                break
        return self._after_loop(end, breaks)

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
        breaks, grown = list[Left](), 0
        for number in range(MOST_ROUNDS):
            first, received = self.state.copy(), self.standard_input
            decision = condition()
            if decision is None or (breaks and number > PATIENT_ROUNDS):
                return self._any_rounds(body, breaks)
            if not decision:
                return self._after_loop(Outcome(status), breaks)
            outcome = self._round(body, breaks)
            if outcome.flow:
                return self._after_loop(outcome, breaks)
            status = outcome.status
            self.expansion.number(after)
            grown = grown + 1 if _has_grown_alone(self.state, first) else 0
            if self.standard_input == received and (_is_same(self.state, first) or grown > PATIENT_ROUNDS):
                return self._after_loop(Outcome(flow="exit"), breaks)  # it waits for ever
        raise self._too_many_rounds(body)

    def _round(self, body: Node, breaks: list[Left]) -> Outcome:
        """Follow a round of a loop; its flow is empty where another round follows.

        Args:
            body: of the loop.
            breaks: takes the states in which this round may have left the loop.
        """
        outer, self.left = self.left, []
        self.loops += 1
        try:
            outcome = self.run(body)
        finally:
            self.loops -= 1
        inner, self.left = self.left, outer
        self.left += [one._replace(levels=one.levels - 1) for one in inner if one.levels > 1]
        breaks += [one for one in inner if one.levels == 1 and one.word == "break"]
        again = [one for one in inner if one.levels == 1 and one.word == "continue"]
        flow = "" if outcome.flow == "continue 1" else outcome.flow
        if not again:
            return Outcome(outcome.status, flow)
        if flow == "break 1":
            breaks.append(Left("break", 1, self.state.copy(), again[0].names))
            flow = "exit"  # what may have gone on to the next round goes on there
        return self._met(Outcome(outcome.status, outward(flow)), again)

    def _after_loop(self, end: Outcome, breaks: list[Left]) -> Outcome:
        """Go on after a loop, with the states in which it may have been left."""
        return self._met(Outcome(end.status, outward(end.flow)), breaks)

    def _met(self, outcome: Outcome, others: list[Left]) -> Outcome:
        """Go on where the path that was followed and others meet; if it leads elsewhere, that is kept for there."""
        if not others:
            return outcome
        if outcome.flow:
            self.leave(outcome.flow, self.state.copy(), others[0].names)
            self.state.take(others[0].state.copy())
        for other in others:
            self.state.merge(self.state.copy(), other.state.copy(), other.names)
        return Outcome(None)

    def _any_rounds(self, body: Node, breaks: list[Left]) -> Outcome:
        """Follow a loop of which nobody says how often it runs, until another round changes nothing that is known."""
        names, start = [*self.undecided, *(name for one in breaks for name in one.names)], len(self.calls)

        def one_round() -> Outcome:
            outcome = self._round(body, breaks)
            return Outcome(outcome.status, outward(outcome.flow))

        for _ in range(MOST_ROUNDS):
            del self.calls[start:]
            before, self.undecided = self.state.copy(), names
            self.forked([one_round, Outcome], self.line(body))
            if _is_same(self.state, before):
                break
        return self._after_loop(Outcome(None), breaks)


def _is_same(one: State, other: State) -> bool:
    """Whether another round would find the same."""
    return _is_same_but_for_files(one, other) and one.files == other.files


def _is_same_but_for_files(one: State, other: State) -> bool:
    return (one.variables, one.positional) == (other.variables, other.positional)


def _has_grown_alone(one: State, other: State) -> bool:
    """Whether a round did no more than write behind what files have, such as a log."""
    pairs = [(one.files[name], other.files.get(name, "")) for name in one.files]
    return _is_same_but_for_files(one, other) and all(
        new == old or (new is not None and old is not None and new.startswith(old)) for new, old in pairs
    )

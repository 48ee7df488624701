"""Branches of a script: the one that is decided, or each of several, of which nobody says which runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from tree_sitter import Node

from translate.shell.inner_shells import Shell, not_decided
from translate.shell.syntax import case, named, text_of
from translate.shell.values import Ended, Left, Outcome, State, is_unknown, unknown_names


@dataclass
class Call:
    """A training that the script starts."""

    arguments: list[str]
    start: int  # where they name the training
    environment: dict[str, str]  # exported before it, or set for it
    line: int = field(compare=False)
    missing: list[str] = field(compare=False)  # variables that its settings depend on and nobody says
    files: dict[str, str] = field(default_factory=dict)  # texts of those that it names and the script has written


class Branches(Shell):
    """Follows `if` and `case`."""

    calls: list[Call]
    undecided: list[str]  # variables that the last condition needs
    left: list[Left]  # by what has or has not been decided, this round of a loop may have been left so

    @abstractmethod
    def run(self, node: Node) -> Outcome:
        """Follow one statement."""

    @abstractmethod
    def run_all(self, nodes: list[Node]) -> Outcome:
        """Follow statements in turn."""

    @abstractmethod
    def line(self, node: Node) -> int:
        """Where a statement begins in the script, from 1."""

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
            return self.forked([lambda: self.run_all(body), lambda: self._branch(parts[1:], node)], self.line(node))
        return self.run_all(body) if outcome.status else self._branch(parts[1:], node)

    def forked(self, branches: list[Callable[[], Outcome]], line: int) -> Outcome:
        """Follow each of several branches, of which nobody says which runs; raises UserError if trainings differ."""
        names, before, start = self.deciding(self.undecided), self.state, len(self.calls)
        received, left = self.standard_input, list[str | None]()
        printed, outputs = self.output, list[list[str | None]]()
        ends: list[tuple[Outcome, State, list[Call]]] = []
        for branch in branches:
            self.state, self.standard_input = before.copy(), received
            self.output = None if printed is None else []
            outcome = branch()
            outputs.append(self.output or [])
            ends.append((outcome, self.state, self.calls[start:]))
            left.append(self.standard_input)
            del self.calls[start:]
        self.state, self.standard_input = before, left[0] if len(set(left)) == 1 else None
        self.output = printed
        if printed is not None:
            flows = {outcome.flow for outcome, _, _ in ends}
            printed += outputs[0] if len(flows) == 1 and all(one == outputs[0] for one in outputs) else [None]
        started = [calls for _, _, calls in ends if calls]
        started = [calls for number, calls in enumerate(started) if calls not in started[:number]]
        if len(started) > 1 and names:
            raise not_decided(names, line)
        self.calls += [call for calls in started for call in calls]
        self.undecided = names
        return self._gone_on(ends, names, line)

    def _gone_on(self, ends: list[tuple[Outcome, State, list[Call]]], names: list[str], line: int) -> Outcome:
        """Go on where several branches end; what holds where a function may have returned is kept until its end."""
        ended = ("exit", "return") if self.returned is None else ("exit",)
        going_on = [end for end in ends if end[0].flow not in ended] or ends[:1]
        flow = min(outcome.flow for outcome, _, _ in going_on)  # empty, if one of them goes on here
        together = [end for end in going_on if end[0].flow == flow]
        for outcome, state, _ in going_on:
            if outcome.flow != flow:
                self.leave(outcome.flow, state, names)
        first = together[0]
        self.state.take(first[1])
        if any(outcome.flow == "exit" for outcome, _, _ in ends) and flow != "exit" and any(self.state.traps):
            self.state.traps += ("",)  # it may have run before
        for _, state, _ in together[1:]:
            self.state.merge(self.state.copy(), state, names)
        if names:
            self.state.ended += tuple(
                Ended(outcome.flow, names, line, calls)
                for outcome, state, calls in ends
                if calls and outcome.flow in ("exit", "return") and state is not first[1]
            )
        statuses = {outcome.status for outcome, _, _ in together}
        return Outcome(first[0].status if len(statuses) == 1 else None, flow)

    def leave(self, flow: str, state: State, names: list[str]) -> None:
        """Keep a state that may go on elsewhere: after a loop, in its next round, or behind a function.

        Args:
            flow: of the statement that leads there.
            state: that goes on there.
            names: of the variables that decide whether it does.
        """
        word, _, levels = flow.partition(" ")
        if levels:
            self.left.append(Left(word, int(levels), state, names))
        elif word == "return" and self.returned is not None:
            self.returned.append((state, names))

    def deciding(self, names: list[str]) -> list[str]:
        """The variables that a reader can say so that these are known."""
        causes = [self.state.causes.get("@" if name.isdecimal() else name) or [name] for name in names]
        return list(dict.fromkeys(cause for names_of_one in causes for cause in names_of_one))

    def _run_case_statement(self, node: Node) -> Outcome:
        value = node.child_by_field_name("value")
        text = self.expansion.one_word(text_of(value)) if value is not None else ""
        items = [child for child in node.named_children if child.type == "case_item"]
        goes_on, outcome = False, Outcome()
        for number, item in enumerate(items):
            patterns, body = case(item)
            self.expansion.check_groups(patterns)
            wanted = [self.expansion.pattern(one) for one in patterns]
            unknown_texts = [one for one in (text, *wanted) if is_unknown(one)]
            known = [one for one in wanted if text not in unknown_texts and one not in unknown_texts]
            if goes_on or any(self.expansion.glob(one).fits(text) for one in known):
                outcome, sign = self.run_all(body), item.children[-1].type
                if outcome.flow or sign not in (";&", ";;&"):
                    return outcome
                goes_on = sign == ";&"
            elif unknown_texts:
                self.undecided = [name for one in unknown_texts for name in unknown_names(one)]
                return self._any_case(items[number:], node)
        return outcome

    def _any_case(self, items: list[Node], node: Node) -> Outcome:
        bodies = [lambda item=item: self.run_all(case(item)[1]) for item in items]
        takes_all = any("*" in case(item)[0] for item in items)
        return self.forked([*bodies, *([] if takes_all else [Outcome])], self.line(node))

"""Generate a task's problems: sample until enough are new, of the wanted split, and fit for a problem.

A task's `problems.py` says what a candidate is and what makes a problem of it. Here is what all of them share: seed,
split, what counts as new, and the errors for unknown names and for too few problems.

    sampler = ProblemSampler("maze", split, seed)

    def attempt(_: str) -> Problem | None:
        maze = sample_maze(width, height, obstacles, sampler.rng)
        if not sampler.in_split(identity(maze)) or not sampler.is_new(identity(maze)) or not maze.shortest():
            return None
        return sampler.problem(maze.sentence(), maze.shortest(), maze.meta())

    return sampler.generate(rows, attempt, tries=20_000)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from system.errors import UserError
from system.unknown_names import unknown
from tasks.problems import SPLITS, Problem, generated_id, split_of


def check_names(task: str, what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """UserError(code="unknown-name") unless a generator's names of this sort, such as its wording, are known."""
    for name in names:
        if name not in known:
            raise unknown(f"{what} of {task}", name, known)


def in_turn(kinds: list[Any], _: int) -> Any:
    """The first kind, which then stands last."""
    kinds.append(kinds.pop(0))
    return kinds[-1]


class ProblemSampler:
    """Samples distinct problems of one split; the same for the same task, split and seed.

    Attributes:
        rng: of every choice.
    """

    def __init__(self, task: str, split: str, seed: int, *, stream: str = "") -> None:
        """Begin a random stream, named by the task or by `stream`; UserError for an unknown split."""
        check_names(task, "split", [split], SPLITS)
        self.task, self.split = task, split
        self.rng = random.Random(f"{stream or task}/{split}/{seed}")
        self._seen: set[str] = set()

    def in_split(self, identity: str) -> bool:
        """Whether what a problem asks, whatever its wording, belongs to the split."""
        return split_of(identity) == self.split

    def is_new(self, identity: str) -> bool:
        """Whether this is asked for the first time."""
        new = identity not in self._seen
        self._seen.add(identity)
        return new

    def problem(self, question: str, answer: str, meta: dict[str, Any], *, group: str = "") -> Problem:
        """A problem, its id made from its question; `group` stands before the split in the id."""
        prefix = f"{group}-{self.split}" if group else self.split
        return Problem(generated_id(prefix, question), self.task, question, answer, meta)

    def generate(
        self,
        rows: int,
        attempt: Callable[[Any], Problem | None],
        kinds: Sequence[Any] = ("",),
        *,
        tries: int,
        choose: Callable[[list[Any], int], Any] = in_turn,
        go_on: bool = False,
        hint: str = "",
    ) -> list[Problem]:
        """`rows` problems.

        Args:
            rows: how many.
            attempt: samples a candidate of a kind; a problem, or None where it is not fit for one.
            kinds: of problems; one nameless kind by default.
            tries: attempts at one more problem of a kind before there counts as none.
            choose: the kind of the next problem, of those that are left, given how many problems there are.
            go_on: with the other kinds, where there are no more problems of one.
            hint: what to ask for instead, besides fewer rows.

        Raises:
            UserError: there are not so many problems.
        """
        left, problems = list(kinds), list[Problem]()
        while len(problems) < rows:
            kind = choose(left, len(problems))
            problem = next((problem for _ in range(tries) if (problem := attempt(kind))), None)
            if problem is not None:
                problems.append(problem)
                continue
            left.remove(kind)
            if not left or not go_on:
                raise self._too_few(len(problems), rows, hint)
        return problems

    def first(self, rows: int, problems: Iterable[Problem | None], *, hint: str = "") -> list[Problem]:
        """The first `rows` of some problems; None is left out.

        Raises:
            UserError: there are not so many.
        """
        chosen = list(islice(filter(None, problems), rows))
        if len(chosen) < rows:
            raise self._too_few(len(chosen), rows, hint)
        return chosen

    def _too_few(self, problems: int, rows: int, hint: str) -> UserError:
        return UserError(
            f"the task {self.task} has only {problems:,} such problems in the split {self.split}, not {rows:,}: ask "
            f"for fewer rows{f', or {hint}' if hint else ''}",
            code="too-few-problems",
            task=self.task,
            problems=problems,
            rows=rows,
        )

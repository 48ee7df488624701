"""The base class of every task, `Task`: one kind of problem whose answers a program can judge.

Grading, rewards, reports and demo models ask this object, and know no task by name. A folder `tasks/<name>/` is a task
if it has a `task.yaml` (tasks/task_yaml.py). Its package defines

    TASK = Countdown("countdown")

and may hold more modules: row converters of data sets, the verifier, demo traces.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, cast

from system.errors import UserError

if TYPE_CHECKING:
    from tasks.problems import Problem
    from tasks.prompts import Prompt
    from tasks.reasoning_steps import Step


class Grader(NamedTuple):
    """A named way of grading a task's answers.

    `judge` is the dotted name of a function (gold, answer, meta) -> verdict for the answers that `Task.verify` leaves
    undecided. It may take long or exhaust memory: it runs in worker processes that can be killed. If its module has a
    function `warm_up`, every worker calls it once.
    """

    judge: str | None = None
    package: str | None = None  # its version is stated with the verdicts
    extraction: str | None = None  # replaces the protocol's rule for answers without a box


@dataclass(frozen=True)
class Traces:
    """What the demo base model of a task is trained on: the functions of these names in its module `demo_traces`.

    Attributes:
        Habits: made from `demo.habits` of task.yaml.
        completion: of a problem, a prompt, habits and a random generator: what follows the rendered prompt, which is a
            trace and its answer.
        problems: training problems, given `seed` and `demo.problems` of task.yaml; by default the task's generator's.
        strata: the group of a problem, as traces are sampled from all groups equally often; by default there is one.
        phrases: texts that become one token each, given `demo.problems` of task.yaml; by default none.
    """

    Habits: Callable[..., Any]
    completion: Callable[[Problem, Prompt, Any, random.Random], str]
    problems: Callable[..., list[Problem]]
    strata: Callable[[Problem], Any] = lambda problem: ""
    phrases: Callable[[Mapping[str, Any]], Sequence[str]] = lambda problems: ()


class Game(Protocol):
    """The module of a task whose answers are moves: what a move is worth, to its player, from 0 to 1.

    `meta` is the problem's; KeyError, TypeError or ValueError if it describes no position.
    """

    def read_move(self, answer: str, meta: Mapping[str, Any]) -> Any | None:
        """The legal move that an answer states; None if it states none."""

    def value(self, move: Any, meta: Mapping[str, Any]) -> float | None:
        """With perfect play afterwards: 1 win, 0.5 draw, 0 loss; None where the position is not solved."""

    def win_rate(self, move: Any, meta: Mapping[str, Any], count: int, rng: random.Random) -> float:
        """The mean of `count` random playouts; a draw counts half."""


class Task(ABC):
    """One task; subclasses override what is special about theirs. Only `verify` has to be there.

    Attributes:
        name: the folder's name.
        answer_format: where a completion states its answer, after the thinking part: `boxed`, the last box, else by the
            protocol's extraction rule; `tagged`, the last complete <answer> tag, else the last box.
        graders: by name, for the answers that `verify` leaves open or judges by other rules; for another name, or the
            empty one, `verify` judges by the task's own rules.
        own_grader: how the task itself grades where another task's grader is named, such as the one by default.
        judged_meta: keys of a problem's `meta` that judges read.
        same_options: whether an answer means another thing where the question has its options in another order: it is
            the letter of one, which may also stand after a box without one.
        version: of the verdicts; raised with every change that changes any, so that stored samples are graded again.
    """

    answer_format: Literal["boxed", "tagged"] = "boxed"
    graders: ClassVar[Mapping[str, Grader]] = {}
    own_grader: ClassVar[Grader] = Grader()
    judged_meta: Sequence[str] = ()
    same_options: bool = False
    version: int = 1

    def __init__(self, name: str) -> None:
        """Name the task as its folder is named."""
        self.name = name
        self._modules: dict[str, ModuleType | None] = {}

    @abstractmethod
    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str | None:
        """Judge an extracted answer in bounded time, whatever a model wrote.

        Args:
            answer: the answer, as extracted from the completion.
            gold: the problem's answer.
            meta: what else the problem says.
            grader: a name in `graders`; any other stands for the task's own rules.

        Returns:
            `correct`, `wrong`, `format_error` (not readable as an answer) or `ungradable` (the problem is unusable);
            None leaves it to the grader's judge.
        """

    def is_multi_answer(self, gold: str, meta: Mapping[str, Any]) -> bool:
        """Whether the problem has several answers, which may stand in several boxes."""
        return bool(meta.get("is_multiple_answer"))

    def level(self, meta: Mapping[str, Any]) -> str | None:
        """The level of difficulty of a problem with this `meta`, as run files name it; None if it states none."""
        return None if meta.get("level") is None else str(meta["level"]).removeprefix("Level ")

    def without_instruction(self, question: str) -> str:
        """The part of a question that other harnesses ask, too: their generations are matched by it."""
        return question

    def canonical_answer(self, answer: str) -> str:
        """One spelling for answers that differ only in writing; in a majority vote they are one answer."""
        return " ".join(answer.split())

    def generate(self, *, rows: int, split: str, seed: int, **arguments: Any) -> list[Problem]:
        """Make problems, for data sets with `generate:`; by default `generate` of the folder's module `problems`.

        Args:
            rows: how many.
            split: `train` or `test`, which share no problem.
            seed: of all draws; the same arguments give the same problems.
            arguments: the task's own.

        Raises:
            UserError: the task has no generator, an argument is out of range, or there are not enough problems.
        """
        module = self._module("problems")
        if module is None:
            raise UserError(
                f"the task {self.name} has no generator: its data sets need `hub` or `files`",
                code="task-without-generator",
                task=self.name,
            )
        problems: list[Problem] = module.generate(rows=rows, split=split, seed=seed, **arguments)
        return problems

    def check_steps(self, completion: str, problem: Problem) -> list[Step] | None:
        """Check the reasoning before an answer; by default `check` of the folder's module `steps`.

        Args:
            completion: the assistant's turn.
            problem: what it answers.

        Returns:
            One step for each line of the reasoning: right, wrong or not checkable. None if the task checks none, or the
            problem is unusable.
        """
        module = self.step_module()
        steps: list[Step] | None = module.check(completion, problem) if module else None
        return steps

    def step_module(self) -> ModuleType | None:
        """The module that checks steps: `check`, and RIGHT_HABITS, the habits of demo traces without a fault."""
        return self._module("steps")

    def picture(self, answer: str, problem: Problem) -> str | None:
        """An SVG picture of an answer; by default `plot_answer` of the folder's module `picture`, and None without one.

        Args:
            answer: as extracted from a completion.
            problem: what it answers.
        """
        module = self.picture_module()
        drawn: str | None = module.plot_answer(answer, problem) if module else None
        return drawn

    def picture_module(self) -> ModuleType | None:
        """The module that draws answers, if the task has one."""
        return self._module("picture")

    @property
    def traces(self) -> Traces:
        """The demo traces: from the folder's module `demo_traces`; without it, from its `__init__.py`."""
        module = self._module("demo_traces") or importlib.import_module(f"tasks.{self.name}")
        own = {
            field.name: getattr(module, field.name)
            for field in fields(Traces)
            if callable(getattr(module, field.name, None))
        }
        return Traces(**{"problems": partial(self.generate, split="train"), **own})

    @property
    def game(self) -> Game:
        """The folder's module `game`; UserError without one."""
        module = self._module("game")
        if module is None:
            raise UserError(
                f"the answers of the task {self.name} are no moves: use another reward",
                code="task-without-moves",
                task=self.name,
            )
        return cast(Game, module)

    def _module(self, name: str) -> ModuleType | None:
        if name not in self._modules:
            module = f"tasks.{self.name}.{name}"
            self._modules[name] = importlib.import_module(module) if importlib.util.find_spec(module) else None
        return self._modules[name]

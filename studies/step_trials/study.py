"""How well steps are checked: false alarms on right traces, and misses of one planted fault.

    crosszero study step_trials --traces 1000       # every task that checks steps; seconds

The traces are the demo traces of a task without slips. In a second set one number or word of one line is changed. A
miss is a fault that is not found, or not first, at its line.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from system.command_line import argument_parser
from system.errors import run_command
from tasks import prompts, reasoning_steps, registry, task_yaml
from tasks.problems import Problem
from tasks.task import Task

MOST_PROBLEMS = 400  # that traces are drawn from
_OTHER = {"knight": "knave", "yes": "no", "fits": "fails"}
_OTHER |= {word: other for other, word in _OTHER.items()}


class Trial(NamedTuple):
    """A task's trials: of `traces` of each kind, those with a false alarm, and those whose fault was missed."""

    task: str
    traces: int
    lines: int  # of the right traces
    checkable: int  # of these lines
    false_alarms: int
    missed: int


def right_traces(task: Task, count: int, seed: int) -> Iterator[tuple[Problem, str]]:
    """Problems with a trace that has no fault.

    Args:
        task: one that checks steps and has demo traces.
        count: how many.
        seed: of the problems and traces.
    """
    demo, rng = task_yaml.settings(task.name)["demo"], random.Random(seed)
    wanted = dict(demo["problems"])
    if "rows" in wanted:
        wanted["rows"] = min(MOST_PROBLEMS, wanted["rows"])
    habits = task.traces.Habits(
        **{**demo["habits"], **demo["skill"], **getattr(task.step_module(), "RIGHT_HABITS", {})}
    )
    problems = task.traces.problems(seed=seed, **wanted)
    for _ in range(count):
        problem = rng.choice(problems)
        prompt = prompts.load(rng.choice(demo["prompts"]))
        yield problem, task.traces.completion(problem, prompt, habits, rng)


def plant(
    completion: str, checked_steps: list[reasoning_steps.Step], rng: random.Random, others: Mapping[str, str] = _OTHER
) -> tuple[str, int] | None:
    """The completion with one number or word of one checkable line changed, and that line; None if none can be.

    Args:
        completion: a right trace.
        checked_steps: its steps.
        rng: chooses.
        others: by word, the one that makes it wrong.
    """
    changeable = re.compile(rf"\d+|\b(?:{'|'.join(others)})\b")
    checkable = [
        step for step in checked_steps if step.verdict == reasoning_steps.RIGHT and changeable.search(step.text)
    ]
    if not checkable:
        return None
    step = rng.choice(checkable)
    match = rng.choice(list(changeable.finditer(step.text)))
    word = match.group()
    changed = others.get(word) or str(rng.choice([n for n in range(10 if int(word) < 10 else 100) if n != int(word)]))
    text = completion.split("\n")
    text[step.line] = text[step.line].replace(
        step.text, step.text[: match.start()] + changed + step.text[match.end() :]
    )
    return "\n".join(text), step.line


def trial(name: str, count: int, seed: int = 0) -> Trial:
    """Check `count` right traces and as many with a planted fault.

    Args:
        name: of a task that checks steps.
        count: of each kind.
        seed: of all draws.
    """
    task, rng = registry.get(name), random.Random(seed)
    counts = dict.fromkeys(("lines", "checkable", "false_alarms", "missed"), 0)
    for problem, completion in right_traces(task, count, seed):
        checked_steps = task.check_steps(completion, problem) or []
        counts["lines"] += len(checked_steps)
        counts["checkable"] += sum(step.verdict != reasoning_steps.NOT_CHECKABLE for step in checked_steps)
        counts["false_alarms"] += reasoning_steps.first_wrong(checked_steps) is not None
        planted = plant(completion, checked_steps, rng, getattr(task.step_module(), "OTHER_WORDS", _OTHER))
        wrong = reasoning_steps.first_wrong(task.check_steps(planted[0], problem) or []) if planted else None
        counts["missed"] += planted is None or wrong is None or wrong.line != planted[1]
    return Trial(name, count, **counts)


def tasks_with_steps() -> list[str]:
    """The tasks that check steps and have demo traces to check."""
    return [
        name
        for name in task_yaml.task_names()
        if registry.get(name).step_module() and "demo" in task_yaml.settings(name)
    ]


def trial_text(one: Trial) -> str:
    """A line for readers."""
    share = one.checkable / one.lines if one.lines else 0
    return (
        f"{one.task}: {share:.1%} of {one.lines:,} lines checkable; {one.false_alarms} of {one.traces:,} right traces "
        f"called wrong ({one.false_alarms / one.traces:.2%}); {one.missed} of {one.traces:,} planted faults missed "
        f"({one.missed / one.traces:.2%})"
    )


def main() -> None:
    """Command line: [--traces N] [--seed N]."""
    parser = argument_parser(__doc__)
    parser.add_argument("--traces", type=int, default=1000, help="of each kind, for each task")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name in tasks_with_steps():
        print(trial_text(trial(name, arguments.traces, arguments.seed)), flush=True)


if __name__ == "__main__":
    run_command(main)

"""Logic-RL's reward: verl/utils/reward_score/kk.py at 0863731, as the report quotes it in section 2.3.1."""

from __future__ import annotations

from collections.abc import Sequence

from recipes.rewards import Reward
from tasks import registry
from tasks.problems import Problem

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
FORMAT = 1.0  # or its negative
RIGHT, WRONG, UNPARSABLE = 2.0, -1.5, -2.0


def knights_knaves(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """Format plus answer: 3 if right, -0.5 if wrong, -1 if the answer cannot be read, -3 if the format is broken.

    The format is kept if each of the four tags stands in the assistant's turn exactly once, in order; anything may
    stand between them. The answer is read only then: everybody has to be called a knight or a knave once, and nobody
    else may be (the task's verifier).

    On purpose other than published: the turn is what the prompt begins plus what the model wrote, not what follows the
    first "Assistant:" anywhere, which a model can write itself; an answer of more than 5000 characters is unreadable.
    The value is None, and the verdict `ungradable`, where the problem does not say who is what.
    """
    return [_reward(completion, problem) for completion, problem in zip(completions, problems, strict=True)]


def _reward(completion: str, problem: Problem) -> Reward:
    answer = _tagged_answer(completion)
    verdict = registry.get(problem.task).verify(answer or "", problem.answer or "", problem.meta)
    if verdict == "ungradable":
        return Reward(None, verdict)
    if answer is None:
        return Reward(UNPARSABLE - FORMAT, "format_error", format_error=True)
    value = {"correct": RIGHT, "wrong": WRONG}.get(verdict or "", UNPARSABLE)
    return Reward(FORMAT + value, verdict)


def _tagged_answer(turn: str) -> str | None:
    """What stands in the answer tag; None if the format is broken."""
    places = [turn.find(tag) for tag in TAGS]
    if places != sorted(places) or any(turn.count(tag) != 1 for tag in TAGS):
        return None
    return turn[places[2] + len(TAGS[2]) : places[3]].strip()

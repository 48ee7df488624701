"""TinyZero's reward: verl/utils/reward_score/countdown.py at f36b1b8, with a parser where it has `eval`."""

from __future__ import annotations

from collections.abc import Sequence

from recipes.rewards import Reward
from tasks import registry
from tasks.problems import Problem

RIGHT, WELL_FORMED, NONE = 1.0, 0.1, 0.0
OPENING, CLOSING = "<answer>", "</answer>"


def countdown(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the answer uses each number exactly once and is within 1e-5 of the target; 0.1 for another answer; else 0.

    The answer is the last `<answer>…</answer>` on the last line, as published: a model that writes on in new lines
    after it gets 0. Where the published code would evaluate, ours differs on purpose:

    - Expressions are made of whole numbers, + - * / and brackets. `**`, `//` and `2.5` get 0.1 where `eval` would give
      their value, which for `9**9**9` it never does.
    - × and ÷ are read as * and /, where the published code gives 0.1.
    - An expression of more than 300 characters gets 0.1.
    - Arithmetic is exact, so that nothing but the target's neighbourhood is rounded.

    The value is None, and the verdict `ungradable`, where the problem has no numbers or target.
    """
    return [_reward(completion, problem) for completion, problem in zip(completions, problems, strict=True)]


def _reward(completion: str, problem: Problem) -> Reward:
    expression = _last_answer(completion.rpartition("\n")[2])
    verdict = registry.get(problem.task).verify(expression or "", problem.answer or "", problem.meta)
    if verdict == "ungradable":
        return Reward(None, verdict)
    if expression is None:
        return Reward(NONE, "format_error")
    return Reward(RIGHT if verdict == "correct" else WELL_FORMED, verdict)


def _last_answer(line: str) -> str | None:
    """Content of the last match of `<answer>(.*?)</answer>`, in time linear in the line, which the pattern's is not."""
    answer, at = None, line.find(OPENING)
    while at >= 0:
        end = line.find(CLOSING, at + len(OPENING))
        if end < 0:
            break
        answer = line[at + len(OPENING) : end].strip()
        at = line.find(OPENING, end + len(CLOSING))
    return answer

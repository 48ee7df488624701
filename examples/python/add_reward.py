"""A reward of your own: right answers, and a bonus for short ones.

    python -m examples.python.add_reward

A run file trains with it under `rewards`:

    rewards:
      - {function: recipes.rewards.correct, weight: 1.0}
      - {function: examples.python.add_reward.short, weight: 0.5, arguments: {limit: 200}}
"""

from collections.abc import Sequence

from recipes import rewards
from recipes.rewards import Reward
from tasks.problems import Problem


def short(completions: Sequence[str], problems: Sequence[Problem], *, limit: int) -> list[Reward]:
    """From 1 for an empty completion down to 0 for one of `limit` characters or more."""
    return [Reward(max(0.0, 1 - len(completion) / limit)) for completion in completions]


def main() -> None:
    """Print what the sum of both rewards pays."""
    entries = [
        {"function": "recipes.rewards.correct", "weight": 1.0},
        {"function": "examples.python.add_reward.short", "weight": 0.5, "arguments": {"limit": 200}},
    ]
    problem = Problem("p1", "math", "What is 6 times 7?", "42", {})
    completions = [r"\boxed{42}", r"Six sevens are forty-two, so the answer is \boxed{42}", r"\boxed{41}"]
    weighted = rewards.load(entries)
    each = rewards.each_reward(weighted, completions, [problem] * len(completions))
    for completion, parts in zip(completions, each, strict=True):
        print(f"{rewards.weighted_sum(weighted, parts).value:.3f}  {completion}")


if __name__ == "__main__":
    main()

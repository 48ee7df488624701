"""Countdown problems: a target, and numbers that reach it when every one of them is used once.

Sampled like the public set Countdown-Tasks-3to4, as far as its rows show: by the method of Stream of Search (Gandhi et
al., arXiv:2404.03683; github.com/kanishkg/stream-of-search, src/countdown.py at 9ec1f35). The count of numbers (3 or 4)
and the target (10 … 100) are uniform; numbers from 1 to 99 are sampled again until they reach the target through whole
numbers that are never negative. Small numbers reach more targets, so they are more frequent.

Training and held-out problems are disjoint: the split depends on a hash of the numbers, in any order, and the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem

TASK = "countdown"
TRIES = 20_000  # for one more problem of a target before there counts as none
WORDINGS = {
    "full": (  # TinyZero's question
        "Using the numbers [{numbers}], create an equation that equals {target}. You can use basic arithmetic "
        "operations (+, -, *, /) and each number can only be used once."
    ),
    "short": "Make {target} from {numbers}.",
}


def solve(numbers: Sequence[int], target: int) -> str | None:
    """An expression of all the numbers whose value is the target, such as `(3 - 1) * 7`; None if none exists.

    Every intermediate value is a whole number and not negative, as in the public set.
    """
    return _search([(number, str(number)) for number in numbers], target)


def _search(parts: list[tuple[int, str]], target: int) -> str | None:
    if len(parts) == 1:
        value, text = parts[0]
        return text if value == target else None
    for i, left in enumerate(parts):
        for j in range(i + 1, len(parts)):
            rest = [part for k, part in enumerate(parts) if k not in (i, j)]
            for joined in _combinations_of_two(left, parts[j]):
                if len(rest) == 0 and joined[0] != target:
                    continue
                expression = _search([*rest, joined], target)
                if expression is not None:
                    return expression
    return None


def _combinations_of_two(a: tuple[int, str], b: tuple[int, str]) -> Iterator[tuple[int, str]]:
    (large, small) = (a, b) if a[0] >= b[0] else (b, a)
    left, right = _in_brackets(large[1]), _in_brackets(small[1])
    yield large[0] + small[0], f"{left} + {right}"
    yield large[0] - small[0], f"{left} - {right}"
    yield large[0] * small[0], f"{left} * {right}"
    if small[0] and large[0] % small[0] == 0:
        yield large[0] // small[0], f"{left} / {right}"


def _in_brackets(text: str) -> str:
    return text if text.isdigit() else f"({text})"


def identity(numbers: Sequence[int], target: int) -> str:
    """What a problem asks, whatever the order of its numbers and its wording: splits share none."""
    return f"{sorted(numbers)} {target}"


def question_text(numbers: Sequence[int], target: int, wording: str = "full") -> str:
    """The problem in words; `wording` is a name in WORDINGS."""
    return WORDINGS[wording].format(numbers=", ".join(map(str, numbers)), target=target)


def generate(
    rows: int,
    split: str,
    seed: int,
    sizes: Sequence[int] = (3, 4),
    largest_number: int = 99,
    targets: Sequence[int] = (10, 100),
    wording: str = "full",
) -> list[Problem]:
    """`rows` distinct solvable problems of one split; the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of every choice.
        sizes: how many numbers a problem may have, all equally often.
        largest_number: numbers are from 1 to this.
        targets: the smallest and the largest target.
        wording: a name in WORDINGS.

    Raises:
        UserError: an unknown split or wording, or no more problems of that kind.
    """
    check_names(TASK, "wording", [wording], WORDINGS)
    sampler = ProblemSampler(TASK, split, seed)
    rng = sampler.rng

    def attempt(kind: tuple[int, int]) -> Problem | None:
        size, target = kind
        numbers = [rng.randint(1, largest_number) for _ in range(size)]
        name = identity(numbers, target)
        if not (sampler.in_split(name) and _solvable(tuple(sorted(numbers)), target) and sampler.is_new(name)):
            return None
        return sampler.problem(question_text(numbers, target, wording), str(target), {"nums": numbers})

    kinds = [(size, target) for size in sizes for target in range(targets[0], targets[1] + 1)]
    return sampler.generate(  # few small numbers reach a large target: then the other targets go on
        rows, attempt, kinds, tries=TRIES, choose=lambda left, _: rng.choice(left), go_on=True,
        hint="for more numbers and targets",
    )  # fmt: skip


@lru_cache(maxsize=2**16)  # small numbers are sampled again and again
def _solvable(numbers: tuple[int, ...], target: int) -> bool:
    return solve(numbers, target) is not None

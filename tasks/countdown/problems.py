"""Countdown problems: a target, and numbers that reach it when every one of them is used once.

Drawn like the public set Countdown-Tasks-3to4, as far as its rows show: by the method of Stream of Search (Gandhi et
al., arXiv:2404.03683; github.com/kanishkg/stream-of-search, src/countdown.py at 9ec1f35). The count of numbers (3 or 4)
and the target (10 … 100) are uniform; numbers from 1 to 99 are drawn again until they reach the target through whole
numbers that are never negative. Small numbers reach more targets, so they are more frequent.

Training and held-out problems are disjoint: the split depends on a hash of the numbers, in any order, and the target.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache

from system.errors import UserError
from tasks import problems as all_problems
from tasks.problems import SPLITS, Problem, generated_id

TASK = "countdown"
TRIES = 20_000  # draws of numbers for one target before it counts as exhausted
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
            for joined in _joined(left, parts[j]):
                if len(rest) == 0 and joined[0] != target:
                    continue
                found = _search([*rest, joined], target)
                if found is not None:
                    return found
    return None


def _joined(a: tuple[int, str], b: tuple[int, str]) -> Iterator[tuple[int, str]]:
    (large, small) = (a, b) if a[0] >= b[0] else (b, a)
    left, right = _bracketed(large[1]), _bracketed(small[1])
    yield large[0] + small[0], f"{left} + {right}"
    yield large[0] - small[0], f"{left} - {right}"
    yield large[0] * small[0], f"{left} * {right}"
    if small[0] and large[0] % small[0] == 0:
        yield large[0] // small[0], f"{left} / {right}"


def _bracketed(text: str) -> str:
    return text if text.isdigit() else f"({text})"


def split_of(numbers: Sequence[int], target: int) -> str:
    """The split that a problem belongs to, whatever the order of its numbers and its wording."""
    return all_problems.split_of(f"{sorted(numbers)} {target}")


def question(numbers: Sequence[int], target: int, wording: str = "full") -> str:
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
        seed: of all draws.
        sizes: how many numbers a problem may have, all equally often.
        largest_number: numbers are from 1 to this.
        targets: the smallest and the largest target.
        wording: a name in WORDINGS.

    Raises:
        UserError: an unknown split or wording, or no more problems of that kind.
    """
    if split not in SPLITS or wording not in WORDINGS:
        raise UserError(
            f"countdown has the splits {SPLITS} and the wordings {tuple(WORDINGS)}, not '{split}' and '{wording}'"
        )
    rng = random.Random(f"countdown/{split}/{seed}")
    kinds = [(size, target) for size in sizes for target in range(targets[0], targets[1] + 1)]
    seen: set[tuple[tuple[int, ...], int]] = set()
    problems: list[Problem] = []
    while len(problems) < rows:
        if not kinds:
            raise UserError(
                f"countdown has only {len(problems):,} problems with {list(sizes)} numbers up to {largest_number} and "
                f"targets from {targets[0]} to {targets[1]} ({split}): ask for fewer rows, or more numbers and targets"
            )
        size, target = kind = rng.choice(kinds)
        numbers = _draw(size, target, largest_number, split, seen, rng)
        if numbers is None:  # few small numbers reach it
            kinds.remove(kind)
            continue
        seen.add((tuple(sorted(numbers)), target))
        text = question(numbers, target, wording)
        problems.append(Problem(generated_id(split, text), TASK, text, str(target), {"nums": numbers}))
    return problems


def _draw(
    size: int, target: int, largest: int, split: str, seen: set[tuple[tuple[int, ...], int]], rng: random.Random
) -> list[int] | None:
    for _ in range(TRIES):
        numbers = [rng.randint(1, largest) for _ in range(size)]
        if split_of(numbers, target) != split or (tuple(sorted(numbers)), target) in seen:
            continue
        if _solvable(tuple(sorted(numbers)), target):
            return numbers
    return None


@lru_cache(maxsize=2**16)  # small numbers are drawn again and again
def _solvable(numbers: tuple[int, ...], target: int) -> bool:
    return solve(numbers, target) is not None

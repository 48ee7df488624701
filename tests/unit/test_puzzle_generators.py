"""Countdown and Knights and Knaves: what is generated is solvable in one way, disjoint, and like what is published."""

from __future__ import annotations

import ast
import math
from collections import Counter
from fractions import Fraction

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.run_file import ROOT
from tasks import dataset_specs, load_problems
from tasks.countdown import problems as countdown_problems
from tasks.countdown import verifier as countdown
from tasks.knights_knaves import problems as knights_knaves_problems
from tasks.knights_knaves import puzzles
from tasks.knights_knaves import verifier as knights_knaves
from tasks.knights_knaves.puzzles import Claim, Statement
from tasks.problems import split_of
from tests import needs
from tests.budgets import examples
from tests.user_errors import refused

MIRROR = ROOT.parent / "shared" / "data"
needs_mirror = needs.published(
    "train/countdown_train.parquet", "train/kk_3ppl_train.parquet", "train/kk_5ppl_train.parquet"
)
CONNECTIVES = {"and": "and", "or": "or", "->": "if", "<=>": "iff"}


def published(name: str) -> list[dict]:
    return pq.read_table(MIRROR / "train" / f"{name}.parquet").to_pylist()


def shares(counts: Counter) -> dict:
    total = sum(counts.values())
    return {key: count / total for key, count in counts.items()}


def alike(ours: Counter, theirs: Counter) -> bool:
    """Whether every share differs by less than five standard errors of the two samples together."""
    a, b = shares(ours), shares(theirs)
    n = 1 / sum(ours.values()) + 1 / sum(theirs.values())
    pooled = {key: (a.get(key, 0) + b.get(key, 0)) / 2 for key in {*a, *b}}
    return all(abs(a.get(key, 0) - b.get(key, 0)) < 5 * math.sqrt(p * (1 - p) * n) for key, p in pooled.items())


@examples("puzzles")
@given(
    st.integers(0, 10**6), st.sampled_from(["train", "test"]), st.sampled_from([[2], [3], [4], [3, 4]]),
    st.integers(10, 99), st.sampled_from(sorted(countdown_problems.WORDINGS)),
)  # fmt: skip
@pytest.mark.slow
def test_every_countdown_target_is_reachable(seed, split, sizes, largest, wording):
    for problem in countdown_problems.generate(3, split, seed, sizes, largest, (5, 50), wording):
        nums, target = problem.meta["nums"], int(problem.answer)
        expression = countdown_problems.solve(nums, target)
        assert countdown.verify(expression, nums, int(problem.answer)) == "correct"
        assert len(nums) in sizes and max(nums) <= largest and 5 <= target <= 50
        assert split_of(countdown_problems.identity(nums[::-1], target)) == split
        assert str(target) in problem.question and str(nums)[1:-1] in problem.question


def values(nums: tuple[Fraction, ...]) -> set[Fraction]:
    """All values of expressions of all the numbers, fractions and negative values on the way included."""
    if len(nums) == 1:
        return {nums[0]}
    reachable = set()
    for i, a in enumerate(nums):
        for j, b in enumerate(nums):
            if i != j:
                rest = tuple(n for k, n in enumerate(nums) if k not in (i, j))
                for value in (a + b, a - b, a * b, *([a / b] if b else [])):
                    reachable |= values((*rest, value))
    return reachable


@examples("puzzles")
@given(st.lists(st.integers(1, 12), min_size=2, max_size=3), st.integers(0, 40))
def test_what_the_countdown_solver_says_is_true(nums, target):
    expression = countdown_problems.solve(nums, target)
    if expression is not None:
        assert countdown.verify(expression, nums, target) == "correct"
    else:  # then it can only be reached through fractions or values below nothing
        whole = [a for a in nums if a > 0]
        assert target not in {sum(whole), math.prod(whole)}
    reachable = Fraction(target) in values(tuple(map(Fraction, nums)))
    assert reachable or expression is None


@pytest.mark.slow
@pytest.mark.long
def test_countdown_splits_are_disjoint_and_repeatable():
    arguments = {"sizes": [3], "largest_number": 20, "targets": [5, 50], "wording": "short"}
    train, test = (
        countdown_problems.generate(rows, split, 0, **arguments) for rows, split in ((4000, "train"), (500, "test"))
    )
    keys = [{(tuple(sorted(p.meta["nums"])), p.answer) for p in problems} for problems in (train, test)]
    assert [len(key) for key in keys] == [4000, 500]
    assert not keys[0] & keys[1]
    assert test == countdown_problems.generate(500, "test", 0, **arguments)
    assert test[:50] != countdown_problems.generate(50, "test", 1, **arguments)


def test_countdown_says_when_there_are_no_more():
    with refused("too-few-problems", task="countdown", rows=1000):
        countdown_problems.generate(1000, "train", 0, sizes=[2], largest_number=3, targets=[1, 3])
    with refused("unknown-name", name="validation"):
        countdown_problems.generate(1, "validation", 0)


@needs_mirror
@pytest.mark.slow
@pytest.mark.long
def test_countdown_is_distributed_like_the_published_set():
    theirs = [(row["nums"], row["target"]) for name in ("train", "test") for row in published(f"countdown_{name}")]
    generated = countdown_problems.generate(2000, "train", 0)
    ours = [(problem.meta["nums"], int(problem.answer)) for problem in generated]
    for what in (
        lambda nums, target: [len(nums)],
        lambda nums, target: [target // 10],
        lambda nums, target: [n // 10 for n in nums],
        lambda nums, target: [n // 5 for n in nums] if len(nums) == 3 else [],
        lambda nums, target: [min(n, 10) for n in nums] if len(nums) == 4 else [],
        lambda nums, target: [len(set(nums)) == len(nums)],
    ):
        assert alike(*(Counter(x for row in rows for x in what(*row)) for rows in (ours, theirs)))
    for rows in (ours, theirs):
        assert {len(nums) for nums, _ in rows} == {3, 4}
        assert (min(t for _, t in rows), max(t for _, t in rows)) == (10, 100)
        assert (min(n for nums, _ in rows for n in nums), max(n for nums, _ in rows for n in nums)) == (1, 99)
    reached = [countdown_problems.solve(nums, target) for nums, target in theirs[::50]]
    assert all(reached)


@st.composite
def puzzle(draw):
    people = draw(st.integers(2, 5))
    claim = st.builds(Claim, st.integers(0, people - 1), st.booleans())
    statement = st.sampled_from(sorted(puzzles.FORMS)).flatmap(
        lambda form: st.builds(Statement, st.just(form), st.tuples(*[claim] * (1 if form in ("is", "not") else 2)))
    )
    return draw(st.lists(statement, min_size=people, max_size=people))


@pytest.mark.slow
@examples("built text")
@given(puzzle(), st.sampled_from(puzzles.WORDINGS), st.randoms(use_true_random=False))
def test_puzzles_are_read_as_they_were_written(statements, wording, rng):
    names = rng.sample(puzzles.NAMES, len(statements))
    assert puzzles.read_question(puzzles.write_question(statements, names, wording, rng)) == (names, statements)


@pytest.mark.slow
@examples("built text")
@given(puzzle())
def test_in_a_solution_knights_and_only_they_speak_the_truth(statements):
    def truth(statement, knights):
        true = [knights[p] is k for p, k in statement.claims]
        table = {
            "is": true[0], "not": not true[0], "and": all(true), "or": any(true),
            "if": not (true[0] and not true[-1]), "iff": len(set(true)) == 1,
        }  # fmt: skip
        return table[statement.form]

    solutions = set(puzzles.solutions(statements))
    for number in range(2 ** len(statements)):
        knights = tuple(bool(number >> bit & 1) for bit in range(len(statements)))
        consistent = [truth(s, knights) for s in statements] == list(knights)
        assert consistent == (knights in solutions)


@pytest.mark.slow
@examples("puzzles")
@given(
    st.integers(0, 10**6), st.sampled_from(["train", "test"]), st.lists(st.integers(2, 8), min_size=1, max_size=3),
    st.sampled_from(puzzles.WORDINGS),
)  # fmt: skip
def test_every_puzzle_has_exactly_one_solution(seed, split, people, wording):
    for index, problem in enumerate(knights_knaves_problems.generate(4, split, seed, people, wording=wording)):
        names, statements = puzzles.read_question(problem.question)
        assert len(names) == len(set(names)) == people[index % len(people)] == problem.meta["people"]
        assert puzzles.solutions(statements) == [tuple(problem.meta["knights"])]
        assert knights_knaves.verify(problem.answer, names, problem.meta["knights"]) == "correct"
        assert split_of(knights_knaves_problems.identity(statements)) == split


@pytest.mark.slow
def test_puzzle_splits_share_no_puzzle_and_are_repeatable():
    arguments = {"people": [2, 3], "names": 8, "wording": "short"}
    train, test = (
        knights_knaves_problems.generate(rows, split, 0, **arguments)
        for rows, split in ((3000, "train"), (400, "test"))
    )
    said = [{tuple(puzzles.read_question(problem.question)[1]) for problem in problems} for problems in (train, test)]
    assert not said[0] & said[1]
    assert len({problem.question for problem in train + test}) == 3400
    assert test == knights_knaves_problems.generate(400, "test", 0, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"split": "dev"}, "unknown-name"),
        ({"wording": "long"}, "unknown-name"),
        ({"forms": ["xor"]}, "unknown-name"),
        ({"people": [1]}, "argument-out-of-range"),
        ({"people": [5], "names": 4}, "argument-out-of-range"),
        ({"forms": ["is", "not"]}, "too-few-problems"),  # two people who only say what one is cannot be told apart
    ],
)
def test_puzzles_say_what_is_wrong(arguments, code):
    with refused(code):
        knights_knaves_problems.generate(**{"rows": 1, "split": "train", "seed": 0, "people": [2], **arguments})


def translated(statement: tuple) -> Statement:
    """A statement of the published files in ours."""
    if statement[0] in ("telling-truth", "lying"):
        return Statement("is", (Claim(statement[1], statement[0] == "telling-truth"),))
    claims = tuple(translated(part).claims[0] for part in statement[1:])
    return Statement("not" if statement[0] == "not" else CONNECTIVES[statement[0]], claims)


@pytest.mark.slow
@needs_mirror
@pytest.mark.parametrize("people", [3, 5])
def test_every_published_puzzle_is_read_and_solved(people):
    rows = published(f"kk_{people}ppl_train") + published(f"kk_{people}ppl_test")
    assert len(rows) == 1000
    theirs, ours = Counter(), Counter()
    for row in rows:
        names, statements = puzzles.read_question(row["quiz"])
        assert names == row["names"]
        assert statements == [translated(s) for s in ast.literal_eval(row["statements"])]
        assert puzzles.solutions(statements) == [tuple(row["solution"])]
        theirs.update((s.form, *(claim.knight for claim in s.claims)) for s in statements)
    for problem in knights_knaves_problems.generate(2000, "train", 0, [people]):
        _, statements = puzzles.read_question(problem.question)
        ours.update((s.form, *(claim.knight for claim in s.claims)) for s in statements)
    assert alike(ours, theirs)


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("countdown_demo_train", "countdown_demo"),
        ("knights_knaves_2_train", "knights_knaves_2"),
        ("knights_knaves_3_train", "knights_knaves_3"),
    ],
)
@pytest.mark.slow
def test_the_demo_scale_trains_on_nothing_that_it_is_scored_on(train, test):
    questions = [
        {problem.question for problem in load_problems.load(dataset_specs.find(name), None)[0]}
        for name in (train, test)
    ]
    assert questions[0] and questions[1]
    assert not questions[0] & questions[1]

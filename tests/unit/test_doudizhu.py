"""Dou dizhu endgames: moves against another generator, the solver against brute force, playouts, rewards, pictures."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes import move_rewards, rewards
from tasks import registry
from tasks.doudizhu import cards, problems, solver
from tasks.doudizhu.problems import Position
from tasks.problems import Problem
from tests.budgets import examples
from tests.user_errors import refused

TASK = registry.get("doudizhu")
ORDER = "3456789TJQKA2BR"  # as rlcard and others write the ranks, B and R the jokers


def kind_of(hand: str) -> tuple[str, int] | None:
    """What some cards are, told from how often each letter occurs: written apart from the product's rule."""
    counted = sorted(Counter(hand).items(), key=lambda pair: (-pair[1], ORDER.index(pair[0])))
    pattern = "".join(str(count) for _, count in counted)
    rank = ORDER.index(counted[0][0]) if counted else -1
    if set(hand) == {"B", "R"} and len(hand) == 2:
        return "rocket", 0
    if pattern == "11111":
        straight = "".join(sorted(hand, key=ORDER.index)) in ORDER[: ORDER.index("2")]
        return ("straight", rank) if straight else None
    names = {"1": "solo", "2": "pair", "3": "trio", "31": "trio solo", "32": "trio pair", "4": "bomb"}
    return (names[pattern], rank) if pattern in names else None


def other_moves(hand: str, last: str) -> set[str]:
    """All moves: every part of the hand that is a combination and beats the last one; the empty one is a pass."""
    parts = {"".join(part) for size in range(len(hand) + 1) for part in itertools.combinations(hand, size)}
    if not last:
        return {part for part in parts if kind_of(part)}
    to_beat, moves = kind_of(last), {""}
    assert to_beat
    for part in parts:
        kind = kind_of(part)
        if kind is None:
            continue
        same = kind[0] == to_beat[0] and kind[1] > to_beat[1]
        bomb = kind[0] == "bomb" and to_beat[0] not in ("bomb", "rocket")
        if same or bomb or kind[0] == "rocket":
            moves.add(part)
    return moves


def letters(hand: cards.Cards) -> str:
    return "".join(ORDER[card] for card in hand)


def brute_force(mine: str, theirs: str, last: str) -> bool:
    """Whether the player to move wins, by walking the whole tree of the other generator, without any memory."""
    for move in other_moves(mine, last):
        left = mine
        for card in move:
            left = left.replace(card, "", 1)
        if not left or not brute_force(theirs, left, move):
            return True
    return False


@st.composite
def positions(draw: st.DrawFn, most: int) -> Position:
    return problems.sample_position(draw(st.integers(1, most)), random.Random(draw(st.integers(0, 10**9))))


def few_ranks(seed: int) -> cards.Cards:
    """Five cards of few ranks, so that triples and bombs are common."""
    rng = random.Random(seed)
    ranks = rng.sample(range(15), 3)
    deck = [card for card in cards.DECK if card in ranks]
    return tuple(sorted(rng.sample(deck, min(5, len(deck)))))


@examples("puzzles")
@given(positions(5), st.integers(0, 10**6))
def test_legal_moves_are_those_of_another_generator(position: Position, seed: int) -> None:
    straight = tuple(range(seed % 9, seed % 9 + 5))
    for hand, last in ((position.mine, position.last), (few_ranks(seed), position.last), (few_ranks(seed), ()),
                       (straight, ()),
                       (few_ranks(seed + 1), max(cards.possible_leads(few_ranks(seed)), key=len))):  # fmt: skip
        moves = cards.legal_moves(hand, last)
        assert len(moves) == len(set(moves))
        assert {letters(move) for move in moves} == other_moves(letters(hand), letters(last))


def test_every_kind_is_met_and_beaten_as_the_rules_say() -> None:
    kinds = {cards.combination(move) for seed in range(300) for move in cards.possible_leads(few_ranks(seed))}
    assert {kind.kind for kind in kinds if kind} == {"single", "pair", "triple", "triple with one",
                                                     "triple with a pair", "bomb", "rocket"}  # fmt: skip
    straights = [tuple(range(low, low + 5)) for low in range(10)]
    assert [cards.combination(hand) is not None for hand in straights] == [True] * 8 + [False] * 2
    bomb, low, rocket = (3,) * 4, (1,) * 4, cards.ROCKET
    assert cards.beats(bomb, low) and not cards.beats(low, bomb) and cards.beats(low, straights[7])
    assert cards.beats(rocket, bomb) and not cards.beats(bomb, rocket) and not cards.beats((14,), (5, 5))


@examples("puzzles")
@given(positions(3))
def test_the_solver_agrees_with_brute_force(position: Position) -> None:
    mine, theirs, last = position
    assert solver.wins(mine, theirs, last) == brute_force(letters(mine), letters(theirs), letters(last))


@pytest.mark.slow
def test_every_position_of_a_small_game_agrees_with_brute_force() -> None:
    deck = [0, 0, 0, 1, 1, 2, 13, 14]
    hands = sorted({tuple(sorted(hand)) for size in (1, 2, 3) for hand in itertools.combinations(deck, size)})
    checked = 0
    for mine, theirs in itertools.product(hands, repeat=2):
        if not Counter(mine + theirs) <= Counter(deck):
            continue
        for last in ((), (0,), (0, 0)):
            checked += 1
            assert solver.wins(mine, theirs, last) == brute_force(letters(mine), letters(theirs), letters(last))
    assert checked > 1000


@examples("costly")
@given(positions(4))
def test_playouts_estimate_random_play(position: Position) -> None:
    move = position.legal()[-1]
    wanted = solver.random_play_after(position.mine, position.theirs, move)
    estimate = solver.playout_win_rate(position.mine, position.theirs, move, 400, random.Random(0))
    assert abs(estimate - wanted) <= 6 * (max(wanted * (1 - wanted), 0.01) / 400) ** 0.5
    assert estimate == solver.playout_win_rate(position.mine, position.theirs, move, 400, random.Random(0))


def test_random_play_by_hand() -> None:
    # 3 and 4 against 5: the player who leads plays one of two singles, the other 5 beats either and wins, or passes.
    assert solver.random_play((0, 1), (2,), ()) == 0.5
    assert solver.random_play((2,), (0, 1), ()) == 1.0
    assert not solver.wins((0, 1), (2,), ()) and solver.wins((0, 0), (2,), ())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("2", "correct"), ("3", "wrong"), ("3 3", "wrong"), ("pass", "wrong"), ("PASS", "wrong"), ("K K", "wrong"),
        ("", "format_error"), ("two", "format_error"), ("2 2", "wrong"), ("3,3", "wrong"), ("9" * 999, "format_error"),
        ("K", "wrong"), ("2,", "correct"),
    ],
)  # fmt: skip
def test_answers(answer: str, expected: str) -> None:
    # After a pass the opponent leads the pair of fours and is out.
    meta = {"mine": "3 3 2", "theirs": "4 4", "last": "A"}
    assert TASK.verify(answer, "2", meta) == expected


def test_unusable_positions_are_ungradable() -> None:
    good = {"mine": "3 3 2", "theirs": "4 5", "last": "pass"}
    for change in ({"mine": "pass"}, {"mine": "3 3 3 3 3"}, {"theirs": "x"}, {"last": "3 4"}, {"mine": None}):
        meta = {**good, **change}
        assert TASK.verify("3", "3", meta) == "ungradable"
        assert TASK.picture("3", Problem("", "doudizhu", "", "3", meta)) is None
        assert move_rewards.exact(["<answer>3</answer>"], [Problem("", "doudizhu", "", "3", meta)])[0].value is None
    assert TASK.verify("3", "3", {}) == "ungradable"


@pytest.mark.slow
def test_problems_are_won_but_not_by_every_move_and_splits_are_disjoint() -> None:
    sets = {split: problems.generate(40, split, 0) for split in ("train", "test")}
    assert not {p.question for p in sets["train"]} & {p.question for p in sets["test"]}
    assert sets["train"] == problems.generate(40, "train", 0) != problems.generate(40, "train", 1)
    for problem in sets["train"]:
        verdicts = {
            TASK.verify(cards.write_cards(move), "", problem.meta) for move in Position.from_meta(problem.meta).legal()
        }
        assert verdicts == {"correct", "wrong"}
        assert TASK.verify(problem.answer or "", problem.answer or "", problem.meta) == "correct"
        drawn = TASK.picture(problem.answer or "", problem)
        assert drawn and ElementTree.fromstring(drawn).tag.endswith("svg") and "wins" in drawn
        assert "not legal" in (TASK.picture("BJ BJ <b>", problem) or "")
    for wrong, code in (
        ({"split": "dev"}, "unknown-name"), ({"wording": "long"}, "unknown-name"),
        ({"cards": 6}, "argument-out-of-range"), ({"rows": 10**4, "cards": 1}, "too-few-problems"),
    ):  # fmt: skip
        with refused(code):
            problems.generate(**{"rows": 1, "split": "train", "seed": 0, **wrong})


def test_move_rewards() -> None:
    meta = {"mine": "3 3 2", "theirs": "4 4", "last": "A"}
    problem = rewards.problem_from_columns("doudizhu", "2", json.dumps(meta))
    texts = ["<answer>2</answer>", "<answer>pass</answer>", "<answer>K</answer>", "2"]
    asked_each = [problem] * len(texts)
    assert [one.value for one in move_rewards.exact(texts, asked_each, illegal=-1.0)] == [1.0, 0.0, -1.0, -1.0]
    assert [one.value for one in move_rewards.legal(texts, asked_each)] == [1.0, 1.0, 0.0, 0.0]
    assert [one.format_error for one in move_rewards.exact(texts, asked_each)] == [False, False, False, True]
    rough = [
        move_rewards.playouts(texts[1:2] * 30, [problem] * 30, count=1),
        move_rewards.playouts(texts, asked_each, count=8),
    ]
    assert {one.value for one in rough[0]} == {0.0, 1.0}  # every completion has playouts of its own
    assert [one.value for one in rough[1]][2:] == [0.0, 0.0]
    with refused("argument-out-of-range"):
        move_rewards.playouts(texts, asked_each, count=0)
    with refused("task-without-moves"):
        move_rewards.exact([r"\boxed{1}"], [rewards.problem_from_columns("arithmetic", "1", "{}")])

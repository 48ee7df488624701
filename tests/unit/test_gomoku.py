"""Gomoku: the solver against plain minimax, playouts against single ones, problems by their rules, rewards."""

from __future__ import annotations

import itertools
import json
import random
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes import move_rewards, rewards
from tasks import registry
from tasks.gomoku import board as boards
from tasks.gomoku import engine, playouts, problems, solver
from tasks.gomoku.board import Board
from tasks.problems import Problem
from tests.budgets import examples
from tests.user_errors import refused

TASK = registry.get("gomoku")


def rows_of(text: str, size: int, need: int) -> set[str]:
    """Who has a row, by looking along every line of the text's board: written apart from the product's masks."""
    grid = [text[start : start + size] for start in range(0, size * size, size)]
    along = [*grid, *("".join(column) for column in zip(*grid, strict=True))]
    for shift in range(-size + 1, size):
        along.append("".join(grid[y][y + shift] for y in range(size) if 0 <= y + shift < size))
        along.append("".join(grid[y][size - 1 - y - shift] for y in range(size) if 0 <= size - 1 - y - shift < size))
    return {mark for mark in "XO" if any(mark * need in line for line in along)}


def from_text(text: str, size: int, need: int) -> Board:
    return Board.from_meta(
        {"size": size, "need": need, "board": "/".join(text[y * size : y * size + size] for y in range(size))}
    )


@cache
def minimax(text: str, size: int, need: int) -> int:
    """What a position is worth to the player to move, by the whole tree."""
    if rows_of(text, size, need):
        return -1
    if "." not in text:
        return 0
    mark = "X" if text.count("X") == text.count("O") else "O"
    places = [cell_number for cell_number, cell in enumerate(text) if cell == "."]
    return max(-minimax(text[:cell_number] + mark + text[cell_number + 1 :], size, need) for cell_number in places)


def reachable(size: int, need: int) -> set[str]:
    """Every position that play can reach, ended games left out."""
    known, new = set[str](), {"." * size * size}
    while new:
        known |= new
        marks = {text: "X" if text.count("X") == text.count("O") else "O" for text in new}
        after = {text[:cell_number] + marks[text] + text[cell_number + 1 :]
                 for text in new for cell_number, cell in enumerate(text) if cell == "."}  # fmt: skip
        new = {text for text in after if not rows_of(text, size, need)}
    return known


def test_every_position_of_three_by_three_agrees_with_minimax() -> None:
    positions = reachable(3, 3)
    assert len(positions) == 4536  # of 5,478 the 942 that somebody has won are left out
    for text in positions:
        position = from_text(text, 3, 3)
        assert solver.solver(3, 3).value(position.own, position.other) == minimax(text, 3, 3)


@st.composite
def positions(draw: st.DrawFn, size: int, need: int, least: int, most: int) -> Board:
    return problems.sample_board(size, need, "solved", (least, most), random.Random(draw(st.integers(0, 10**9))))


@examples("costly")
@given(positions(4, 3, 10, 15) | positions(4, 4, 10, 15) | positions(5, 4, 19, 24))
def test_positions_of_larger_boards_agree_with_minimax(position: Board) -> None:
    text = position.stones()
    if not rows_of(text, position.size, position.need):
        value = solver.Solver(position.size, position.need).value(position.own, position.other)
        assert value == minimax(text, position.size, position.need)


@examples("costly")
@given(positions(5, 4, 13, 24), st.integers(0, 7))
def test_symmetric_positions_are_worth_the_same(position: Board, which: int) -> None:
    places = boards.symmetries(5)[which]
    turned = from_text("".join(position.stones()[cell] for cell in places), 5, 4)
    assert turned.canonical() == position.canonical() and Board.from_meta(position.meta()) == position
    if not rows_of(position.stones(), 5, 4):
        values = [solver.Solver(5, 4).value(one.own, one.other) for one in (position, turned)]
        assert values[0] == values[1]


def played(position: Board, order: list[int]) -> float:
    """One playout, stone by stone: the result for the player who moved before it."""
    text = list(position.stones())
    for turn, cell in enumerate(order):
        mark = "XO"[("XO".index(position.mark) + turn) % 2]
        text[cell] = mark
        if rows_of("".join(text), position.size, position.need):
            return 0.0 if mark == position.mark else 1.0
    return 0.5


@examples("costly")
@given(positions(5, 4, 4, 20) | positions(7, 5, 16, 34), st.integers(0, 10**6))
def test_playouts_at_once_are_those_played_one_by_one(position: Board, seed: int) -> None:
    if rows_of(position.stones(), position.size, position.need):
        return
    empty, rng = position.empty(), random.Random(seed)
    orders = [rng.sample(empty, len(empty)) for _ in range(8)]
    turns = np.array([[order.index(cell) + 1 for cell in empty] for order in orders])
    assert playouts.results(position, turns).tolist() == [played(position, order) for order in orders]


def test_win_rates_repeat_and_count_a_game_that_is_over() -> None:
    over = from_text("XXXX.OOO.." + "." * 15, 5, 4)
    assert playouts.win_rate(over, 8, random.Random(0)) == 1.0
    open_board = from_text("X...." + "." * 20, 5, 4)
    rates = [playouts.win_rate(open_board, 300, random.Random(seed)) for seed in (0, 0, 1)]
    assert rates[0] == rates[1] != rates[2] and 0.3 < rates[0] < 0.9


def test_the_engine_sees_wins_and_threats_within_its_budget() -> None:
    board = from_text("XXX..OO..." + "." * 15, 5, 4)  # O to move
    assert board.mark == "O"
    block, other = (engine.win_rate(board.after(boards.read_cell(cell, 5) or 0), 200) for cell in ("D1", "E5"))
    assert block > 0.05 > other
    won = from_text("XXX..OOO.." + "." * 15, 5, 4)
    assert engine.win_rate(won.after(3), 50) > 0.99
    assert 0.0 <= engine.win_rate(from_text("." * 225, 15, 5).after(112), 30) <= 1.0
    search = engine._Search(5)
    with pytest.raises(engine._SpentError):
        search.score(from_text("X" + "." * 24, 5, 4), 4, -1e9, 1e9)
    assert search.left == 0


@pytest.mark.slow
@pytest.mark.parametrize(("size", "stones"), [(9, (12, 20)), (15, (12, 30))])
def test_single_moves_are_right_by_looking_at_what_follows(size: int, stones: tuple[int, int]) -> None:
    generated = problems.generate(9, "test", 0, size=size, need=5, kinds=["win", "four", "three"], stones=stones)
    assert [problem.meta["kind"] for problem in generated] == ["win", "four", "three"] * 3

    def wins(text: str, mark: str) -> set[int]:
        """The cells at which a player has five at once."""
        places = [cell_number for cell_number, cell in enumerate(text) if cell == "."]
        return {
            cell_number
            for cell_number in places
            if mark in rows_of(text[:cell_number] + mark + text[cell_number + 1 :], size, 5)
        }

    for problem in generated:
        position = Board.from_meta(problem.meta)
        text, mark = position.stones(), position.mark
        other = "O" if mark == "X" else "X"
        right = {boards.read_cell(name, size) for name, value in problem.meta["values"].items() if value == 1.0}
        if problem.meta["kind"] == "win":
            assert right == wins(text, mark)
        elif problem.meta["kind"] == "four":
            assert not wins(text, mark) and right == wins(text, other) and len(right) == 1
        else:
            assert not wins(text, mark) and not wins(text, other)
            wrong = [cell for cell in position.empty() if cell not in right]
            for cell in [*sorted(cell for cell in right if cell is not None)[:3], *wrong[:3]]:
                left = [move for move in position.empty() if move != cell]
                wins_after = [boards.winning_cells(position.other | 1 << move, position.own | 1 << cell, size, 5)
                              for move in left]  # fmt: skip
                assert any(generated.bit_count() > 1 for generated in wins_after) == (cell not in right)


def test_solved_problems_splits_and_pictures() -> None:
    sets = {split: problems.generate(15, split, 0) for split in ("train", "test")}
    seen = {split: {Board.from_meta(p.meta).canonical() for p in generated} for split, generated in sets.items()}
    assert not seen["train"] & seen["test"] and sets["train"] == problems.generate(15, "train", 0)
    for problem in sets["train"]:
        position, values = Board.from_meta(problem.meta), problem.meta["values"]
        assert set(values.values()) <= {0.0, 0.5, 1.0} and len(set(values.values())) > 1
        cell = boards.read_cell(problem.answer or "", 5)
        assert cell is not None
        assert values[problem.answer] == (1 - solver.Solver(5, 4).value(*position.after(cell)[2:])) / 2
        assert TASK.verify(problem.answer or "", problem.answer or "", problem.meta) == "correct"
        for answer in (problem.answer or "", "nowhere <b>"):
            drawn = TASK.picture(answer, problem)
            assert drawn and ElementTree.fromstring(drawn).tag.endswith("svg")


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("unknown-name", {"split": "dev"}), ("unknown-name", {"wording": "long"}),
        ("unknown-name", {"kinds": ["five"]}), ("argument-out-of-range", {"kinds": []}),
        ("argument-out-of-range", {"size": 20}), ("argument-out-of-range", {"size": 9}),
        ("argument-out-of-range", {"stones": [9, 25]}),
        ("argument-out-of-range", {"kinds": ["win"], "stones": [2, 4]}),
        ("too-few-problems", {"rows": 10**4, "size": 3, "need": 3, "stones": [7, 7]}),
    ],
)  # fmt: skip
def test_arguments_out_of_range_are_one_sentence(code: str, wrong: dict[str, object]) -> None:
    with refused(code):
        problems.generate(**{"rows": 1, "split": "train", "seed": 0, **wrong})  # type: ignore[arg-type]


META = {"size": 3, "need": 3, "board": "XX./OO./...", "values": {"C1": 1.0, "C2": 0.5, "A3": 0.0, "B3": 0.0, "C3": 0.0}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("C1", "correct"), ("c 1", "correct"), ("C2", "wrong"), ("A1", "wrong"), ("D1", "wrong"), ("S19", "wrong"),
        ("T1", "format_error"), ("1C", "format_error"), ("", "format_error"), ("C01", "correct"),
        ("C0", "format_error"), ("C1 " * 99, "format_error"),
    ],
)  # fmt: skip
def test_answers(answer: str, expected: str) -> None:
    assert TASK.verify(answer, "C1", META) == expected


def test_unusable_positions_are_ungradable() -> None:
    for change in (
        {"board": "XX./OO."},
        {"board": "XXX/X../..."},
        {"size": 99},
        {"values": {}},
        {"values": 3},
        {"need": 9},
    ):
        meta = {**META, **change}
        assert TASK.verify("C1", "C1", meta) == "ungradable"
        assert TASK.picture("C1", Problem("", "gomoku", "", "C1", meta)) is None
    assert TASK.verify("C1", "C1", {}) == "ungradable"


def test_move_rewards_of_gomoku() -> None:
    problem = rewards.problem_from_columns("gomoku", "C1", json.dumps(META))
    texts = [f"<answer>{cell}</answer>" for cell in ("C1", "C2", "C3", "A1", "D9")]
    each = [problem] * len(texts)
    assert [one.value for one in move_rewards.exact(texts, each)] == [1.0, 0.5, 0.0, 0.0, 0.0]
    assert [one.value for one in move_rewards.legal(texts, each, illegal=-1.0)] == [1.0, 1.0, 1.0, -1.0, -1.0]
    rates = [one.value for one in move_rewards.playouts(texts, each, count=64)]
    assert rates[0] == 1.0 and 0 < (rates[2] or 0) < 1
    judged = [one.value for one in move_rewards.engine(texts, each, nodes=300)]
    assert (judged[0] or 0) > 0.99 > 0.01 > (judged[2] or 0) and judged[3:] == [0.0, 0.0]
    with refused("task-without-engine"):
        hands = json.dumps({"mine": "3 4", "theirs": "5", "last": "pass"})
        move_rewards.engine(["<answer>3</answer>"], [rewards.problem_from_columns("doudizhu", "3", hands)], nodes=9)


def test_cells_have_names() -> None:
    names = {boards.cell_name(cell, 15) for cell in range(225)}
    assert len(names) == 225 and boards.cell_name(0, 15) == "A1" and boards.cell_name(224, 15) == "O15"
    for size, cell in itertools.product((3, 15, 19), range(9)):
        assert boards.read_cell(boards.cell_name(cell, size).lower(), size) == cell

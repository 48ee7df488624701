"""Maze: the stated game, shortest paths, the published verifier and its faults, and what is generated."""

from __future__ import annotations

import itertools
import random
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.run_file import ROOT
from grading import Item, grade
from tasks import dataset_specs, load_problems, prompts, registry
from tasks.maze import PUBLISHED, published_rules, rules
from tasks.maze import problems as maze_problems
from tasks.maze.rules import AWAY, HIT, LEFT, SUCCESS, Maze
from tasks.problems import Problem
from tests import needs
from tests.budgets import examples
from tests.user_errors import refused

MIRROR = ROOT.parent / "shared" / "data"
needs_mirror = needs.published("train/maze_train.csv", "train/maze_test.csv")
SMALL = Maze(4, 4, (2, 0), ((1, 1), (3, 2)))  # the first obstacle is in rows 1 2 3 2 1 0


@st.composite
def mazes(draw: st.DrawFn) -> Maze:
    width, height = draw(st.integers(2, 6)), draw(st.integers(3, 6))
    return maze_problems.sample_maze(
        width, height, draw(st.integers(0, width)), random.Random(draw(st.integers(0, 10**6)))
    )


def test_the_example_of_the_published_prompt() -> None:
    assert [rules.row_at(1, time, 4) for time in range(7)] == [1, 2, 3, 2, 1, 0, 1]


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ("RR", SUCCESS), ("R", AWAY), ("L", LEFT), ("RRU", LEFT), ("RLRR", SUCCESS), ("RRRL", SUCCESS),
        ("DDR", HIT), ("RDD", HIT), ("DDRRUU", HIT), ("DRU", AWAY), ("DRUR", SUCCESS),
    ],
)  # fmt: skip
def test_the_stated_rules(moves: str, expected: str) -> None:
    assert SMALL.walk(moves)[0] == expected
    assert SMALL.walk("DDRRUU")[1] == [(0, 0), (0, 1), (0, 2), (1, 2)]


@examples("puzzles")
@given(mazes())
def test_no_shorter_sequence_succeeds(maze: Maze) -> None:
    shortest = maze.shortest()
    if shortest is not None:
        assert maze.walk(shortest)[0] == SUCCESS
    for length in range(min(len(shortest) if shortest is not None else 5, 5)):
        for moves in itertools.product(rules.MOVES, repeat=length):
            assert maze.walk("".join(moves))[0] != SUCCESS


@examples("puzzles")
@given(mazes(), st.text(alphabet="RLUDrlud ,x", max_size=12))
def test_the_task_judges_as_the_rules_do_whatever_is_written(maze: Maze, answer: str) -> None:
    verdict = registry.get("maze").verify(answer, "", maze.meta())
    moves = rules.read_moves(answer)
    assert verdict == ("format_error" if moves is None else "correct" if maze.walk(moves)[0] == SUCCESS else "wrong")
    assert Maze.from_meta(maze.meta()) == maze
    drawn = registry.get("maze").picture(answer, Problem("", "maze", "", "", maze.meta()))
    assert drawn is not None and ElementTree.fromstring(drawn).tag.endswith("svg")


def test_an_unusable_maze_is_ungradable() -> None:
    task = registry.get("maze")
    for meta in ({}, {**SMALL.meta(), "goal": [9, 9]}, {**SMALL.meta(), "goal": 3}, {**SMALL.meta(), "width": None}):
        assert task.verify("RR", "", meta) == "ungradable"
        assert task.picture("RR", Problem("", "maze", "", "", meta)) is None


def test_the_published_verifier_is_a_second_grader() -> None:
    # Off the board and back: ignored by the published verifier, a failure by the stated rules.
    maze = Maze(4, 4, (2, 0), ((1, 3), (3, 2)))
    items = [Item("maze", "RR", f"so <answer>{moves}</answer>", meta=maze.meta()) for moves in ("RR", "URR", "D")]
    assert [one.verdict for one in grade(items)] == ["correct", "wrong", "wrong"]
    assert [one.verdict for one in grade(items, grader=PUBLISHED)] == ["correct", "correct", "wrong"]
    assert grade(items)[0].grader.startswith("maze verifier")
    assert grade(items, grader=PUBLISHED)[0].grader.startswith(PUBLISHED)
    assert published_rules.obstacle_rows(3, 8, 4) == [4, 3, 2, 1, 0, -1, 0, 1]


@examples("costly")
@given(mazes())
def test_disagreements_are_counted_as_one_by_one(maze: Maze) -> None:
    sequences = ["".join(moves) for n in range(1, 5) for moves in itertools.product(rules.MOVES, repeat=n)]
    counts = published_rules.count_disagreements([maze], 4)
    assert counts["sequences"] == len(sequences)
    assert counts["published"] == sum(published_rules.accepts(maze, moves) for moves in sequences)
    right = [maze.walk(moves)[0] == SUCCESS for moves in sequences]
    assert counts["stated"] == sum(right)
    assert counts["broken"] == sum(
        published_rules.accepts(maze, moves) and not ok for moves, ok in zip(sequences, right, strict=True)
    )


def test_generated_mazes_are_solvable_distinct_and_disjoint() -> None:
    sets = {
        split: maze_problems.generate(40, split, 1, width=5, height=4, obstacles=3, moves=(2, 7)) for split in
        ("train", "test")
    }  # fmt: skip
    mazes_of = {split: [Maze.from_meta(problem.meta) for problem in rows] for split, rows in sets.items()}
    assert not set(mazes_of["train"]) & set(mazes_of["test"]) and all(
        len(set(rows)) == 40 for rows in mazes_of.values()
    )
    for problem, maze in zip(sets["train"], mazes_of["train"], strict=True):
        assert 2 <= len(problem.answer or "") == problem.meta["level"] <= 7
        assert maze.walk(problem.answer or "")[0] == SUCCESS
        assert len({x for x, _ in maze.obstacles}) == 3 and problem.question.startswith("The maze is 5 by 4 cells. ")
    again = maze_problems.generate(40, "train", 1, width=5, height=4, obstacles=3, moves=(2, 7))
    assert again == sets["train"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"split": "dev"}, "unknown-name"), ({"obstacles": 5}, "argument-out-of-range"),
        ({"height": 2}, "argument-out-of-range"), ({"wording": "long"}, "unknown-name"),
        ({"moves": (30, 40)}, "too-few-problems"),
    ],
)  # fmt: skip
def test_mazes_that_cannot_be_made_are_refused(arguments: dict, code: str) -> None:
    with refused(code):
        maze_problems.generate(**{"rows": 1, "split": "train", "seed": 0, **arguments})


@needs_mirror
def test_the_published_rows_and_what_is_wrong_with_them() -> None:
    rows = {name: load_problems.load(dataset_specs.find(name), MIRROR)[0] for name in published_rules.SETS}
    train, test = ([Maze.from_meta(problem.meta) for problem in rows[name]] for name in published_rules.SETS)
    assert (len(train), len(test)) == (637, 50)  # of 639; two goals cannot be reached
    assert sum(maze in set(train) for maze in test) == 27
    assert all(
        rules.read_maze(problem.question) == maze for problem, maze in zip(rows["maze_published"], test, strict=True)
    )
    stored = [
        (maze, p.meta["published_answer"])
        for rows in (published_rules.all_rows(name, MIRROR) for name in published_rules.SETS)
        for p, maze in rows
    ]
    assert len(stored) == 689 and len({maze for maze, _ in stored}) == 506
    assert sum(maze.walk(answer)[0] != SUCCESS for maze, answer in stored) == 182
    assert sum(not published_rules.accepts(maze, answer) for maze, answer in stored) == 49
    assert all(problem.answer and maze.walk(problem.answer)[0] == SUCCESS for problem, maze in
               zip(rows["maze_published"], test, strict=True))  # fmt: skip


def test_the_prompts_put_the_question_where_it_belongs() -> None:
    messages = prompts.load("maze-chinese").messages(SMALL.sentence())
    assert len(messages) == 1 and messages[0]["content"].endswith(f"例如<answer>RR</answer>。\n {SMALL.sentence()}")
    assert SMALL.sentence() in prompts.load("maze-english").messages(SMALL.sentence())[0]["content"]

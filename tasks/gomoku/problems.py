"""Gomoku positions with one decision: a solved one, a win in one, a four to block, an open three to block.

solved   a board of at most five cells a side; right is every move that keeps what the position is worth
win      right is every cell that wins at once
four     the opponent would win at one cell: right is that cell
three    the opponent has an open row, of two stones fewer than win: right is every move after which no move of the
         opponent makes two winning cells at once; the player to move has no row of that length to answer with

Training and held-out problems are disjoint, also up to turns and reflections.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from system.errors import UserError
from tasks.gomoku import solver
from tasks.gomoku.board import LARGEST, Board, cell_name, has_won, winning_cells, winning_lines, winning_masks
from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem

TASK = "gomoku"
TRIES = 2_000  # for one more position before there counts as none
KINDS = ("solved", "win", "four", "three")
WORDINGS = ("full", "short")
_NUMBERS = {3: "Three", 4: "Four", 5: "Five", 6: "Six"}


def question_text(board: Board, wording: str = "full") -> str:
    """The board in words, with letters and numbers at its edges; `short` has the cells alone."""
    if wording == "short":
        return "\n".join(["", *(" " + " ".join(row) for row in board.rows()), board.mark])
    names = [chr(ord("A") + column) for column in range(board.size)]
    rows = [f"{number:>2} {' '.join(row)}" for number, row in enumerate(board.rows(), start=1)]
    wins = f"{_NUMBERS.get(board.need, str(board.need))} or more in a row win."
    return "\n".join(["   " + " ".join(names), *rows, f"{wins} You play {board.mark}, and it is your turn."])


def cell_values(board: Board, kind: str) -> dict[int, float] | None:
    """What every empty cell is worth in a problem of this kind, from 0 to 1; None if it is no such problem."""
    size, need = board.size, board.need
    if has_won(board.own, size, need) or has_won(board.other, size, need):
        return None
    wins = winning_cells(board.own, board.other, size, need)
    threats = winning_cells(board.other, board.own, size, need)
    if kind == "solved":
        values = solver.move_values(board)
        return values if len(set(values.values())) > 1 else None
    right = {"win": wins, "four": threats, "three": 0}[kind]
    if kind == "three":
        attacks = _open_rows(board.other, board.own, size, need)
        if wins or threats or _open_rows(board.own, board.other, size, need) or not _two_at_once(attacks, 0):
            return None
        right = sum(1 << cell for cell in board.empty() if not _two_at_once(attacks, 1 << cell))
    if not right or (kind == "four" and (wins or right & (right - 1))):
        return None
    return {cell: float(right >> cell & 1) for cell in board.empty()}


def _open_rows(stones: int, others: int, size: int, need: int) -> list[int]:
    """The two free cells of each winning row that holds all its other stones, as masks; none of `others` in it."""
    rows = [mask & ~stones for mask in winning_masks(size, need) if not mask & others]
    return [free for free in rows if free.bit_count() == 2]


def _two_at_once(rows: list[int], blocked: int) -> bool:
    """Whether one stone makes two winning cells, given `_open_rows` and a cell that is blocked."""
    wins: dict[int, int] = {}
    for row in rows:
        if not row & blocked:
            low = row & -row
            wins[low] = wins.get(low, 0) | row ^ low
            wins[row ^ low] = wins.get(row ^ low, 0) | low
    return any(cells & (cells - 1) for cells in wins.values())


def sample_board(size: int, need: int, kind: str, stones: Sequence[int], rng: random.Random) -> Board:
    """Any position with X and O in turns; for a kind other than `solved`, with a row of stones that it needs.

    Args:
        size: cells a side.
        need: in a row that win.
        kind: one of KINDS.
        stones: the fewest and the most on the board.
        rng: of every choice.
    """
    total = rng.randint(*stones)
    planted: list[int] = []
    if kind != "solved":
        line = rng.choice(winning_lines(size, need))
        planted = rng.sample(line, need - 1) if kind != "three" else list(line[1:-1])
    owned = kind == "win"
    cells = [cell for cell in range(size**2) if cell not in planted]
    rest = rng.sample(cells, total - len(planted))
    mine = total // 2 - len(planted) * owned
    first, second = rest[:mine], rest[mine:]
    (first if owned else second).extend(planted)
    return Board(size, need, sum(1 << cell for cell in first), sum(1 << cell for cell in second))


def generate(
    rows: int,
    split: str,
    seed: int,
    size: int = 5,
    need: int = 4,
    kinds: Sequence[str] = ("solved",),
    stones: Sequence[int] = (13, 17),
    wording: str = "full",
) -> list[Problem]:
    """`rows` distinct positions of one split, the kinds in turn; the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of every choice.
        size: cells a side, 3 to 19.
        need: in a row that win.
        kinds: names in KINDS.
        stones: the fewest and the most on the board; at least two for each stone that wins.
        wording: a name in WORDINGS.

    Raises:
        UserError: an argument is out of range, or there are no more positions of that kind.
    """
    check_names(TASK, "wording", [wording], WORDINGS)
    check_names(TASK, "kind", kinds, KINDS)
    _check_sizes(size, need, kinds, stones)
    sampler = ProblemSampler(TASK, split, seed)

    def attempt(kind: str) -> Problem | None:
        board = sample_board(size, need, kind, stones, sampler.rng)
        text = board.canonical()
        if not sampler.in_split(f"gomoku {size} {need} {text}") or not sampler.is_new(text):
            return None
        values = cell_values(board, kind)
        if values is None:
            return None
        named = {cell_name(cell, size): value for cell, value in values.items()}
        meta = {**board.meta(), "kind": kind, "level": kind, "values": named}
        return sampler.problem(question_text(board, wording), max(named, key=lambda cell: named[cell]), meta)

    return sampler.generate(rows, attempt, kinds, tries=TRIES, hint="for other numbers of stones")


def _check_sizes(size: int, need: int, kinds: Sequence[str], stones: Sequence[int]) -> None:
    planted = 0 if set(kinds) == {"solved"} else 2 * need - 2
    if not kinds or not 3 <= need <= size <= LARGEST or not planted <= stones[0] <= stones[1] < size**2:
        raise UserError(
            f"gomoku needs a kind, 3 <= need <= size <= {LARGEST}, and {planted} stones or more that leave a cell "
            f"free; found kinds {list(kinds)}, need {need}, size {size}, stones {list(stones)}",
            code="argument-out-of-range",
        )
    if "solved" in kinds and size > solver.LARGEST_SOLVED:
        raise UserError(
            f"gomoku solves boards of up to {solver.LARGEST_SOLVED} cells a side, not {size}",
            code="argument-out-of-range",
            size=size,
        )

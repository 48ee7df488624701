"""A position and a move as a picture: the board, the right cells marked, the chosen cell ringed."""

from __future__ import annotations

from tasks.gomoku import game
from tasks.gomoku.board import Board, cell_name
from tasks.problems import Problem

CELL = 20  # pixels


def plot_answer(answer: str, problem: Problem) -> str | None:
    """The SVG; None if the problem has no position."""
    try:
        board, move = Board.from_meta(problem.meta), game.read_move(answer, problem.meta)
        values = dict(problem.meta["values"])
        best = max(values.values())
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    side = board.size * CELL
    middle = range(CELL // 2, side, CELL)
    grid = "".join(f"M{CELL // 2} {at}H{side - CELL // 2}M{at} {CELL // 2}V{side - CELL // 2}" for at in middle)
    parts = [f'<rect width="{side}" height="{side}" fill="#f4e3c1"/><path d="{grid}" stroke="#b09a70"/>']
    for cell, stone in enumerate(board.stones()):
        name = cell_name(cell, board.size)
        if stone != ".":
            parts.append(_circle(cell, board.size, 8, f'fill="{"#111" if stone == "X" else "#fff"}" stroke="#333"'))
        elif values.get(name) == best:
            parts.append(_circle(cell, board.size, 3, 'fill="#2a7a2a"'))
    verdict, colour = "no empty cell", "#b02020"
    if move is not None:
        right = values.get(cell_name(move, board.size)) == best
        verdict, colour = ("right", "#2a7a2a") if right else ("wrong", "#b02020")
        parts.append(_circle(move, board.size, 8, f'fill="none" stroke="{colour}" stroke-width="3"'))
    columns = "".join(
        f'<text x="{at}" y="-4" text-anchor="middle">{chr(ord("A") + index)}</text>'
        f'<text x="-5" y="{at + 4}" text-anchor="end">{index + 1}</text>'
        for index, at in enumerate(middle)
    )
    stated = "" if move is None else f"{cell_name(move, board.size)}: "
    width, height = side + 30, side + 46
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-24 -18 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11">{"".join(parts)}{columns}'
        f'<text x="0" y="{side + 18}" fill="{colour}">{board.mark} plays {stated}{verdict}</text></svg>'
    )


def _circle(cell: int, size: int, radius: int, style: str) -> str:
    x, y = (cell % size + 0.5) * CELL, (cell // size + 0.5) * CELL
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" {style}/>'

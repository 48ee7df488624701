"""A maze and an answer as pictures in a row: the board at the start and after each move, up to the end."""

from __future__ import annotations

from tasks.maze.rules import SUCCESS, Cell, Maze, read_moves
from tasks.problems import Problem

CELL, GAP, MOST_BOARDS = 18, 12, 24  # pixels, pixels, boards


def plot_answer(answer: str, problem: Problem) -> str | None:
    """The SVG: goal green, obstacles red, the agent and its path blue; None if the problem has no maze."""
    try:
        maze = Maze.from_meta(problem.meta)
    except (KeyError, TypeError, ValueError):
        return None
    moves = read_moves(answer) or ""
    end, cells = maze.walk(moves)
    walked = cells[:MOST_BOARDS]
    wide, high = maze.width * CELL, maze.height * CELL
    boards = [_board(maze, walked[: time + 1], time, time * (wide + GAP) + CELL) for time in range(len(walked))]
    captions = [
        f'<text x="{time * (wide + GAP) + CELL}" y="11">{moves[time - 1] if time else "start"}</text>'
        for time in range(len(walked))
    ]
    width, height = len(walked) * (wide + GAP) + CELL, high + 3 * CELL
    colour = "#2a7a2a" if end == SUCCESS else "#b02020"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11">{"".join(captions)}{"".join(boards)}'
        f'<text x="{CELL}" y="{high + 2.5 * CELL:g}" fill="{colour}">{moves or "no moves"}: {end}</text></svg>'
    )


def _board(maze: Maze, cells: list[Cell], time: int, left: int) -> str:
    """One board; the agent may stand outside it, where it has left it."""
    wide, high = maze.width * CELL, maze.height * CELL
    lines = "".join(f"M{x * CELL} 0V{high}" for x in range(1, maze.width))
    lines += "".join(f"M0 {y * CELL}H{wide}" for y in range(1, maze.height))
    parts = [f'<rect width="{wide}" height="{high}" fill="#fff" stroke="#555"/><path d="{lines}" stroke="#ccc"/>']
    parts.append(_square(maze.goal, "#9fd89f"))
    parts += [_square(cell, "#e59a9a") for cell in maze.obstacles_at(time)]
    middle = [f"{(x + 0.5) * CELL:g} {(y + 0.5) * CELL:g}" for x, y in cells]
    parts.append(f'<path d="M{"L".join(middle)}" fill="none" stroke="#3060c0"/>')
    x, y = cells[-1]
    parts.append(f'<circle cx="{(x + 0.5) * CELL:g}" cy="{(y + 0.5) * CELL:g}" r="5" fill="#3060c0"/>')
    return f'<g transform="translate({left} {CELL})">{"".join(parts)}</g>'


def _square(cell: Cell, colour: str) -> str:
    x, y, side = cell[0] * CELL + 1, cell[1] * CELL + 1, CELL - 2
    return f'<rect x="{x}" y="{y}" width="{side}" height="{side}" fill="{colour}"/>'

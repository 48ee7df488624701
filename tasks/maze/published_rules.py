"""The published verifier of the maze, which is not the stated game, and how far the two disagree.

    python -m tasks.maze.published_rules --mirror ../mirror       # counts on all sequences of up to six moves; seconds

As in KotoHanon/VERL-Maze @e027ccd, verl/utils/reward_score/Verifier.py: a move off the board is ignored, obstacles walk
one cell off it at both ends, and letters that are no move pass a turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from system.command_line import argument_parser
from system.errors import run_command
from tasks import dataset_sources, dataset_specs
from tasks.maze import rows
from tasks.maze.rules import MOVES, SUCCESS, Cell, Maze
from tasks.problems import Problem

SETS = ("maze_published_train", "maze_published")


def obstacle_rows(y: int, moves: int, height: int) -> list[int]:
    """The rows of an obstacle after 1 … `moves` moves: it turns when it is off the board, not at the edge."""
    rows, direction = [], 1
    for _ in range(moves):
        direction = -direction if y < 0 or y >= height else direction
        y += direction
        rows.append(y)
    return rows


def _next_cell(maze: Maze, cell: Cell, letter: str) -> Cell:
    """The agent's next cell where moves off the board are ignored."""
    by = MOVES.get(letter, (0, 0))
    there = (cell[0] + by[0], cell[1] + by[1])
    return there if maze.inside(there) else cell


def accepts(maze: Maze, letters: str) -> bool:
    """The published verdict on a sequence of letters, of any case."""
    rows = [obstacle_rows(y, len(letters), maze.height) for _, y in maze.obstacles]
    cell = (0, 0)
    for time, letter in enumerate(letters.upper()):
        cell = _next_cell(maze, cell, letter)
        if cell in [(x, row[time]) for (x, _), row in zip(maze.obstacles, rows, strict=True)]:
            return False
    return cell == maze.goal


def count_disagreements(mazes: Iterable[Maze], longest: int) -> Counter[str]:
    """How the two verifiers judge every sequence of 1 to `longest` moves of every maze.

    Returns:
        Counts: `sequences`; `published`, accepted by it; `broken`, those of them that break a stated rule; `hit`, those
        that hit an obstacle even if moves into the wall are allowed; `refused`, those that with such moves allowed are
        right and that it refuses; `stated`, accepted by the stated rules.
    """
    counts: Counter[str] = Counter()
    for maze in mazes:
        walked = [obstacle_rows(y, longest, maze.height) for _, y in maze.obstacles]
        # Sequences with the same cell, left the board, hit an obstacle, hit a published one are counted together.
        states = Counter({((0, 0), False, False, False): 1})
        for time in range(1, longest + 1):
            true = maze.obstacles_at(time)
            published = [(x, rows[time - 1]) for (x, _), rows in zip(maze.obstacles, walked, strict=True)]
            following: Counter[tuple[Cell, bool, bool, bool]] = Counter()
            for (cell, left, hit, other_hit), count in states.items():
                for move in MOVES:
                    there = _next_cell(maze, cell, move)
                    state = (there, left or there == cell, hit or there in true, other_hit or there in published)
                    following[state] += count
            states = following
            counts["sequences"] += states.total()
            for (cell, left, hit, other_hit), count in states.items():
                if cell == maze.goal:
                    counts["stated"] += count * (not left and not hit)
                    counts["published"] += count * (not other_hit)
                    counts["broken"] += count * (not other_hit and (left or hit))
                    counts["hit"] += count * (not other_hit and hit)
                    counts["refused"] += count * (other_hit and not hit)
    return counts


def all_rows(name: str, mirror: Path | None) -> list[tuple[Problem, Maze]]:
    """Every row of a published set, also those whose goal cannot be reached, which training leaves out."""
    entry = dataset_specs.find(name)
    problems = [
        rows.convert(row, index, "maze", {}) for index, row in enumerate(dataset_sources.from_files(entry, mirror)[0])
    ]
    return [(problem, Maze.from_meta(problem.meta)) for problem in problems]


def main() -> None:
    """Command line: --mirror DIR."""
    parser = argument_parser(__doc__)
    parser.add_argument("--mirror", type=Path, metavar="DIR", help="the configuration's data_mirror")
    parser.add_argument("--longest", type=int, default=6, help="moves of the longest sequences")
    arguments = parser.parse_args()
    sets = [all_rows(name, arguments.mirror) for name in SETS]
    of_set = [[maze for _, maze in rows] for rows in sets]
    distinct = list(dict.fromkeys(maze for mazes in of_set for maze in mazes))
    shared = sum(maze in set(of_set[0]) for maze in set(of_set[1]))
    print(f"{SETS[0]}: {len(of_set[0])} rows, {len(set(of_set[0]))} mazes; {SETS[1]}: {len(of_set[1])} rows, "
          f"{len(set(of_set[1]))} mazes, {shared} of them also in training; together {len(distinct)}")  # fmt: skip
    stored = [(maze, problem.meta["published_answer"]) for rows in sets for problem, maze in rows]
    wrong = sum(maze.walk(answer)[0] != SUCCESS for maze, answer in stored)
    refused = sum(not accepts(maze, answer) for maze, answer in stored)
    print(f"stored answers: {len(stored)}; wrong by the stated rules {wrong}, by the published verifier {refused}")
    counts = count_disagreements(distinct, arguments.longest)
    print(f"sequences of 1 to {arguments.longest} moves: {counts['sequences']:,}; right by the stated rules "
          f"{counts['stated']:,}")  # fmt: skip
    share = counts["broken"] / counts["published"]
    print(f"accepted by the published verifier: {counts['published']:,}; of these, {counts['broken']:,} ({share:.0%}) "
          "break a stated rule")  # fmt: skip
    print(f"with moves into the wall allowed, it accepts {counts['hit']:,} that hit an obstacle and refuses "
          f"{counts['refused']:,} that do not")  # fmt: skip


if __name__ == "__main__":
    run_command(main)

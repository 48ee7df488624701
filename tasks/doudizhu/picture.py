"""A position and a move as a picture: both hands, the cards to beat, and the cards that are played, raised."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.doudizhu import game
from tasks.doudizhu.cards import NAMES, Cards, read_cards, write_cards
from tasks.doudizhu.problems import Position
from tasks.problems import Problem

WIDE, HIGH, GAP, LEFT = 26, 36, 4, 70  # pixels


def plot_answer(answer: str, problem: Problem) -> str | None:
    """The SVG; None if the problem has no position."""
    try:
        position = Position.from_meta(problem.meta)
        move = game.read_move(answer, problem.meta)
        verdict = "not legal" if move is None else "wins" if game.value(move, problem.meta) else "loses"
    except (KeyError, TypeError, ValueError):
        return None
    played = list(move or ())
    raised = []
    for card in position.mine:
        raised.append(card in played)
        if card in played:
            played.remove(card)
    rows = [
        _row("theirs", position.theirs, [False] * len(position.theirs), 0),
        _row("to beat", position.last, [False] * len(position.last), 1),
        _row("mine", position.mine, raised, 2),
    ]
    stated = read_cards(answer)
    colour = "#2a7a2a" if verdict == "wins" else "#b02020"
    text = f"{'no cards' if stated is None else write_cards(stated)}: {verdict}"
    width, height = LEFT + 5 * (WIDE + GAP) + 10, 3 * (HIGH + 14) + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">{"".join(rows)}'
        f'<text x="4" y="{height - 8}" fill="{colour}">{text[:60]}</text></svg>'
    )


def _row(label: str, cards: Cards, raised: Sequence[bool], row: int) -> str:
    top = 12 + row * (HIGH + 14)
    parts = [f'<text x="4" y="{top + HIGH // 2}">{label}</text>']
    for index, (card, up) in enumerate(zip(cards, raised, strict=True)):
        x, y = LEFT + index * (WIDE + GAP), top - (10 if up else 0)
        fill = "#cfe0ff" if up else "#fff"
        parts.append(
            f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="4" fill="{fill}" stroke="#555"/>'
            f'<text x="{x + WIDE / 2:g}" y="{y + 23}" text-anchor="middle">{NAMES[card]}</text>'
        )
    return "".join(parts) if cards else parts[0] + f'<text x="{LEFT}" y="{top + HIGH // 2}">nothing</text>'

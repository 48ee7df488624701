"""The judge of drawings: reads, renders and applies the prompt's rule. Call it only where it can be killed.

python -m tasks.svg.judge hexagon < drawing.svg      # a prompt of tasks/svg/document_prompts.py
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element

from system.command_line import argument_parser
from system.errors import UserError, run_command
from tasks.svg import document_prompts, safe_svg
from tasks.svg.regions import SIDE, Picture, render_pixels
from tasks.svg.rules import RULES, WITH_NUMBERS


def warm_up() -> None:
    """Import what drawing and judging need, once for all processes of a worker."""
    keeps_rule(safe_svg.read('<svg width="9" height="9"><rect width="5" height="5"/></svg>'), {"rule": "hexagon"})


def judge(gold: str, answer: str, meta: Mapping[str, Any] | None) -> str:
    """Judge a drawing.

    Args:
        gold: the name of the problem, not used: `meta` says what is asked for.
        answer: the SVG that a model wrote.
        meta: `drawing`, the rule and its arguments.

    Returns:
        `correct` or `wrong`; `ungradable` if the problem names no rule.
    """
    drawing = dict((meta or {}).get("drawing") or {})
    if drawing.get("rule") not in RULES:
        return "ungradable"
    try:
        return "correct" if keeps_rule(safe_svg.read(answer), drawing) else "wrong"
    except safe_svg.Unreadable:
        return "wrong"


def keeps_rule(root: Element, drawing: Mapping[str, Any]) -> bool:
    """Whether a drawing keeps a rule.

    Args:
        root: of safe_svg.read.
        drawing: the rule's name and arguments.

    Raises:
        safe_svg.Unreadable: it has no canvas, or cannot be rendered.
    """
    arguments = {key: value for key, value in drawing.items() if key != "rule"}
    rule = RULES[drawing["rule"]]
    if rule(Picture(render_pixels(safe_svg.drawing(root, SIDE, text="none"))), **arguments):
        return True
    if drawing["rule"] not in WITH_NUMBERS or root.find(".//text") is None:
        return False
    return rule(Picture(render_pixels(safe_svg.drawing(root, SIDE, text="boxes"))), **arguments)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    names = {prompt.name: prompt.drawing for prompt in document_prompts.JUDGED}
    parser.add_argument("prompt", choices=names)
    drawing = names[parser.parse_args().prompt]
    try:
        print("correct" if keeps_rule(safe_svg.read(sys.stdin.read().strip()), drawing or {}) else "wrong")
    except safe_svg.Unreadable as error:
        raise UserError(f"this is no drawing that can be judged: {error}", code="unreadable-drawing") from None


if __name__ == "__main__":
    run_command(main)

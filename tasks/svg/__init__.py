"""SVG: write a drawing that geometry can judge.

question   three blue squares of one size, side by side in a row
answer     <svg viewBox="0 0 300 100"><g fill="blue"><rect x="20" y="20" width="60" height="60"/>…</g></svg>

The drawing is read without trust (tasks/svg/safe_svg.py), rendered by resvg, and judged by a rule on what can be seen
(tasks/svg/rules.py): how it was drawn does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.svg.safe_svg import Unreadable, read
from tasks.task import Grader, Task


class Svg(Task):
    """The answer is the last complete <svg> element."""

    own_grader = Grader(judge="tasks.svg.judge.judge", package="resvg-py", extraction="svg-element")
    judged_meta = ("drawing",)

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str | None:
        """Refuse what is no drawing; the judge decides the rest. See Task.verify."""
        try:
            read(answer)
        except Unreadable:
            return "format_error"
        return None if isinstance(meta.get("drawing"), Mapping) else "ungradable"


TASK = Svg("svg")

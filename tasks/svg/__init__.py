"""SVG: write a drawing that geometry can judge.

    question   a red circle in the middle
    right      <svg viewBox="0 0 90 90"><circle cx="45" cy="45" r="30" fill="red"/></svg>
    wrong      <svg viewBox="0 0 90 90"><circle cx="45" cy="45" r="30" fill="blue"/></svg>

The drawing is read without trust (tasks/svg/safe_svg.py), rendered by resvg, and judged by a rule on what can be seen
(tasks/svg/rules.py): how it was drawn does not matter.

>>> from tasks.svg.judge import judge
>>> circle = {"shape": "circle", "colour": "red", "count": 1}
>>> meta = {"drawing": {"rule": "figures", "figures": [circle], "layout": "middle"}}
>>> svg = '<svg viewBox="0 0 90 90"><circle cx="45" cy="45" r="30" fill="{}"/></svg>'
>>> [judge("", svg.format(colour), meta) for colour in ("red", "blue")]
['correct', 'wrong']
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

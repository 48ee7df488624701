"""The judges that run in workers: (gold, answer, meta) → correct, wrong or ungradable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasks.math import qwen_rules
from tasks.math import verifier as math_answers

JUDGES: dict[str, Callable[[str, str, dict[str, Any] | None], str]] = {
    "math-verify": math_answers.judge,
    "qwen-rules": qwen_rules.judge,
}


def warm_up() -> None:
    """Import what the judges need and fill the caches of the LaTeX parser, once for all later forks."""
    import logging

    logging.disable(logging.CRITICAL)  # math-verify logs every time that its time-outs are off
    for gold, answer in (("2", "3"), ("\\frac{1}{2}", "0.5"), ("x^2+1", "(x+1)^2"), ("(1,2)", "\\{1,2\\}")):
        for judge in JUDGES.values():
            judge(gold, answer, None)

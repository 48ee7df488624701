"""Programs: write a Python function that passes all tests of its problem, which run in a sandbox.

Data: https://huggingface.co/datasets/newfacade/LeetCodeDataset (MIT), about 100 tests a problem; generated one-line
functions whose first tests leave known faults uncaught.

    question   Write a Python function f(a, b) that returns the larger of a and b.
    right      def f(a, b): return a if a > b else b
    wrong      def f(a, b): return a
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.programs.suite import Suite, extract_program, run_tests
from tasks.sandbox import NotStarted
from tasks.task import Task


class Programs(Task):
    """The answer is a program, fenced or not; it is right if it passes every test, in a sandbox."""

    answer_format = "tagged"

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Run the program on all tests. See Task.verify.

        Raises:
            UserError: there is no sandbox on this machine.
        """
        try:
            suite = Suite.from_meta(meta)
        except (KeyError, TypeError, ValueError):
            return "ungradable"
        if not answer.strip():
            return "format_error"
        try:
            passed = run_tests(extract_program(answer), suite).passed
        except NotStarted:
            return "ungradable"
        return "correct" if all(passed) else "wrong"


TASK = Programs("programs")

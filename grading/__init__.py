"""Grading itself: which answer a completion gives, and whether it is right.

Rewards and the evaluation's grading stage (eval/grade.py, which reads and writes tables) both call `grade`.
"""

from grading.verdicts import Grade, Item, grade

__all__ = ["Grade", "Item", "grade"]

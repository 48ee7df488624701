"""Grading: which answer a completion gives, and whether it is right."""

from grading.verdicts import Grade, Item, grade

__all__ = ["Grade", "Item", "grade"]

"""Grading: which answer a completion gives (extraction), and whether it is right (verifiers in killable workers)."""

from grading.grade import Grade, Item, grade

__all__ = ["Grade", "Item", "grade"]

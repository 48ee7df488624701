"""Grading: which answer a completion gives, and whether it is right."""

from grading.grade_completions import Grade, Item, grade

__all__ = ["Grade", "Item", "grade"]

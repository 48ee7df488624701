"""Arithmetic in which multiplication goes first: the demo scale's own task, generated.

question   What is 5+3*4-2?
answer     15          (left to right it would be 30)
"""

from tasks.math_answers import MathAnswers

TASK = MathAnswers("arithmetic")

"""Arithmetic in which multiplication goes first: the demo scale's own task, generated.

    question   What is 5+3*4-2?
    right      15
    wrong      30          (from left to right)

>>> [TASK.verify(answer, "15", {}) for answer in ("15", "30")]
['correct', 'wrong']
"""

from tasks.math_answers import MathAnswers

TASK = MathAnswers("arithmetic")

"""Word problems of one to three steps: the small scale's task, generated, for pretrained models that can hardly count.

    question   Mia has 7 apples. Mia buys 5 more and then gives 3 away. How many apples does Mia have now?
    right      9
    wrong      12

>>> [TASK.verify(answer, "9", {}) for answer in ("9", "12")]
['correct', 'wrong']
"""

from tasks.math_answers import MathAnswers

TASK = MathAnswers("word_problems")

r"""Mathematics: competition and textbook problems with a final answer in `\boxed{…}`.

Data: MATH (https://github.com/hendrycks/math), GSM8K (https://github.com/openai/grade-school-math), AIME, AMC,
OlympiadBench, Minerva, NuminaMath; the files and their hashes are in task.yaml and eval/benchmarks/.

    question   What is the sum of the roots of $x^2 - 3x + 2 = 0$?
    answer     3
"""

from tasks.math_answers import MathAnswers

TASK = MathAnswers("math")

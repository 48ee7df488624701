"""The basic statistics of graded samples: problems are the observations, repeats of a problem are averaged first.

- `accuracy`: avg@k, pass@k, maj@k and paired differences, with intervals (its names are those of this package, too)
- `clusters`: problems that share a text or a template are one observation
- `pass_and_majority`: pass@k and maj@k of a graded table, per problem
- `significance`: paired tests, their power, and the samples that a difference needs
- `smallest_difference`: what a test could have found
- `mean_bounds`: tests of a mean that hold for few problems
- `e_process`: evidence that may be looked at after every round of sampling
"""

from eval.statistics.accuracy import (
    TIES,
    Correct,
    Estimate,
    Floats,
    avg_at_k,
    independent_difference,
    maj_by_problem,
    mean_difference,
    mean_over_problems,
    paired_difference,
    pass_by_problem,
    ratio,
)

__all__ = [
    "TIES", "Correct", "Estimate", "Floats", "avg_at_k", "independent_difference", "maj_by_problem", "mean_difference",
    "mean_over_problems", "paired_difference", "pass_by_problem", "ratio",
]  # fmt: skip

"""Grade a list of completions.

python -m examples.python.grade_completions
"""

from collections import Counter

from grading import Item, grade

COMPLETIONS = [
    r"Half of 3 is \boxed{\frac{3}{2}}",  # another form of the gold answer
    r"The answer is \boxed{2}",
    "I do not know.",
]


def main() -> None:
    """Print each answer with its verdict, then how many have which."""
    grades = grade([Item(task="math", gold="1.5", completion=completion) for completion in COMPLETIONS])
    for completion, result in zip(COMPLETIONS, grades, strict=True):
        print(f"{result.verdict:10}  {result.answer}  in: {completion}")
    print(dict(Counter(result.verdict for result in grades)))


if __name__ == "__main__":
    main()

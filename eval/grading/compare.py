"""Old name of `python -m eval.grader_agreement`."""

from contracts import renamed
from contracts.errors import run_command
from eval.grader_agreement import main

if __name__ == "__main__":
    renamed.warn("python -m eval.grading.compare", "python -m eval.grader_agreement")
    run_command(main)

"""Old name of `python -m eval.human_labels`."""

from contracts import renamed
from contracts.errors import run_command
from eval.human_labels import main

if __name__ == "__main__":
    renamed.warn("python -m eval.grading.labels", "python -m eval.human_labels")
    run_command(main)

"""Old name of `python -m eval.grader_agreement`."""

from contracts import renamed

if __name__ == "__main__":
    renamed.run("eval.grading.compare", "eval.grader_agreement")

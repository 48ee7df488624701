"""Old name of `python -m eval.human_labels`."""

from contracts import renamed

if __name__ == "__main__":
    renamed.run("eval.grading.labels", "eval.human_labels")

"""Old name of `grading`, `eval.grader_agreement` and `eval.human_labels`: its commands work for one more release."""

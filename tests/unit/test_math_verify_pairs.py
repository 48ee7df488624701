"""The labelled pairs of math-verify's own tests are read without running them."""

from __future__ import annotations

from pathlib import Path

from studies.grader_validation.answer_pairs import AnswerPair
from studies.grader_validation.math_verify_pairs import read
from tests.user_errors import refused

TESTS = r"""
raise SystemExit("run")

@pytest.mark.parametrize("gold,pred,expected", [
    (r"$\frac{1}{2}$", r"so it is \boxed{0.5}", 1),
    ("$$1,2$$", r"$\boxed{1}$ and $\boxed{2}$", 1),
    (r"\(3\)", r"\[4\]", 0),
    ("$5$", "the answer is 5", 1),
    ("$5$", "$5$ or $6$", 0),
    ("$1$", "$2$", 0, 6),
    ("$1$", "$2$", 7),
])
def test_it(gold, pred, expected): ...
"""


def test_formulas_and_boxes_are_pairs_and_prose_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "other.py").write_text('x = ("$9$", "$9$", 1)')
    assert read(tmp_path) == (
        [
            AnswerPair("some", r"\frac{1}{2}", "0.5", True),
            AnswerPair("some", "1,2", "1, 2", True),
            AnswerPair("some", "3", "4", False),
        ],
        2,
    )


def test_a_folder_without_pairs_is_one_sentence(tmp_path: Path) -> None:
    with refused("no-pairs"):
        read(tmp_path)

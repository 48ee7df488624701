"""The sample of verdicts that a person reads: drawn alike every time, and the rates of what was found in it."""

from scipy import stats

from studies.grader_validation import verdict_sample
from tests.user_errors import refused

ROWS = [
    {
        "benchmark": "b",
        "problem_id": f"p{i}",
        "repeat": 0,
        "verdict": "correct" if i % 3 else ("wrong", "no_answer")[i % 2],
    }
    for i in range(90)
]


def test_a_verdict_that_changes_changes_the_draw_of_no_other():
    drawn = verdict_sample.draw(ROWS, 20, seed=0)
    assert {row["verdict"] for row in drawn["wrong"]} == {"wrong", "no_answer"} and len(drawn["correct"]) == 20
    assert verdict_sample.draw(ROWS[::-1], 20, seed=0) == drawn
    assert verdict_sample.draw(ROWS, 20, seed=1) != drawn
    changed = drawn["wrong"][3]
    again = verdict_sample.draw([row if row != changed else row | {"verdict": "correct"} for row in ROWS], 20, seed=0)
    assert [row for row in drawn["wrong"] if row != changed] == again["wrong"][:19]


def test_rates_of_mistakes_and_their_kinds(tmp_path):
    drawn = verdict_sample.draw(ROWS, 20, seed=0)
    names = [row["problem_id"] for row in drawn["wrong"][:2]]
    file = tmp_path / "review.yaml"
    file.write_text(f"mistakes:\n- [b, {names[0]}, rounded]\n- [b, {names[1]}, a unit]\n")
    lines = verdict_sample.review(drawn, file).splitlines()
    high = stats.beta.ppf(0.975, 1, 20)  # none of 20
    assert lines[0] == f"false positives: 0 of 20, 0.0 % [0.0, {100 * high:.1f}]"
    assert lines[1].startswith("false negatives: 2 of 20, 10.0 % [1.2, 31.7]") and "1 rounded" in lines[1]
    file.write_text("mistakes:\n- [b, p900, rounded]\n")
    with refused("unknown-mistakes"):
        verdict_sample.review(drawn, file)
    file.write_text("mistakes:\n- [b]\n")
    with refused("invalid-review"):
        verdict_sample.review(drawn, file)


def test_what_is_printed_is_one_line_each_without_control_codes():
    row = ROWS[1] | {"gold": "1", "answer": None, "completion": "a\x1b[31m\nb"}
    printed = verdict_sample.text(row, "What\nis it?")
    assert printed.count("\n") == 4 and "\x1b" not in printed

"""The scripts of examples/python, as their docstrings call them."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.python import add_reward, compare_scores, grade_completions


def test_grade_completions(capsys: pytest.CaptureFixture[str]) -> None:
    grade_completions.main()
    assert capsys.readouterr().out.endswith("{'correct': 1, 'wrong': 1, 'no_answer': 1}\n")


def test_compare_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("".join(f"p{number},{int(number % 4 == 0)}\n" for number in range(80)))
    new.write_text("".join(f"p{number},{int(number % 4 < 2)}\n" for number in range(80)))
    compare_scores.main(str(old), str(new))
    compare_scores.main(str(new), str(old))
    compare_scores.main(str(old), str(old))
    verdicts = [line.partition(":")[0] for line in capsys.readouterr().out.rstrip("\n").split("\n")]
    assert verdicts == ["better", "worse", "cannot tell"]
    new.write_text("p0,1\n")
    with pytest.raises(SystemExit):
        compare_scores.main(str(old), str(new))


def test_add_reward(capsys: pytest.CaptureFixture[str]) -> None:
    add_reward.main()
    right, long, wrong = (float(line.split()[0]) for line in capsys.readouterr().out.rstrip("\n").split("\n"))
    assert right > long > 1 > wrong > 0

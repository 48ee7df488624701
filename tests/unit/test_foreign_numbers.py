"""Files that another harness wrote itself: the number that it printed is read from its file, and ours is the right one.

cases/foreign has the files, the program that had the harness write them, and, in numbers.yaml, what it printed.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from contracts import tables
from eval.importers.import_samples import import_samples
from grading import Item, grade
from system import json_lines
from system.errors import UserError

CASES = Path(__file__).parent / "cases" / "foreign"
PRINTED = yaml.safe_load((CASES / "numbers.yaml").read_text(encoding="utf-8"))
EXPECTED = list(json_lines.read(CASES / "problems.jsonl"))
PROBLEMS = pa.Table.from_pylist(
    [
        {"problem_id": row["name"], "task": "math", "messages": [{"role": "user", "content": row["question"]}]}
        | {"answer": row["answer"], "meta": "{}"}
        for row in EXPECTED
    ],
    tables.PROBLEM,
)


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: f"{case['file']}, {case['metric']}")
def test_the_number_that_the_harness_printed(case: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = case["layout"], [CASES / case["file"]], "math500", "foreign"
    table, source = import_samples(*arguments, problems=PROBLEMS, metric=case["metric"])
    assert f"{case['metric']} {case['printed']:.2f} (of {len(table)})" in capsys.readouterr().err
    assert 100 * sum(row["right"] for row in source) / len(source) == pytest.approx(case["printed"], abs=0.01)
    delivered = sorted(zip(*(table[name].to_pylist() for name in ("problem_id", "repeat", "completion")), strict=True))
    expected = [(row["name"], n, text) for row in EXPECTED for n, text in enumerate(row["completions"])]
    if case.get("shuffled"):  # the repeats are numbered as they come
        assert sorted((name, text) for name, _, text in delivered) == sorted((name, text) for name, _, text in expected)
    else:
        assert delivered == expected
    with pytest.raises(UserError) as caught:
        import_samples(*arguments, problems=PROBLEMS, metric="accuracy")
    assert caught.value.code == "unknown-metric" and case["metric"] in caught.value.facts["metrics"]


@pytest.mark.slow
@pytest.mark.parametrize("case", PRINTED, ids=lambda case: f"{case['file']}, {case['metric']}")
def test_which_completions_we_judge_differently(case: dict[str, object]) -> None:
    table, source = import_samples(
        case["layout"], [CASES / case["file"]], "math500", "foreign", problems=PROBLEMS, metric=case["metric"]
    )
    rows = table.to_pylist()
    grades = grade([Item("math", row["gold"], row["completion"], extraction="answer-is") for row in rows])
    repeat_of = {(row["name"], text): n for row in EXPECTED for n, text in enumerate(row["completions"])}
    key = [(row["problem_id"], repeat_of[row["problem_id"], row["completion"]]) for row in rows]
    ours = {one: graded.verdict == "correct" for one, graded in zip(key, grades, strict=True)}
    assert ours == {(row["name"], n): right for row in EXPECTED for n, right in enumerate(row["right"])}
    own = dict(zip(key, (row["right"] for row in source), strict=True))
    wrong = {f"{name}/{n}" for (name, n), right in ours.items() if right != own[name, n]}
    assert len(wrong) == case["wrong"] and wrong >= set(case.get("such_as", ()))

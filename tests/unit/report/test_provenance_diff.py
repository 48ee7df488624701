"""Why a number changed: the cause that was planted is the one that is named."""

import shutil
from pathlib import Path

import pytest
from synthetic_results import NAMES, write_scores

from analysis import provenance_diff
from contracts import provenance, tables
from tests.forked_command import run_module
from tests.user_errors import printed_code, refused

CELL = "graded/step-20/arithmetic_words.parquet"


@pytest.fixture
def other(results: Path) -> Path:
    """A second copy of the first run, for a test to change."""
    copy = results.parent / "other" / "runs" / NAMES[0]
    shutil.copytree(results / "runs" / NAMES[0], copy)
    return copy


def diff(results: Path, other: Path, **only: object) -> str:
    return provenance_diff.provenance_diff(
        provenance_diff.load_run_folder(results / "runs" / NAMES[0]), provenance_diff.load_run_folder(other), **only
    )  # type: ignore[arg-type]


@pytest.mark.slow
def test_nothing_changed(results: Path, other: Path) -> None:
    text = diff(results, other)
    assert "same samples, same verdicts" in text and "records are the same" in text
    assert "samples have" not in text


@pytest.mark.slow
def test_another_grader(results: Path, other: Path, rewrite) -> None:
    def regrade(rows):
        rows["grader"] = "another 2.0"
        changed = rows.index[rows["verdict"] == "wrong"][:2]
        rows.loc[changed, "verdict"] = "correct"
        return rows

    before = tables.read(other / CELL, tables.GRADED).to_pandas()["verdict"]
    planted = min(2, int((before == "wrong").sum()))
    rewrite(other / CELL, tables.GRADED, regrade)
    provenance.write(other / CELL, grader="another 2.0", decoding={"temperature": 1.0, "max_tokens": 160, "n": 2})
    write_scores(other)
    text = diff(results, other, step=20, benchmark="arithmetic_words")
    assert planted and f"  {planted} of 12 samples have the same completion and another verdict" in text
    assert f"by grading alone: {planted} became correct, 0 became wrong; by other completions: 0 became correct" in text
    assert "grader:\n  graded: grader: math-verify 0.8.0 → another 2.0" in text
    assert "another completion" not in text


@pytest.mark.slow
def test_other_decoding_and_data(results: Path, other: Path, rewrite) -> None:
    rewrite(other / CELL, tables.GRADED, lambda rows: rows.assign(completion="other", prompt="asked", gold="1"))
    provenance.write(other / CELL, grader="math-verify 0.8.0", decoding={"temperature": 0.0, "max_tokens": 160, "n": 2})
    write_scores(other)
    text = diff(results, other)
    assert "12 of 12 samples have another prompt" in text
    assert "12 of 12 samples have another gold answer" in text and "12 of 12 samples have another completion" in text
    assert "prompts and decoding:\n  graded: decoding.temperature: 1.0 → 0.0" in text


@pytest.mark.slow
def test_names_and_outcomes_are_no_reasons_and_lists_show_what_differs(results: Path, other: Path) -> None:
    record = {"verdicts": {"wrong": 3}, "stop": ["a", "b" * 200, "c"], "output": f"runs/{NAMES[0]}/graded"}
    provenance.write(results / "runs" / NAMES[0] / CELL, **record)
    provenance.write(other / CELL, **record | {"verdicts": {"wrong": 4}, "stop": ["a", "d\ne"]})
    text = diff(results, other, step=20, benchmark="arithmetic_words")
    (line,) = [line for line in text.splitlines() if "stop" in line]
    assert line.startswith("  graded: stop: bbb") and line.endswith("→ d e") and len(line) < 150
    assert "verdicts:" not in text and "output" not in text
    assert "stop" not in diff(results, other, step=40) and "stop" in diff(results, other, step=20)
    assert "stop" not in diff(results, other, step=20, benchmark="arithmetic_expressions")


def test_lists_of_the_same_items_in_other_numbers_or_another_order(results: Path, other: Path) -> None:
    command = ["--cpus", "1", "--gpus", "0", "--seed"]
    provenance.write(results / "runs" / NAMES[0] / CELL, command=[*command, "0"], devices=["a", "b"])
    provenance.write(other / CELL, command=[*command, "1"], devices=["b", "a"])
    text = diff(results, other, step=20, benchmark="arithmetic_words")
    assert "  graded: command: 0 → 1\n" in text
    assert "  graded: devices: the same items in another order\n" in text


@pytest.mark.slow
def test_records_and_steps_that_only_one_result_has_are_named(results: Path, other: Path) -> None:
    (other / f"{CELL}.provenance.json").unlink()
    assert "records:\n  graded: a record of only the first result\n" in diff(results, other)
    shutil.rmtree(other / "graded/step-20")
    write_scores(other)
    text = diff(results, other)
    assert "step 40" in text and "only the first has step 20\n" in text and "only the second" not in text
    assert "step 20," not in text and "records:" not in text and "not recorded" not in text


def test_no_score_in_common_and_no_run(results: Path, other: Path) -> None:
    with refused("no-common-score", step=7, benchmark="aime24"):
        diff(results, other, step=7, benchmark="aime24")
    with refused("not-a-run"):
        provenance_diff.load_run_folder(results.parent)


@pytest.mark.slow
def test_command(results: Path, other: Path) -> None:
    folders = [str(results / "runs" / NAMES[0]), str(other)]
    names = [f"{NAMES[0]}/step-20", f"{other}/graded/step-20", "--results", str(results)]
    for arguments in ([*folders, "--step", "20"], names):
        done = run_module("analysis.provenance_diff", *arguments)
        assert done.returncode == 0 and done.stdout.count("same samples, same verdicts") == 2, done.stderr
    done = run_module("analysis.provenance_diff", f"{NAMES[0]}/step-20", f"{NAMES[0]}/step-40", *names[2:])
    assert done.returncode == 1 and printed_code(done.stderr) == "several-steps"

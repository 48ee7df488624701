"""An incomplete run is refused, and the error says what is missing."""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_results import NAMES

import analysis.load_results
from analysis.load_results import load_results
from analysis.measures import bad_cases, reasoning_patterns
from analysis.report import sample_browser
from analysis.report.sections import completions as completions_section
from analysis.report.sections import lengths
from analysis.results import SAMPLE_COLUMNS, check_one_measurement
from contracts import paths, tables
from system.errors import UserError
from tests.user_errors import refused

CELL = "graded/step-20/arithmetic_words.parquet"


@pytest.fixture
def folder(results: Path) -> Path:
    return results / "runs" / NAMES[0]


def refusal(results: Path, *benchmarks: str) -> str:
    """The sentence: it names the cell of the grid that is missing or does not fit."""
    with pytest.raises(UserError) as error:
        load_results(results, NAMES[0], benchmarks)
    return str(error.value)


def test_a_complete_run_loads(results: Path) -> None:
    run = load_results(results, NAMES[0])
    assert run.steps == [0, 20, 40]
    assert run.benchmarks == ["arithmetic_expressions", "arithmetic_words"]
    assert len(run.graded) == 3 * 2 * 6 * 2
    assert len(run.log) == 40
    assert {path.split("/")[0].split(".")[0] for path in run.provenance} == {"training_log", "graded", "scores"}


def test_unknown_run_names_the_known_ones(results: Path) -> None:
    with refused("unknown-name", name="openr1/nope/seed-0", known=NAMES):
        load_results(results, "openr1/nope/seed-0")
    (results / "runs" / "openr1").rename(results / "runs" / "imported")  # whose names may have two parts
    (results / "runs" / "imported" / "math-7b" / "seed-0").rename(results / "runs" / "imported" / "mine")
    known = ["imported/math-7b/seed-1", "imported/mine"]
    with refused("unknown-name", name="imported/mien", known=known):
        load_results(results, "imported/mien")


def test_a_folder_of_runs_names_those_in_it(results: Path) -> None:
    inside = [name for name in NAMES if name.startswith("openr1/math-7b/")]
    with refused("unknown-name", name="openr1/math-7b", known=inside):
        load_results(results, "openr1/math-7b")


@pytest.mark.parametrize("name", ["training_log.parquet", "scores.parquet"])
def test_missing_table(results: Path, folder: Path, name: str) -> None:
    (folder / name).unlink()
    with refused("missing-table", run=NAMES[0], table=name):
        load_results(results, NAMES[0])


def test_missing_benchmark_at_one_checkpoint(results: Path, folder: Path) -> None:
    (folder / CELL).unlink()
    assert "step 20 on arithmetic_words has no graded samples" in refusal(results)


def test_benchmark_that_was_asked_for_but_never_run(results: Path) -> None:
    assert "step 0 on aime24 has no graded samples" in refusal(results, "arithmetic_words", "aime24")


def test_only_the_benchmarks_asked_for(results: Path, folder: Path) -> None:
    (folder / CELL).unlink()
    assert load_results(results, NAMES[0], ["arithmetic_expressions"]).benchmarks == ["arithmetic_expressions"]


def test_checkpoint_that_was_never_evaluated(results: Path, folder: Path) -> None:
    (folder / "checkpoints/step-30").mkdir(parents=True)
    assert "step 30 on arithmetic_expressions has no graded samples" in refusal(results)


def test_base_model_not_evaluated(results: Path, folder: Path, rewrite) -> None:
    shutil.rmtree(folder / "graded/step-0")
    rewrite(folder / "scores.parquet", tables.SCORE, lambda scores: scores[scores["step"] > 0])
    assert "step 0, the base model, was not evaluated" in refusal(results)


def test_samples_without_a_score(results: Path, folder: Path, rewrite) -> None:
    rewrite(folder / "scores.parquet", tables.SCORE, lambda scores: scores.iloc[1:])
    assert "has no score" in refusal(results)


def flip(rows: pd.DataFrame) -> pd.DataFrame:
    rows.loc[0, "verdict"] = "wrong" if rows.loc[0, "verdict"] == "correct" else "correct"
    return rows


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (
            lambda rows: rows[rows["problem_id"] != "arithmetic_words-0003"],
            "step 20 on arithmetic_words lacks 1 of 6 problems, such as arithmetic_words-0003",
        ),
        (lambda rows: rows.iloc[:-1], "has 11 samples of 6 problems, but its score counts 6 × 2"),
        (lambda rows: rows.iloc[[0, 0, *range(2, len(rows))]], "step 20 on arithmetic_words has 12 samples"),
        (flip, "has other verdicts than its score counts"),
        (lambda rows: rows.assign(protocol="greedy"), "mixes protocols (demo, greedy)"),
    ],
    ids=["missing problem", "missing repeat", "one twice instead of another", "scores of others", "two protocols"],
)
def test_samples_that_do_not_fit(results: Path, folder: Path, rewrite, damage, reason: str) -> None:
    rewrite(folder / CELL, tables.GRADED, damage)
    assert reason in refusal(results)


def test_tables_of_another_run(results: Path, folder: Path) -> None:
    for file in (results / "runs" / NAMES[1]).glob("training_log.parquet*"):
        shutil.copy(file, folder)
    assert f"name {NAMES[1]} instead" in refusal(results)


def test_truncated_file(results: Path, folder: Path) -> None:
    path = folder / CELL
    path.write_bytes(path.read_bytes()[:-100])
    said = refusal(results)
    assert f"{path} should be a Parquet table but cannot be read" in said
    assert said.endswith(f"delete {folder / 'graded'} to have it made again")


def test_a_table_that_is_not_there_and_one_of_another_kind(folder: Path) -> None:
    with refused("missing-table"):
        tables.read(folder / "graded" / "step-7.parquet", tables.GRADED)
    with refused("other-table"):
        tables.read(folder / "training_log.parquet", tables.GRADED)


def test_more_gaps_than_fit_are_counted(results: Path, folder: Path) -> None:
    for step in range(50, 60):
        (folder / f"checkpoints/step-{step}").mkdir(parents=True)
    with refused("incomplete-run", run=NAMES[0], missing=20):
        load_results(results, NAMES[0])


def test_text_that_is_not_utf8_is_shown_as_escapes(results: Path, folder: Path) -> None:
    table = pq.read_table(folder / CELL)
    raw = [b"caf\xe9", *(text.encode() for text in table["completion"].to_pylist()[1:])]
    broken = pa.Array.from_buffers(pa.string(), len(raw), pa.array(raw, pa.binary()).buffers())
    position = table.schema.get_field_index("completion")
    pq.write_table(table.set_column(position, table.schema.field(position), broken), folder / CELL)
    paths.record(folder / CELL).unlink()  # with the hash of the table before
    assert load_results(results, NAMES[0]).samples(20, "arithmetic_words")["completion"].iloc[0] == "caf\\xe9"


def test_nan_in_the_log_differs_from_what_is_not_reported(results: Path, folder: Path) -> None:
    path = folder / "training_log.parquet"
    rows = tables.read(path, tables.TRAINING_LOG).to_pylist()
    rows[4]["reward_mean"], rows[7]["grad_norm"] = float("nan"), float("inf")
    tables.write(pa.Table.from_pylist(rows, tables.TRAINING_LOG), tables.TRAINING_LOG, path)
    assert load_results(results, NAMES[0]).not_finite == {"reward_mean": [5], "grad_norm": [8]}


@pytest.mark.slow
def test_texts_that_do_not_fit_into_memory_are_read_when_they_are_asked_for(
    results: Path, folder: Path, rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, lists = load_results(results, NAMES[0]), reasoning_patterns.load_lists()
    monkeypatch.setattr(analysis.load_results, "MAX_IN_MEMORY", 0)
    large = load_results(results, NAMES[0])
    assert "completion" in usual.graded and "completion" not in large.graded
    assert large.cells == usual.cells
    for cell in usual.cells:
        pd.testing.assert_frame_equal(large.samples(*cell)[SAMPLE_COLUMNS], usual.samples(*cell)[SAMPLE_COLUMNS])
    pd.testing.assert_frame_equal(reasoning_patterns.table(large, lists), reasoning_patterns.table(usual, lists))
    (counts, examples), (others, usual_examples) = bad_cases.count(large), bad_cases.count(usual)
    pd.testing.assert_frame_equal(counts, others)
    assert examples and examples == usual_examples
    assert lengths.thinks(large) == lengths.thinks(usual)
    for name in usual.benchmarks:
        assert completions_section.choose_pairs(large, name) == completions_section.choose_pairs(usual, name)
    check_one_measurement(large)
    pages = []
    for name, run in (("usual", usual), ("large", large)):
        sample_browser.write([run], lists, "t", results / name)
        pages.append({file.name: file.read_bytes() for file in (results / name).iterdir()})
    assert pages[0] == pages[1]
    rewrite(folder / CELL, tables.GRADED, lambda rows: rows.iloc[:-1])
    with refused("samples-changed"):
        large.samples(20, "arithmetic_words")

"""Generations made elsewhere get the same report: imported, graded, scored and reported, without a training log."""

from pathlib import Path

import pyarrow as pa
import pytest
from test_report_page import check_page

from analysis.load_results import load_results
from analysis.measures.diagnostics import diagnose
from analysis.report.build import report
from contracts import tables
from eval.importers.import_samples import import_samples
from eval.score import score_run
from grading import Item, grade
from tests.stand_ins import qwen_generations

pytestmark = pytest.mark.slow
RUN = "imported/qwen2.5-math-1.5b-instruct/seed-0"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results, generations = (
        tmp_path_factory.mktemp("results") / "full",
        qwen_generations(tmp_path_factory.mktemp("mirror")),
    )
    folder = results / "runs" / RUN
    for name in ("amc23", "aime24"):
        samples = import_samples("qwen-math", [generations / f"{name}.jsonl"], name, RUN)[0].to_pylist()
        verdicts = grade([Item("math", row["gold"], row["completion"]) for row in samples])
        rows = [
            row | {"answer": verdict.answer, "verdict": verdict.verdict, "grader": verdict.grader}
            for row, verdict in zip(samples, verdicts, strict=True)
        ]
        path = folder / "graded" / "step-0" / f"{name}.parquet"
        tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
    tables.write(score_run(folder / "graded"), tables.SCORE, folder / "scores.parquet")
    return results


def test_imported_generations_are_reported_like_any_others(imported: Path, tmp_path: Path) -> None:
    run = load_results(imported, RUN)
    assert not run.trained and run.label(0) == "as imported" and run.benchmarks == ["aime24", "amc23"]
    html = report([run], tmp_path, "Imported", "full").read_text(encoding="utf-8")
    check_page(html)
    assert "These generations are imported:" in html and "as imported" in html
    assert "1 run of imported generations: 1 checkpoint with 70 graded completions on 70 problems of aime24" in html
    assert not (tmp_path / "figures" / "reward.svg").exists() and (tmp_path / "figures" / "outcomes.svg").exists()
    assert (tmp_path / "samples" / "index.html").is_file()
    assert (
        "token counts of these completions were not recorded" in html
        and not (tmp_path / "figures" / "length_distribution.svg").exists()
    )


def test_warnings_name_what_is_unknown(imported: Path) -> None:
    topics = [(warning.topic, warning.text) for warning in diagnose(load_results(imported, RUN))]
    assert ("imported", "these generations are imported: there is no training log and no checkpoint") in topics
    assert any(topic == "truncation" and "unknown" in text for topic, text in topics)

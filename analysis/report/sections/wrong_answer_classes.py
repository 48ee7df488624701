"""Wrong answers at the last checkpoint by the classes that a document counted by hand, where a rule can decide.

Beside them are the document's own shares (results/reference/bad_case_classes.yaml). A completion has the first class
whose rule holds; all others are "not classified", among them all misread problems.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.measures.arithmetic_errors import false_equations
from analysis.pages.table_texts import Table, percent
from analysis.reference import CLASSES
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults
from system.yaml_files import read_yaml

NAME = "bad_case_classes"
UNUSABLE = ("ungradable",)  # the gold answer is at fault


def class_of(verdict: str, answer: object, completion: str) -> str | None:
    """The class of a completion that is not correct, by rule; None where no rule decides it.

    Args:
        verdict: of the grader.
        answer: what it found; null if nothing.
        completion: the whole text.
    """
    if verdict in ("no_answer", "format_error"):
        return "format"
    if verdict == "wrong" and not any(letter.isdigit() for letter in str(answer)):
        return "format"
    return "false_step" if verdict == "wrong" and false_equations(completion) else None


def classes_table(runs: Sequence[RunResults]) -> Table | None:
    """The classes of each run of the document's recipes and each benchmark; None where there is no such run."""
    reference = read_yaml(CLASSES)
    published, rows = reference["published"], []
    for run in runs:
        if run.name.partition("/")[0] not in reference["recipes"]:
            continue
        for benchmark in run.benchmarks:
            samples = run.samples(run.last, benchmark)
            bad = samples[~samples["verdict"].isin(("correct", *UNUSABLE))]
            classes = [
                class_of(str(row.verdict), row.answer, str(row.completion or "")) for row in bad.itertuples(index=False)
            ]
            counts = {name: classes.count(name) for name in published}
            rows.append(
                {"run": run.name, "benchmark": benchmark, "step": run.last, "bad": len(bad), **counts}
                | {"not_classified": classes.count(None)}
            )
    if not rows:
        return None
    data = pd.DataFrame(rows)

    def shares(name: str) -> list[str]:
        pairs = zip(data[name], data["bad"], strict=True)
        return [f"{count:,} ({percent(count / bad)} %)" if bad else "–" for count, bad in pairs]

    texts = {
        "run": data["run"],
        "benchmark": data["benchmark"],
        "not correct": data["bad"].map("{:,}".format),
        f"no number as answer (published {percent(published['format'], 0)} %)": shares("format"),
        f"false equation (published, wrong steps: {percent(published['false_step'], 0)} %)": shares("false_step"),
        f"not classified (published, misread: {percent(published['misread'], 0)} %)": shares("not_classified"),
    }
    return Table(NAME, data.drop(columns="misread"), pd.DataFrame(texts))


def content(report: ReportData) -> Content | None:
    """The table, where a run is of the document's recipes."""
    table = classes_table(report.runs)
    return Content([table]) if table else None


SECTION = Section(
    order=910,
    content=content,
    tables={
        NAME: (
            "Completions of the last checkpoint that are not correct, by the classes of the GSM8K notes where a rule "
            "can decide them, beside the notes' own shares. Misread problems cannot be told by rule and are among "
            "those not classified."
        )
    },
    text="""\
{{ table("bad_case_classes", "Completions of the last checkpoint that are not correct, by the classes of the
GSM8K notes where a rule can decide them, beside the notes' own shares, counted by hand.", 2) }}
""",
)

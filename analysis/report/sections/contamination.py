"""What a run's base model completes of its benchmarks' questions, beside a generated twin, with release dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.pages.table_texts import Table, interval_text, percent
from analysis.reference import RELEASES
from analysis.report.report_data import ReportData, RunFacts
from analysis.report.section import Content, Section
from analysis.results import RunResults
from eval.contamination import BENCHMARK, MEASURES, TWIN, smallest_read_share
from eval.statistics import Estimate, significance
from recipes import models
from system.yaml_files import read_yaml
from tasks import dataset_specs

SHARE = 60  # percent of a question, for the column and the verdict
UNKNOWN, HERE = "unknown", "made here"


def released(kind: str, name: str) -> str:
    """When a model or benchmark was published, as in results/reference/release_dates.yaml; unknown says unknown.

    Args:
        kind: models or benchmarks. A model has the date of the longest name that its own begins with.
        name: as in recipes/models.yaml, or a benchmark's.
    """
    known = read_yaml(RELEASES)[kind]
    if kind == "models":
        name = max((key for key in known if name.startswith(key)), key=len, default=name)
    return str(known[name]["date"]) if name in known else UNKNOWN


def _of_model(name: str) -> str:
    if name in models.library() and "demo_task" in models.find(name):
        return HERE
    return released("models", models.pretrained(name))


def _of_benchmark(name: str) -> str:
    generated = name in dataset_specs.entries() and "generate" in dataset_specs.find(name).spec
    return HERE if generated else released("benchmarks", name)


def _estimate(row: Mapping[str, Any], name: str) -> Estimate:
    return Estimate(float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"]))


def table_cell(run: RunResults) -> str:
    """For the table of runs: exact completions of 60 % of a question, mean over benchmarks, and of the twins."""
    measured = run.contamination
    if measured.empty:
        return "–"
    means = measured[measured["share"] == SHARE].groupby("kind")["exact"].mean()
    return f"{percent(float(means[BENCHMARK]))} (twin {percent(float(means[TWIN]))})"


def contamination_table(runs: Sequence[RunResults], facts: Mapping[str, RunFacts]) -> Table | None:
    """A row for each run, benchmark and share of the question; None where `snakemake contamination` has not been run.

    A benchmark counts as read if the model completes more of its questions word for word than of their twins, by the
    exact test of eval.contamination with Holm's correction over all rows.

    Args:
        runs: all of the page.
        facts: what they are, by name.
    """
    measured = [
        (run, str(benchmark), int(str(share)), {str(row["kind"]): row for row in rows.to_dict("records")})
        for run in runs
        if not run.contamination.empty
        for (benchmark, share), rows in run.contamination.groupby(["benchmark", "share"])
    ]
    # Probes of earlier releases have no test: they are shown, and decide nothing.
    adjusted = significance.holm([float(sides[BENCHMARK].get("p_value", 1.0)) for *_, sides in measured])
    data, texts = [], []
    for (run, benchmark, share, sides), p_value in zip(measured, adjusted, strict=True):
        own, twin = ({str(key): value for key, value in sides[kind].items()} for kind in (BENCHMARK, TWIN))
        pairs, more, fewer = (int(own.get(name, 0)) for name in ("pairs", "more", "fewer"))
        verdict = "read before" if p_value <= significance.ALPHA and more > fewer else "cannot tell"
        power = smallest_read_share(pairs, significance.ALPHA / len(measured))
        dates = (_of_model(facts[run.name].model), _of_benchmark(benchmark))
        shares = {
            f"{title}{', twin' if side is twin else ''} (%)": interval_text(_estimate(side, name), percent)
            for name, title in zip(MEASURES, ("exact", "ROUGE-L", "right answer"), strict=True)
            for side in (own, twin)
        }
        texts.append(
            {
                "run": run.display_name, "model of": dates[0], "benchmark": benchmark, "benchmark of": dates[1],
                "shown of the question": f"{share} %", **shares,
                "pairs tested": pairs, "completed alone, and by the twin alone": f"{more}, {fewer}",
                "p (Holm)": f"{p_value:.4f}",
                "noticed from (%)": percent(power) if power else "–", "verdict": verdict,
            }
        )  # fmt: skip
        both = {f"{kind}_{name}": side[name] for kind, side in ((BENCHMARK, own), (TWIN, twin)) for name in MEASURES}
        data.append(
            {
                "run": run.name, "benchmark": benchmark, "share": share, "model_released": dates[0],
                "benchmark_released": dates[1], **both, "pairs": pairs, "more": more, "fewer": fewer,
                "p_adjusted": p_value, "noticed_from": power, "verdict": verdict,
            }
        )  # fmt: skip
    return Table("contamination", pd.DataFrame(data), pd.DataFrame(texts)) if texts else None


def content(report: ReportData) -> Content | None:
    """The table, where `snakemake contamination` was run."""
    table = contamination_table(report.runs, report.facts)
    return Content([table]) if table else None


SECTION = Section(
    order=1200,
    title="Benchmarks that were read before",
    anchor="contamination",
    link="Read before",
    content=content,
    tables={
        "contamination": (
            "What a run's base model completes of the first 40, 60 and 80 % of its benchmarks' questions, word for "
            "word, by ROUGE-L, and with the right answer, beside a twin of generated questions, with the release "
            "dates of model and benchmark."
        )
    },
    text="""\
<p>The base model continues the first 40, 60 and 80 % of each question, greedily and without a chat template (after Wu
et al., arXiv:2507.10532): how often it writes the rest word for word, how alike the texts are, and how often the right
answer follows. Set phrases are completed by models that have not read a benchmark, so that only questions are tested
whose rest says at least two numbers that the beginning does not. Each has a twin of its own: a generated text, which no
model has read, with a beginning of the same length, as many words left, and new numbers among them. A benchmark counts
as read before if more of its questions are completed than of their twins: the chance of any false such verdict in the
table is at most 5 % (exact test of the pairs, Holm). The last number is the smallest share of read questions that would
have been noticed with 80 % power.</p>
{{ table("contamination", "What the base model completes of its benchmarks' questions. Dates: when the
model and the benchmark were published.", 5) }}
""",
)

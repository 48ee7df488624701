"""Warnings that a reader needs before trusting the numbers: training trouble, truncation, gaps, mixed provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.results import BASE, RunResults
from frameworks import collapse
from system.text_safety import visible

TRUNCATION = 0.05  # warn if a larger share of completions is truncated
ONE_ANSWER = 0.95  # warn if one answer is this share of those to at least so many different problems
FEWEST_PROBLEMS = 20
# Columns of the log without which trouble cannot be detected.
NOT_REPORTED = "the training log does not report"
NEEDED = (
    "reward_mean", "reward_std", "accuracy", "format_error_rate", "wrong_answer_rate", "response_length_mean",
    "response_length_max", "truncated_rate", "zero_signal_rate",
)  # fmt: skip
MAX_PLACES = 4  # named in a warning about truncation
Found = tuple[str, str]  # topic and text


@dataclass(frozen=True)
class Diagnostic:
    """One warning about one run, with its evidence."""

    run: str
    topic: str
    text: str


def steps_text(steps: Sequence[int], most: int = 5) -> str:
    """Steps in words: all of them if there are few, else the first ones and their number."""
    if len(steps) <= most:
        return f"{'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"
    return f"{len(steps)} steps (the first: {', '.join(map(str, steps[:most]))})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + "\N{NO-BREAK SPACE}%"


def _training(run: RunResults) -> Iterator[Found]:
    log = run.log
    for column, steps in run.not_finite.items():
        yield "not a number", f"{column} is NaN or infinite at {steps_text(steps)} of the training log"
    reward = log["reward_mean"].dropna()
    if reward.empty:
        yield "no reward", "the training log reports no reward"
    elif len(reward) > 1 and reward.nunique() == 1:
        yield "flat reward", f"the mean reward is {reward.iloc[0]:g} at all {len(reward)} steps"
    if silent := log.loc[(log["zero_signal_rate"] >= 1) | (log["reward_std"] == 0), "step"].tolist():
        evidence = f"all rewards of each group are equal at {steps_text(silent)} of {len(log)}"
        yield "no signal", f"{evidence}: nothing can be learned there"
    finite = (
        log.drop(columns=["run", "rewards", "phases"], errors="ignore")
        .replace([np.inf, -np.inf], np.nan)
        .astype(object)
    )
    for _, rows in finite.where(finite.notna(), None).groupby("stage"):
        for sign in collapse.signs(
            [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]
        ):
            if sign.grave:
                yield "collapse", f"{sign.kind} at step {sign.step}: {sign.evidence}"
            elif sign.kind == "sampler mismatch":
                yield sign.kind, f"step {sign.step}: {sign.evidence}"
    cut = log[log["truncated_rate"] > TRUNCATION]
    if len(cut):
        worst = cut.sort_values("truncated_rate", ascending=False, kind="stable").iloc[0]
        evidence = f"over {_percent(TRUNCATION)} of the completions are truncated at {steps_text(cut['step'].tolist())}"
        most = f"at most {_percent(worst['truncated_rate'])}, at step {worst['step']}"
        yield "truncation in training", f"{evidence} of {len(log)}; {most}"


def _gaps(run: RunResults) -> Iterator[Found]:
    log = run.log
    if absent := [column for column in NEEDED if log[column].isna().all()]:
        yield "log", f"{NOT_REPORTED} {', '.join(absent)}: trouble there would not be detected"
    for column in NEEDED:
        unknown = log.loc[log[column].isna(), "step"].tolist()
        if 0 < len(unknown) < len(log) and column not in run.not_finite:
            yield "log", f"the training log has no {column} at {steps_text(unknown)} of {len(log)}"
    for stage, steps in log.groupby("stage")["step"]:
        if repeated := sorted(set(steps[steps.duplicated()])):
            yield "log", f"stage {stage} logs {steps_text(repeated)} more than once"
        distance = pd.Series(sorted(set(steps))).diff().dropna()
        usual = distance.mode().min() if len(distance) else 1
        if len(wide := distance[distance > usual]):
            yield "log", f"gaps in the log of stage {stage}: {len(wide)}, the widest of {int(wide.max())} steps"
    trained_to = int(log["step"].max())
    if run.evaluated and log["stage"].nunique() == 1 and trained_to > run.last:
        text = f"training reached step {trained_to}, but the last evaluated checkpoint is step {run.last}"
        yield "checkpoints", text
    if run.steps == [BASE]:
        yield "checkpoints", "only the base model was evaluated: there is nothing to compare it with"


def _evaluation(run: RunResults) -> Iterator[Found]:
    if parts := [f"{part} of {name}" for name in run.benchmarks if (part := run.subset(name))]:
        yield "limited", f"only a part was evaluated, which is never compared with the whole: {'; '.join(parts)}"
    cut = run.scores[run.scores["truncated_rate"] > TRUNCATION].sort_values(["truncated_rate", "step"], ascending=False)
    if len(cut):
        worst = cut.head(MAX_PLACES)
        places = zip(worst["truncated_rate"], worst["benchmark"], worst["step"], strict=True)
        where = ", ".join(f"{_percent(rate)} on {benchmark} at step {step}" for rate, benchmark, step in places)
        more = f" and less in {len(cut) - len(worst)} more of {len(run.scores)} scores" if len(cut) > len(worst) else ""
        yield "truncation", f"held-out completions were truncated at the length limit: {where}{more}"
    for name, rows in run.scores.dropna(subset="truncated_rate").sort_values("step").groupby("benchmark"):
        shares = zip(rows["step"], rows["truncated_rate"], strict=True)
        for sign in collapse.signs(({"step": step, "truncated_rate": share} for step, share in shares), window=1):
            yield "collapse", f"{sign.kind} on held-out {name} at step {sign.step}: {sign.evidence}"
    if unknown := sorted(run.scores.loc[run.scores["truncated_rate"].isna(), "benchmark"].unique()):
        yield "truncation", f"truncation on {', '.join(unknown)} is unknown: no finish reasons were recorded"
    for benchmark, bad in run.scores.groupby("benchmark")["n_ungradable"].sum().items():
        if bad:
            yield (
                "grading",
                f"completions on {benchmark} that could not be graded: {bad}; those scores are lower bounds",
            )
    if len(graders := sorted({str(name) for name in run.graded["grader"].unique()})) > 1:
        yield "grading", f"verdicts come from different graders: {', '.join(graders)}"


def _one_answer(run: RunResults) -> Iterator[Found]:
    """Checkpoints that answer nearly everything alike: their accuracy is the share of such golds."""
    places = []
    stated = run.graded[run.graded["verdict"].isin(["correct", "wrong"]) & run.graded["answer"].notna()]
    for (benchmark, step), rows in stated.groupby(["benchmark", "step"]):
        answer, count = next(iter(rows["answer"].value_counts().items()))
        is_varied = rows["problem_id"].nunique() >= FEWEST_PROBLEMS and rows["gold"].nunique() > 1
        if is_varied and count >= ONE_ANSWER * len(rows):
            share, right = count / len(rows), (rows.loc[rows["answer"] == answer, "verdict"] == "correct").mean()
            what = f"{visible(str(answer))[:40]} is {_percent(share)} of the answers on {benchmark} at step {step}"
            places.append(f"{what}, and right in {_percent(right)}")
    if places:
        more = f", and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
        yield "one answer", f"{'; '.join(places[:MAX_PLACES])}{more}: that needs no look at the question"


def _provenance(run: RunResults) -> Iterator[Found]:
    if not run.provenance:
        yield "provenance", "there is no provenance record: how these numbers were made is unknown"
        return
    if dirty := sum(bool(record.get("git_dirty")) for record in run.provenance.values()):
        yield "provenance", f"{dirty} of {len(run.provenance)} records were made by code with uncommitted changes"
    if len(commits := sorted({str(r.get("git_commit"))[:12] for r in run.provenance.values()})) > 1:
        yield "provenance", f"parts were made at different commits: {', '.join(commits)}"
    for wanted in ["training_log"] * run.trained + ["scores"] * run.evaluated:
        if not any(name.startswith(wanted) for name in run.provenance):
            yield "provenance", f"{wanted}.parquet has no provenance record"


IMPORTED = ("imported", "these generations are imported: there is no training log and no checkpoint")
LOG_ALONE = ("imported", "this training log is imported: there are no completions of its checkpoints")


def diagnose(run: RunResults) -> list[Diagnostic]:
    """All warnings about a run, the most serious first."""
    trained = run.trained
    evaluation = _evaluation(run) if run.evaluated else [LOG_ALONE]
    parts = [
        *(_training(run) if trained else [] if run.is_model else [IMPORTED]),
        *evaluation,
        *(_one_answer(run) if run.evaluated else []),
        *(_gaps(run) if trained else []),
    ]
    return [Diagnostic(run.name, topic, text) for topic, text in [*parts, *_provenance(run)]]

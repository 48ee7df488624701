"""Warnings that a reader needs before trusting the numbers: training trouble, truncation, gaps, mixed provenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.results import BASE, RunResults
from frameworks import collapse

TRUNCATION = 0.05  # warn if a larger share of completions is truncated
# Columns of the log without which trouble cannot be detected.
NEEDED = (
    "reward_mean", "reward_std", "accuracy", "format_error_rate", "wrong_answer_rate", "response_length_mean",
    "response_length_max", "truncated_rate", "zero_signal_rate",
)  # fmt: skip
MAX_PLACES = 4  # named in a warning about truncation


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


def _training(run: RunResults) -> list[tuple[str, str]]:
    log, found = run.log, []
    if not run.trained:
        return [("imported", "these generations are imported: there is no training log and no checkpoint")]
    for column, steps in run.not_finite.items():
        found.append(("not a number", f"{column} is NaN or infinite at {steps_text(steps)} of the training log"))
    reward = log["reward_mean"].dropna()
    if reward.empty:
        found.append(("no reward", "the training log reports no reward"))
    elif len(reward) > 1 and reward.nunique() == 1:
        found.append(("flat reward", f"the mean reward is {reward.iloc[0]:g} at all {len(reward)} steps"))
    silent = log.loc[(log["zero_signal_rate"] >= 1) | (log["reward_std"] == 0), "step"].tolist()
    if silent:
        evidence = f"all rewards of each group are equal at {steps_text(silent)} of {len(log)}"
        found.append(("no signal", f"{evidence}: nothing can be learned there"))
    for _, stage in log.groupby("stage"):
        rows = stage.drop(columns="run").replace([np.inf, -np.inf], np.nan).to_dict("records")
        for sign in collapse.signs([{str(key): None if pd.isna(v) else v for key, v in row.items()} for row in rows]):
            if sign.grave:
                found.append(("collapse", f"{sign.kind} at step {sign.step}: {sign.evidence}"))
    cut = log[log["truncated_rate"] > TRUNCATION]
    if len(cut):
        most = cut["truncated_rate"].max()
        where = int(cut.loc[cut["truncated_rate"] == most, "step"].iloc[0])
        evidence = f"over {_percent(TRUNCATION)} of the completions are truncated at {steps_text(cut['step'].tolist())}"
        found.append(("truncation in training", f"{evidence} of {len(log)}; at most {_percent(most)}, at step {where}"))
    return found


def _gaps(run: RunResults) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if not run.trained:
        return found
    if absent := [column for column in NEEDED if run.log[column].isna().all()]:
        text = f"the training log does not report {', '.join(absent)}: trouble there would not be detected"
        found.append(("log", text))
    for column in NEEDED:
        unknown = run.log.loc[run.log[column].isna(), "step"].tolist()
        if 0 < len(unknown) < len(run.log) and column not in run.not_finite:
            found.append(("log", f"the training log has no {column} at {steps_text(unknown)} of {len(run.log)}"))
    for stage, rows in run.log.groupby("stage"):
        steps = rows["step"].tolist()
        if repeated := sorted({s for s in steps if steps.count(s) > 1}) if len(set(steps)) < len(steps) else []:
            found.append(("log", f"stage {stage} logs {steps_text(repeated)} more than once"))
        distance = pd.Series(sorted(set(steps))).diff().dropna()
        usual = distance.mode().min() if len(distance) else 1
        if len(wide := distance[distance > usual]):
            text = f"gaps in the log of stage {stage}: {len(wide)}, the widest of {int(wide.max())} steps"
            found.append(("log", text))
    trained_to = int(run.log["step"].max())
    if run.log["stage"].nunique() == 1 and trained_to > run.last:
        text = f"training reached step {trained_to}, but the last evaluated checkpoint is step {run.last}"
        found.append(("checkpoints", text))
    if run.steps == [BASE]:
        found.append(("checkpoints", "only the base model was evaluated: there is nothing to compare it with"))
    return found


def _evaluation(run: RunResults) -> list[tuple[str, str]]:
    found = []
    cut = run.scores[run.scores["truncated_rate"] > TRUNCATION].sort_values(["truncated_rate", "step"], ascending=False)
    if len(cut):
        worst = cut.head(MAX_PLACES)
        places = zip(worst["truncated_rate"], worst["benchmark"], worst["step"], strict=True)
        where = ", ".join(f"{_percent(rate)} on {benchmark} at step {step}" for rate, benchmark, step in places)
        more = f" and less in {len(cut) - len(worst)} more of {len(run.scores)} scores" if len(cut) > len(worst) else ""
        found.append(("truncation", f"held-out completions were truncated at the length limit: {where}{more}"))
    unknown = sorted(run.scores.loc[run.scores["truncated_rate"].isna(), "benchmark"].unique())
    if unknown:
        text = f"truncation on {', '.join(unknown)} is unknown: no finish reasons were recorded"
        found.append(("truncation", text))
    for benchmark, rows in run.scores.groupby("benchmark"):
        if bad := int(rows["n_ungradable"].sum()):
            text = f"completions on {benchmark} that could not be graded: {bad}; those scores are lower bounds"
            found.append(("grading", text))
    if len(graders := sorted({str(name) for name in run.graded["grader"].unique()})) > 1:
        found.append(("grading", f"verdicts come from different graders: {', '.join(graders)}"))
    return found


def _provenance(run: RunResults) -> list[tuple[str, str]]:
    if not run.provenance:
        return [("provenance", "there is no provenance record: how these numbers were made is unknown")]
    found = []
    if dirty := sum(bool(record.get("git_dirty")) for record in run.provenance.values()):
        text = f"{dirty} of {len(run.provenance)} records were made by code with uncommitted changes"
        found.append(("provenance", text))
    if len(commits := sorted({str(r.get("git_commit"))[:12] for r in run.provenance.values()})) > 1:
        found.append(("provenance", f"parts were made at different commits: {', '.join(commits)}"))
    for wanted in ("training_log", "scores") if run.trained else ("scores",):
        if not any(name.startswith(wanted) for name in run.provenance):
            found.append(("provenance", f"{wanted}.parquet has no provenance record"))
    return found


def diagnose(run: RunResults) -> list[Diagnostic]:
    """All warnings about a run, the most serious first."""
    parts = [*_training(run), *_evaluation(run), *_gaps(run), *_provenance(run)]
    return [Diagnostic(run.name, topic, text) for topic, text in parts]

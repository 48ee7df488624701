"""What the study's trainings say of each claim of Zhang's post, by the rules of reward_accuracy.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.claims.registry import LIMITS, load_registry
from analysis.claims.table import citation, rule_text
from analysis.claims.verdicts import NOT_MEASURED, VERDICTS, interval_verdict, number_text
from analysis.pages.table_texts import Table
from analysis.results import RunResults
from analysis.statistics import recipe_difference
from analysis.statistics.mean_intervals import linear_ratio
from eval.statistics import Estimate
from recipes import move_rewards
from studies.reward_accuracy.dials import BIAS, MEAN_SQUARED, VARIANCE, Dial, Floats, Studied
from studies.reward_accuracy.runs import claims

SOURCE = "rewards"  # Zhang's post in the registry
UNREADABLE = ("no_answer", "format_error", "truncated")  # verdicts of completions without a readable answer


class Claimed(NamedTuple):
    """A claim of the document, its rules, what was measured, and the verdict."""

    name: str
    claim: str
    citation: str
    decided_by: str
    rules: str
    measured: str
    verdict: str


def between(studied: Studied, setting: int, against: int) -> Estimate:
    """Held-out gain with one setting less that with another."""
    return studied.less(studied.dial(setting), studied.dial(against))


def exact_gain(studied: Studied) -> Estimate:
    """Held-out gain with the exact reward less that with the least exact one."""
    return studied.less(studied.exact, studied.least_exact)


def slope(studied: Studied) -> Estimate | None:
    """Gain per 1 of mean squared error; None where it cannot be fitted."""
    fitted = studied.fit(MEAN_SQUARED)
    return fitted.slopes[MEAN_SQUARED] if fitted else None


def variance_less_bias(studied: Studied, setting: int) -> Estimate:
    """Variance less squared bias of a setting's reward, on the base model's completions."""
    start = studied.dial(setting).start
    columns = zip(*(zip(one.by_problem[VARIANCE], one.by_problem[BIAS], strict=True) for one in start), strict=True)
    parts = [np.stack([variance - bias for variance, bias in column]) for column in columns]
    return recipe_difference.mean_over_seeds(parts, limit=np.inf)


def right(studied: Studied, setting: int) -> Estimate:
    """Change of the share of right answers."""
    return studied.dial(setting).gain


def broken(studied: Studied, setting: int) -> Estimate:
    """Change of the share of completions without a readable answer."""
    return _change(studied.dial(setting), lambda run, step, name: _shares(run, step, name)[0])


def _shares(run: RunResults, step: int, name: str) -> tuple[Floats, Floats]:
    """Of each problem, the share of completions without a readable answer, and of right ones."""
    rows = run.rows(step, name)
    table = pd.DataFrame(
        {
            "problem_id": rows["problem_id"],
            "unreadable": rows["verdict"].isin(UNREADABLE),
            "right": rows["verdict"].eq("correct"),
        }
    )
    means = table.groupby("problem_id")[["unreadable", "right"]].mean().reindex(run.problems(name))
    return means["unreadable"].to_numpy(float), means["right"].to_numpy(float)


def _change(dial: Dial, measure: Callable[[RunResults, int, str], Floats]) -> Estimate:
    """Change of a value per problem from the base model to the last checkpoint, over seeds and problems."""
    return recipe_difference.mean_over_seeds(
        [
            np.stack([measure(run, run.last, name) - measure(run, run.steps[0], name) for run in dial.runs])
            for name in dial.runs[0].benchmarks
        ]
    )


def illegal(studied: Studied, setting: int) -> Estimate:
    """Change of the share of completions without a legal move."""
    return _change(studied.dial(setting), lambda run, step, name: 1 - _legal(studied, run, step, name).mean(axis=1))


def right_legal(studied: Studied, setting: int) -> Estimate | None:
    """Change of the share of right answers among legal moves; None if a checkpoint has no legal move."""

    def share(run: RunResults, step: int, name: str) -> Floats:
        legal = _legal(studied, run, step, name)
        return linear_ratio(run.correct(step, name).sum(axis=1).astype(float), legal.sum(axis=1))

    change = _change(studied.dial(setting), share)
    return None if np.isnan(change.value) else change


def _legal(studied: Studied, run: RunResults, step: int, name: str) -> Floats:
    """Whether each completion has a legal move, of shape (problems, repeats), in the order of `RunResults.correct`."""
    part = studied.completions(run, step, name)
    legal_moves = move_rewards.legal(part.turns, part.problems)
    return np.array([one.value or 0.0 for one in legal_moves]).reshape(-1, part.repeats)


KINDS: dict[str, Callable[..., Estimate | None]] = {
    function.__name__: function
    for function in (between, exact_gain, slope, variance_less_bias, right, broken, illegal, right_legal)
}


def judge(rules: list[dict[str, Any]], studied: Mapping[str, Studied]) -> tuple[str, str]:
    """The verdict by rules that all have to hold, and what was measured.

    Args:
        rules: of a claim.
        studied: the tasks by name; without one that a rule needs, the claim is not measured.
    """
    verdicts, evidence = [], []
    for rule in rules:
        task_study = studied.get(rule["of"])
        arguments = {key: value for key, value in rule.items() if key not in ("measure", "of", *LIMITS)}
        value = KINDS[rule["measure"]](task_study, **arguments) if task_study else None
        if task_study is None or value is None:
            verdicts.append(NOT_MEASURED)
            evidence.append(f"{rule['measure']} on {rule['of']} cannot be had" if task_study else f"needs {rule['of']}")
        else:
            verdicts.append(interval_verdict(value, **{key: rule[key] for key in LIMITS if key in rule}))
            evidence.append(
                f"{task_study.task.title}: {number_text(value.value)} "
                f"[{number_text(value.low)}, {number_text(value.high)}]"
            )
    return min(verdicts, key=VERDICTS.index), "; ".join(evidence)


def decided(studied: Mapping[str, Studied]) -> list[Claimed]:
    """Every claim of the document with its verdict: those that the study decides, then the others."""
    known = {one["id"]: one for one in load_registry()["claims"] if one["source"] == SOURCE}
    decisions = []
    for one in claims():
        claim = known.pop(one["id"], {}) | one
        verdict, measured = judge(one["rules"], studied)
        limits = "; ".join(map(rule_text, one["rules"]))
        decisions.append(
            Claimed(one["id"], claim["claim"], citation(claim), one["decided_by"], limits, measured, verdict)
        )
    for name, claim in known.items():
        needs = "; ".join(rule["needs"] for rule in claim["rules"] if "needs" in rule)
        decisions.append(
            Claimed(name, claim["claim"], citation(claim), claim["decided_by"], "–", f"needs {needs}", NOT_MEASURED)
        )
    return decisions


def claims_table(decisions: list[Claimed]) -> Table:
    """A row for each claim."""
    data = pd.DataFrame([one._asdict() for one in decisions])
    display = data.drop(columns="name").rename(
        columns={"citation": "where", "decided_by": "decided by", "rules": "claimed"}
    )
    return Table("reward_accuracy_claims", data, display)

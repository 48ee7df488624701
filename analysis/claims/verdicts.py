"""What stored results say of a claim.

Only an interval that lies inside or outside of what is claimed decides, and a claim about the full scale is decided by
results of the full scale alone. A sentence about a recipe is decided over its training seeds, two or more; one about a
checkpoint, such as a base model, by its problems.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from analysis.claims.heldout_measures import AVERAGE
from analysis.claims.registry import (
    KINDS,
    LIMITS,
    RUNS,
    STEPS,
    WHOLE_RUNS,
    Claim,
    Rule,
    arguments,
    is_about_recipe,
    runs_of,
)
from analysis.results import RunResults
from analysis.statistics import published_tables, training_seeds
from analysis.statistics.accuracy_rows import AccuracyCell
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.mean_intervals import NotMeasured
from contracts import seeds
from eval import statistics
from eval.statistics import Estimate

SUPPORTED, CONTRADICTED = "supported", "contradicted"
CANNOT_TELL, NOT_MEASURED = "cannot tell at this scale", "not measured yet"
VERDICTS = (CONTRADICTED, NOT_MEASURED, CANNOT_TELL, SUPPORTED)  # a claim has the first that any of its rules has
FULL = "full"
CONFIDENCE = 0.95
Runs = Mapping[str, Sequence[RunResults]]  # those of all training seeds, by `<recipe>/<run>`


class Finding(NamedTuple):
    """A claim's verdict, and the numbers or the gap that it rests on."""

    verdict: str
    evidence: str


def runs_by_name(runs: Iterable[RunResults]) -> Runs:
    """Runs by their name without the seed."""
    by_name: dict[str, list[RunResults]] = {}
    for run in runs:
        by_name.setdefault(seeds.run_of(run.name), []).append(run)
    return by_name


def interval_verdict(estimate: Estimate, at_least: float = -math.inf, at_most: float = math.inf) -> str:
    """Whether an interval lies inside what is claimed, outside of it, or across its limits."""
    if at_least <= estimate.low and estimate.high <= at_most:
        return SUPPORTED
    return CONTRADICTED if estimate.high < at_least or estimate.low > at_most else CANNOT_TELL


def number_text(value: float) -> str:
    """A number for readers."""
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", "\N{MINUS SIGN}")


def _judge_estimates(estimates: Iterable[tuple[Rule, Estimate | NotMeasured, int]]) -> Finding:
    """The verdict by rules, what each measured, and of how many training seeds it is (0: not of a training)."""
    verdicts, evidence = [], []
    for rule, measured, count in estimates:
        if isinstance(measured, NotMeasured):
            verdicts.append(NOT_MEASURED)
            evidence.append(str(measured))
        else:
            said = interval_verdict(measured, **{key: rule[key] for key in LIMITS if key in rule})
            verdicts.append(CANNOT_TELL if count == 1 else said)
            limits = f"[{number_text(measured.low)}, {number_text(measured.high)}]"
            evidence.append(f"{number_text(measured.value)} {limits}{_seeds_text(count)}")
    return Finding(min(verdicts, key=VERDICTS.index), "; ".join(dict.fromkeys(evidence)))


def _seeds_text(count: int) -> str:
    if count == 1:
        return ", of one training seed: this decides nothing about a recipe"
    return f", {count} seeds" if count else ""


def measure(rule: Rule, runs: Runs, confidence: float = CONFIDENCE) -> Estimate | NotMeasured:
    """What a rule measures, or what is missing for it.

    Args:
        rule: of a claim.
        runs: the stored results.
        confidence: of the interval; of several training seeds it is that of the recipes' test.
    """
    names = runs_of(rule)
    if missing := [name for name in names if not runs.get(name)]:
        return NotMeasured(f"needs {' and '.join(missing)}")
    if is_about_recipe(rule) and (why := _not_seeds(rule, runs)):
        return NotMeasured(why)
    rest = {key: value for key, value in arguments(rule).items() if key not in RUNS}
    try:
        of_runs = {"confidence": confidence} if names else {}
        return KINDS[rule["measure"]](*(runs[name] for name in names), **rest, **of_runs)
    except NotMeasured as missing_part:
        return missing_part


def _not_seeds(rule: Rule, runs: Runs) -> str:
    """Why the trainings are not seeds of their own, or end at different steps where a rule says `last`."""
    sides = [runs[name] for name in dict.fromkeys(runs_of(rule))]
    if copied := training_seeds.copies(itertools.chain(*sides)):
        return copied
    last = "last" in (rule.get(key) for key in STEPS) or rule["measure"] in WHOLE_RUNS
    return next(filter(None, map(training_seeds.different_ends, sides)), "") if last else ""


def _measure_for_verdict(rule: Rule, runs: Runs, rules: int) -> Estimate | NotMeasured:
    """With a wider interval where that at 95 % would contradict a claim of several rules.

    A claim is supported if all its rules hold, so that each may have the whole error; one that fails contradicts it, so
    that they share the error (Bonferroni).
    """
    measured = measure(rule, runs)
    limits = {key: rule[key] for key in LIMITS if key in rule}
    if rules > 1 and isinstance(measured, Estimate) and interval_verdict(measured, **limits) == CONTRADICTED:
        return measure(rule, runs, 1 - (1 - CONFIDENCE) / rules)
    return measured


def _seed_count(rule: Rule, runs: Runs) -> int:
    """The fewest training seeds of a recipe in this rule; 0 if it is not about a recipe."""
    return min(len(runs.get(name, ())) for name in runs_of(rule)) if is_about_recipe(rule) else 0


def finding(claim: Claim, runs: Runs, scale: str) -> Finding:
    """The verdict on a claim.

    Args:
        claim: an entry of the registry.
        runs: the stored results.
        scale: theirs. Where it is not the claim's, the runs only tell that they cannot tell.
    """
    names = {name for rule in claim["rules"] for name in runs_of(rule)}
    if claim["scale"] == FULL != scale and names:
        if missing := sorted(name for name in names if not runs.get(name)):
            return Finding(NOT_MEASURED, f"needs {' and '.join(missing)} at full scale")
        return Finding(CANNOT_TELL, f"the runs are of {scale} scale")
    rules = claim["rules"]
    return _judge_estimates(
        (rule, _measure_for_verdict(rule, runs, len(rules)), _seed_count(rule, runs)) for rule in rules
    )


@cache
def _cells(table: str) -> dict[int, dict[str, AccuracyCell]]:
    return {row.step: row.cells for row in published_tables.rows(table)}


def measure_printed(rule: Rule, table: str) -> Estimate | None:
    """What a rule on held-out accuracy gives for a published table; None for another rule.

    The table's figures are numbers of problems solved, and nothing is paired.
    """
    if not rule["measure"].startswith("heldout") or {"against", "less"} & rule.keys():
        return None
    cells = _cells(table)
    steps = [rule[key] for key in ("step", "before", "after") if key in rule]
    if rule.get("what", "correct") != "correct" or not steps or not set(steps) <= cells.keys():
        return None
    name = rule.get("benchmark", AVERAGE)
    if len(steps) == 1:
        return cells[steps[0]][name].accuracy
    benchmarks = list(published_tables.sizes()) if name == AVERAGE else [name]
    return mean_of(
        [statistics.independent_difference(*(cells[step][one].accuracy for step in steps)) for one in benchmarks]
    )


def printed_finding(claim: Claim) -> Finding | None:
    """What the source's own table says of its claim; None if the claim names no table."""
    if "printed" not in claim:
        return None
    estimates = [(rule, measure_printed(rule, claim["printed"])) for rule in claim["rules"]]
    judged = _judge_estimates((rule, estimate, 0) for rule, estimate in estimates if estimate)
    return judged._replace(verdict=judged.verdict.removesuffix(" at this scale"))

"""The claims, their sources, and the rules that decide them: results/reference/claims.yaml, checked.

A rule names one of KINDS in `measure`. Its other keys are the arguments, besides the limits at_least and at_most.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from analysis.claims.heldout_measures import (
    heldout,
    heldout_best_step,
    heldout_between,
    heldout_change,
    heldout_ratio,
    heldout_size_of_change,
)
from analysis.claims.measures_without_runs import (
    advantage,
    judged,
    kl_bias,
    kl_reach,
    kl_spread,
    listed_deviation,
    not_stored,
    rows,
)
from analysis.claims.training_measures import (
    roughness_ratio,
    training,
    training_between,
    training_change,
    training_ratio,
)
from analysis.reference import CLAIMS
from analysis.results import BASE
from contracts.run_file import validate
from eval.statistics import Estimate
from system.errors import UserError
from system.unknown_names import unknown
from system.yaml_files import read_yaml

KINDS: dict[str, Callable[..., Estimate]] = {
    function.__name__: function
    for function in (
        heldout, heldout_change, heldout_size_of_change, heldout_ratio, heldout_between, heldout_best_step, training,
        training_change, training_between, training_ratio, roughness_ratio, kl_bias, kl_spread, kl_reach, advantage,
        rows, judged, listed_deviation, not_stored,
    )
}  # fmt: skip
RUNS = ("run", "against")  # arguments that are stored results
LIMITS = ("at_least", "at_most")
WHOLE_RUNS = (heldout_best_step.__name__,)
STEPS = ("step", "against_step", "before", "after", "steps", "against_steps")
Rule = Mapping[str, Any]
Claim = Mapping[str, Any]


@cache
def load_registry(file: Path = CLAIMS) -> dict[str, Any]:
    """The sources, planned runs and claims.

    Raises:
        UserError: the file breaks its schema, repeats an id, names an unknown source or measurement, or a rule has
            other arguments than its measurement takes.
    """
    content = read_yaml(file)
    validate(content, "claims", file)
    names = [claim["id"] for claim in content["claims"]]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(
            f"{file.name}: each claim should have its own id, but {', '.join(twice)} is used again; rename it",
            code="repeated-name", names=twice,
        )  # fmt: skip
    for claim in content["claims"]:
        where = f"{file.name}: {claim['id']}"
        for name in (claim["source"], *claim.get("upstream", ())):
            if name not in content["sources"]:
                raise unknown("source", name, content["sources"]).within(where)
        for rule in claim["rules"]:
            _check_rule(rule, where)
    return content


def _check_rule(rule: Rule, where: str) -> None:
    name = rule["measure"]
    if name not in KINDS:
        raise unknown("measurement", name, KINDS).within(where)
    if name != not_stored.__name__ and not set(LIMITS) & rule.keys():
        raise UserError(
            f"{where}: the rule on {name} should state at_least, at_most or both, and states neither",
            code="rule-without-limits", measure=name,
        )  # fmt: skip
    try:
        inspect.signature(KINDS[name]).bind(**arguments(rule))
    except TypeError as error:
        raise UserError(
            f"{where}: the arguments of {name} do not fit: {error}; see analysis/claims",
            code="wrong-arguments", measure=name,
        ) from None  # fmt: skip


def arguments(rule: Rule) -> dict[str, Any]:
    """What a rule passes to its measurement; runs by their names."""
    return {key: value for key, value in rule.items() if key not in ("measure", *LIMITS)}


def runs_of(rule: Rule) -> list[str]:
    """The runs whose stored results a rule needs."""
    return [rule[key] for key in RUNS if key in rule]


def is_about_recipe(rule: Rule) -> bool:
    """Whether a rule measures what a training made; a base model is one checkpoint, whatever the training seed."""
    return (bool(runs_of(rule)) and any(rule.get(key, BASE) != BASE for key in STEPS)) or rule["measure"] in WHOLE_RUNS

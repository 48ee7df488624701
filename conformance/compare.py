"""What a framework computed against the reference and the registry of differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from conformance.cases import Batch, Numbers, all_formulas
from conformance.reference import Result, adam_direction, evaluate_formula
from frameworks.conformance import LEARNING_RATE
from system.yaml_files import read_yaml

REGISTRY = Path(__file__).parent / "differences.yaml"
# Of a gradient: nearer to 0 AdamW's first step, g / (|g| + 1e-8), makes 1e-3 of a rounding of 1e-8, which is float32's.
SMALL = 1e-5
TOLERANCE = 1e-6  # of max(1, |reference|)
Largest = tuple[float, float, float]  # difference in value, gradient and step


@cache
def tolerance(formula: str) -> float:
    """Up to which difference a framework computes a formula, of max(1, |reference|)."""
    return float(all_formulas().get(formula, {}).get("tolerance", TOLERANCE))


class Finding(NamedTuple):
    """One formula in one framework."""

    formula: str
    framework: str
    largest: Largest | None  # from what was published; None where it cannot be expressed
    beyond: Largest | None  # from the registry's closed form
    entry: Mapping[str, Any] | None  # of the registry
    problem: str  # empty where the registry is right


@cache
def known_differences() -> dict[tuple[str, str], dict[str, Any]]:
    """Entries by framework and formula."""
    entries_of_frameworks = read_yaml(REGISTRY)
    return {
        (name, formula): entry
        for name, entries in entries_of_frameworks.items()
        for entry in entries
        for formula in entry["formulas"]
    }


def _arrays_of_cases(flat: Numbers, expected: Sequence[Result]) -> Iterator[tuple[Result, list[Numbers]]]:
    """A framework's arrays of a formula, which are end to end, beside the reference's."""
    start = 0
    for one in expected:
        arrays = []
        for part in one:
            arrays.append(flat[start : start + part.size].reshape(part.shape))
            start += part.size
        yield one, arrays
    if start != flat.size:
        raise ValueError(f"{flat.size} numbers came back, not {start}")


def largest_differences(flat: Numbers, expected: Sequence[Result]) -> Largest:
    """The largest differences in value, gradient and step, relative to the larger of 1 and the reference.

    Where both gradients are below SMALL, and differ, the step is compared with that which the framework's own gradient
    makes, not the reference's.

    Args:
        flat: the framework's values, gradients and steps, case after case.
        expected: the reference's.
    """
    worst = [0.0, 0.0, 0.0]
    for reference, arrays in _arrays_of_cases(flat, expected):
        gradient, own = reference.gradient, arrays[1]
        other = LEARNING_RATE * (adam_direction(gradient) - adam_direction(own))
        decided = np.maximum(np.abs(gradient), np.abs(own)) >= SMALL
        reference = reference._replace(step=reference.step + np.where(decided, 0.0, other))
        for number, (right, computed) in enumerate(zip(reference, arrays, strict=True)):
            difference = float((np.abs(computed - right) / np.maximum(1.0, np.abs(right))).max())
            worst[number] = max(worst[number], np.inf if np.isnan(difference) else difference)
    return worst[0], worst[1], worst[2]


class Reference:
    """The reference's results of all cases, with and without variants; each is computed once."""

    def __init__(self, formulas: Mapping[str, Any], batches: Sequence[Batch], cases: Sequence[tuple[str, int]]) -> None:
        """Computes nothing yet; the arguments are those of frameworks.conformance."""
        self.formulas, self.batches = formulas, batches
        self.index: dict[str, list[int]] = {}
        for name, number in cases:
            self.index.setdefault(name, []).append(number)
        self.known: dict[tuple[str, str], list[Result]] = {}

    def results(self, formula: str, variant: Mapping[str, Any]) -> list[Result]:
        """Of the cases of a formula."""
        key = (formula, repr(sorted(variant.items())))
        if key not in self.known:
            chosen = [self.batches[number] for number in self.index[formula]]
            self.known[key] = [evaluate_formula(self.formulas[formula], batch, variant) for batch in chosen]
        return self.known[key]


def framework_findings(framework: str, results: Mapping[str, Any], reference: Reference) -> list[Finding]:
    """Every formula that a framework was asked for, with the problem where the registry is not right.

    Args:
        framework: whose results they are.
        results: by formula, as frameworks.conformance gives them.
        reference: of the same cases.
    """
    return [_formula_finding(framework, name, result, reference) for name, result in results.items()]


def unnoticed_errors(framework: str, mutants: Mapping[str, Mapping[str, Any]], reference: Reference) -> list[str]:
    """The planted errors with which the framework still seems right.

    Args:
        framework: whose results they are.
        mutants: results by mutant and formula.
        reference: of the same cases.
    """
    return [
        name
        for name, results in mutants.items()
        if not any(one.problem for one in framework_findings(framework, results, reference))
    ]


def _formula_finding(framework: str, name: str, result: Any, reference: Reference) -> Finding:
    entry = known_differences().get((framework, name))
    if isinstance(result, str):
        told = (entry or {}).get("cannot")
        problem = "" if told == result else f"cannot be expressed ({result}), which the registry does not say"
        return Finding(name, framework, None, None, entry, problem)
    published = largest_differences(result, reference.results(name, {}))
    agrees = max(published) <= tolerance(name)
    if entry is None:
        problem = "" if agrees else f"differs by {max(published):.1e}, and has no entry in the registry"
        return Finding(name, framework, published, published, None, problem)
    if "cannot" in entry:
        return Finding(
            name, framework, published, None, entry, "can be expressed, and the registry says that it cannot"
        )
    beyond = largest_differences(result, reference.results(name, entry["variant"]))
    problem = ""
    if agrees:
        problem = "the difference in the registry has disappeared"
    elif max(beyond) > tolerance(name):
        problem = f"differs from the registry's closed form by {max(beyond):.1e}"
    return Finding(name, framework, published, beyond, entry, problem)

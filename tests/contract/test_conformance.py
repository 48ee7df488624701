"""The installed frameworks compute what the registry of differences says, and an error planted in one is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from conformance import cases, rounding, run_frameworks
from conformance.compare import Finding, Reference, framework_findings, known_differences, unnoticed_errors
from envs.build import python
from frameworks.adapter import framework_names, frameworks_with
from tests import budgets, needs
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

EACH = 4 if budgets.ALL else 2  # batches of each formula


def params(names: Sequence[str]) -> list[Any]:
    return [pytest.param(name, marks=needs.environments(name)) for name in names]


FRAMEWORKS = params(frameworks_with("conformance"))


@cache
def inputs() -> dict[str, Any]:
    return run_frameworks.input_of_frameworks(EACH * len(cases.all_formulas()))


@cache
def results(framework: str) -> dict[str, Any]:
    """One process of the framework does all."""
    with pytest.MonkeyPatch.context() as patch:
        if framework in framework_names():
            patch.setattr(run_frameworks, "python", warm_python)
        return run_frameworks.run_cases(framework, inputs()).results


@cache
def reference() -> Reference:
    return Reference(inputs()["formulas"], inputs()["batches"], inputs()["cases"])


@cache
def differences(framework: str) -> list[Finding]:
    return framework_findings(framework, results(framework)[""], reference())


@pytest.mark.parametrize("framework", [*FRAMEWORKS, *params([run_frameworks.INDEPENDENT])])
def test_a_framework_differs_as_the_registry_says_and_not_otherwise(framework: str) -> None:
    problems = [f"{one.formula}: {one.problem}" for one in differences(framework) if one.problem]
    assert not problems, "\n".join(problems)
    assert {one.formula for one in differences(framework)} == set(inputs()["formulas"])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_planted_error_survives(framework: str) -> None:
    planted = inputs()["mutants"][framework]
    survivors = unnoticed_errors(framework, {name: results(framework)[name] for name in planted}, reference())
    print(f"{framework}: {len(planted) - len(survivors)} of {len(planted)} planted errors are noticed")
    assert len(planted) >= 10 and not survivors


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_source_lines_of_the_registry_are_those_of_the_release(framework: str) -> None:
    (package,) = python(framework).parent.parent.glob(f"lib/python3.*/site-packages/{framework}")
    for (name, formula), entry in known_differences().items():
        if name == framework and "source" in entry:
            file, number, part = entry["source"]
            assert part in (package / file).read_text(encoding="utf-8").split("\n")[number - 1], (formula, file, number)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_equal_rewards_teach_nothing_in_float32_where_they_have_few_binary_digits(framework: str) -> None:
    """Others give an advantage, whose size depends on the constant beside the std; `multiple_of` is the way around."""
    assert rounding.largest_advantage(results(framework), rounding.GIVEN) > 0
    assert rounding.largest_advantage(results(framework), rounding.ROUNDED) == 0

"""Every claim: the runs make what it reads, and worlds in which its sentence is true or false decide it so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import claim_worlds
import planted_runs
import pytest

from analysis.claims import heldout_measures
from analysis.claims.registry import KINDS, load_registry, runs_of
from analysis.claims.verdicts import CONTRADICTED, NOT_MEASURED, SUPPORTED, Finding, Runs, finding, runs_by_name
from analysis.statistics import training_seeds
from contracts import tables
from contracts.run_file import Run
from eval.statistics import Estimate
from recipes.runs import load_run, run_names
from tests import budgets


@cache
def _full_run(name: str) -> Run:
    return load_run(name, "full")


def _full_scale(rule: dict[str, Any]) -> Iterator[tuple[Run, list[int], list[list[int]]]]:
    """Each run of a rule that exists, with the checkpoints and the windows of steps that the rule reads of it."""
    for key, name in ((key, rule[key]) for key in ("run", "against") if key in rule and rule[key] in run_names()):
        keys = ("against_step", "against_steps") if key == "against" else ("step", "steps", "before", "after")
        arguments = [rule[one] for one in keys if one in rule]
        yield (
            _full_run(name),
            [one for one in arguments if type(one) is int],
            [one for one in arguments if type(one) is list],
        )


RULES = [pytest.param(rule, id=f"{one['id']}-{position}") for one in load_registry()["claims"]
         for position, rule in enumerate(one["rules"]) if runs_of(rule)]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_the_full_runs_make_what_a_rule_reads(rule: dict[str, Any]) -> None:
    assert rule.get("column", "reward_mean") in tables.TRAINING_LOG.names
    for run, checkpoints, windows in _full_scale(rule):
        assert set(checkpoints) <= set(run.checkpoint_steps)
        assert rule.get("benchmark", "average") in ("average", *run.evaluation["benchmarks"])
        assert all(first < last <= sum(stage.steps for stage in run.stages) for first, last in windows)


def _read_steps(one: dict[str, Any]) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Of each run of a claim, the checkpoints that its rules read, and the last training step."""
    steps: dict[str, set[int]] = {}
    last: dict[str, int] = {}
    for rule in one["rules"]:
        for run, checkpoints, windows in _full_scale(rule):
            name = run.name
            every = run.checkpoint_steps if rule["measure"] == "heldout_best_step" else checkpoints
            ends = [run.checkpoint_steps[-1]] if "last" in rule.values() else []
            steps.setdefault(name, set()).update(every, ends)
            last[name] = max([last.get(name, 0), *(end for _, end in windows)])
    return {name: sorted(own) for name, own in steps.items()}, last


def _planted(one: dict[str, Any], world: Mapping[str, planted_runs.Run]) -> Runs:
    steps, last = _read_steps(one)
    benchmarks = sorted({rule["benchmark"] for rule in one["rules"] if "benchmark" in rule}) or ["sums", "proofs"]
    assert world.keys() == steps.keys()
    return runs_by_name(planted_runs.stored_runs(world, steps, last, benchmarks))


def _verdict(one: dict[str, Any], world: Mapping[str, planted_runs.Run]) -> Finding:
    return finding(one, _planted(one, world), "full")


ON_RUNS = [one for one in load_registry()["claims"] if any(map(runs_of, one["rules"]))]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted verdicts on steps instead of a checker's; all seeds were measured alike, so that none is compared."""
    monkeypatch.setattr(heldout_measures, "_checked_steps", lambda run, step, benchmark, rows: rows)
    monkeypatch.setattr(heldout_measures, "_check_comparable", lambda *_: None)
    monkeypatch.setattr(training_seeds, "copies", lambda runs: "")  # each is drawn by itself


WITH_WORLDS = pytest.mark.parametrize(
    "one", [one for one in ON_RUNS if one["id"] in claim_worlds.WORLDS], ids=lambda one: str(one["id"])
)


@pytest.mark.slow
@pytest.mark.usefixtures("planted")
@WITH_WORLDS
def test_a_claim_is_supported_where_its_sentence_is_true(one: dict[str, Any]) -> None:
    judged = _verdict(one, claim_worlds.WORLDS[one["id"]].true)
    assert judged.verdict == SUPPORTED, judged.evidence


@pytest.mark.long
@pytest.mark.usefixtures("planted")
@WITH_WORLDS
def test_a_claim_is_contradicted_where_its_sentence_is_false(one: dict[str, Any]) -> None:
    for number, world in budgets.some(enumerate(claim_worlds.WORLDS[one["id"]].false), 0.15):
        judged = _verdict(one, world)
        assert judged.verdict == CONTRADICTED, (number, judged.evidence)


@pytest.mark.long
@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    "one",
    [one for one in ON_RUNS if one["id"] in claim_worlds.WORLDS and len(one["rules"]) > 1],
    ids=lambda one: str(one["id"]),
)
def test_each_of_several_rules_alone_is_decided_either_way(one: dict[str, Any]) -> None:
    worlds = claim_worlds.WORLDS[one["id"]]
    judged = [
        [finding({**one, "rules": [rule]}, runs, "full").verdict for rule in one["rules"]]
        for runs in (_planted(one, world) for world in (worlds.true, *worlds.false))
    ]
    for number, verdicts in enumerate(zip(*judged, strict=True)):
        assert verdicts[0] == SUPPORTED and CONTRADICTED in verdicts, number


def _exactly(value: float) -> Estimate:
    return Estimate(value, value, value)


OTHERWISE: dict[str, Callable[..., Estimate]] = {
    "rows": lambda sets: _exactly(100.0),
    "judged": lambda task, completion, gold: _exactly(0.5),
    "kl_reach": lambda kl_in, gae_lambda: _exactly(0.5),
    "listed_deviation": lambda run_file, deviation: _exactly(0.0),
    "kl_bias": lambda estimator, shift: _exactly(0.0 if estimator == "k2" else 0.5),
    "kl_spread": lambda estimator, than, shift: _exactly(1.0),
    "advantage": lambda rewards, position: _exactly(
        rewards[position] - sum(rewards) / len(rewards) + 0.5
    ),  # not scaled
}  # what would be measured if the sentence were false
ON_NO_RUNS = [
    one for one in load_registry()["claims"] if {rule["measure"] for rule in one["rules"]} <= OTHERWISE.keys()
]


@pytest.mark.parametrize("one", ON_NO_RUNS, ids=lambda one: str(one["id"]))
def test_a_claim_on_no_runs_is_decided_either_way(one: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert finding(one, {}, "full").verdict in (SUPPORTED, CONTRADICTED)
    for kind, otherwise in OTHERWISE.items():
        monkeypatch.setitem(KINDS, kind, otherwise)
    assert finding(one, {}, "full").verdict == CONTRADICTED


def test_every_claim_is_on_runs_or_not_or_is_not_measured() -> None:
    decidable = {one["id"] for one in (*ON_RUNS, *ON_NO_RUNS)}
    others = [one for one in load_registry()["claims"] if one["id"] not in decidable]
    assert all({rule["measure"] for rule in one["rules"]} == {"not_stored"} for one in others)


@pytest.mark.slow
def test_of_two_sentences_one_that_is_not_measured_leaves_the_other_to_contradict() -> None:
    (one,) = (claim for claim in ON_RUNS if claim["id"] == "rewards-format-alone")
    learned, not_learned = (
        {"code/tests-32": claim_worlds.log(format_error_rate=errors, accuracy=0.1)}
        for errors in ({1: 0.6, 100: 0.1}, 0.6)
    )
    assert _verdict(one, learned).verdict == NOT_MEASURED and _verdict(one, not_learned).verdict == CONTRADICTED


def test_every_claim_on_runs_has_its_worlds() -> None:
    """One of two sentences of rewards-format-alone is not measured, so that it can be contradicted alone."""
    assert {one["id"] for one in ON_RUNS} == claim_worlds.WORLDS.keys() | {"rewards-format-alone"}

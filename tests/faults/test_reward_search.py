"""A search that solves nothing earns what is listed for each reward, and no more: reward_search.yaml says why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from recipes.rewards import Reward
from system.yaml_files import read_yaml
from tasks import registry, sandbox
from tasks.problems import Problem
from tests.faults import reward_search
from tests.faults.bed import SEED
from tests.faults.reward_search import Target

LISTED = read_yaml(Path(__file__).with_name("reward_search.yaml"))
STEPS = int(os.environ.get("REWARD_STEPS", "6000"))
MARGIN = 0.25


@cache
def all_targets() -> dict[str, Target]:
    return {target.name: target for target in reward_search.targets(48)}


@pytest.mark.faults_long
@pytest.mark.parametrize("name", LISTED)
def test_nothing_is_earned_beyond_chance_but_what_is_listed(name: str) -> None:
    if name not in all_targets():
        pytest.skip("the data mirror with its published problems is not here")
    if all_targets()[name].task == "programs" and (why := sandbox.why_unavailable()):
        pytest.skip(f"no sandbox on this machine: {why}")
    reach = reward_search.climb(all_targets()[name], STEPS, SEED)
    assert reach.reward <= max(reach.honest, LISTED[name]["reward"]) + MARGIN, reach
    assert reach.correct <= max(reach.chance, LISTED[name]["reward"]) + MARGIN, reach


@pytest.mark.slow
def test_every_reward_is_listed_as_published_or_chance() -> None:
    assert set(all_targets()) <= set(LISTED)
    # A reward of our own that pays for nothing would have the kind `ours`: it has to be mended, not listed.
    assert {entry["kind"] for entry in LISTED.values()} <= {"published", "chance"}


def test_a_hole_is_found() -> None:
    """A reward that pays for three signs of an answer, one by one."""

    def holed(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
        signs = ("yes", "inf", "\\boxed{")
        return [Reward(sum(sign in text for sign in signs) / len(signs), "wrong") for text in completions]

    problems = [Problem("", "arithmetic", f"What is {number}+1?", str(number + 1), {}) for number in range(8)]
    reach = reward_search.climb(Target("holed", "arithmetic", [(holed, 1.0)], "", problems), 900, 0)
    assert reach.reward == 1.0 > reach.honest


def test_what_is_known_of_the_published_rules_is_so() -> None:
    verify = registry.get("knights_knaves").verify
    meta = {"names": ["Zoey", "Liam"], "knights": [True, False], "people": 2}
    gold = "(1) Zoey is a knight\n(2) Liam is a knave"
    assert verify("It is false that Zoey is a knight. Liam is a knave", gold, meta) == "correct"
    assert verify("Zoey is a knight or a knave. Zoey is a knave. Liam is a knave", gold, meta) == "format_error"

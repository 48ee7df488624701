"""What makes verl's training on the CPU repeat, where it needs no verl: prompts' names, and seeds and places."""

from __future__ import annotations

import uuid
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from frameworks.repeatable_sampling import KEY
from frameworks.verl.cpu import repeatable_requests

SAMPLES, PROMPTS = 2, 3
PARAMS = {"temperature": 1.0}


def config(mode: str = "sync", max_num_seqs: int = 1024, resampled: bool = False) -> Any:
    return SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(n=SAMPLES, max_num_seqs=max_num_seqs)),
        data=SimpleNamespace(train_batch_size=PROMPTS, seed=5),
        trainer=SimpleNamespace(v1=SimpleNamespace(trainer_mode=mode)),
        algorithm={"filter_groups": {"enable": True}} if resampled else {},
    )


def sampled(step: int = 1, first: int = 0, **changes: Any) -> list[dict[str, Any]]:
    trajectory = {"step": step, "validate": changes.pop("validate", False)}
    return [
        repeatable_requests.sampling_parameters(
            config(**changes),
            trajectory,
            PARAMS,
            {"uid": f"{first + prompt:012d}", "session_id": again, "raw_prompt": [{"content": f"question {prompt}"}]},
        )
        for prompt in range(PROMPTS)
        for again in range(SAMPLES)
    ]


def test_prompts_are_named_by_their_number_so_that_names_sort_like_numbers() -> None:
    module = ModuleType("trainer")
    module.uuid = uuid  # type: ignore[attr-defined]
    repeatable_requests.name_prompts(module)
    names = [str(module.uuid.uuid4()) for _ in range(12)]
    assert names == sorted(names) and len(set(names)) == 12 and [int(name) for name in names] == list(range(12))
    assert not any("_" in name for name in names), "verl parts a completion's name there"


def test_each_completion_has_its_own_seed_and_its_place_in_the_step() -> None:
    requests = sampled()
    assert len({one["seed"] for one in requests}) == len(requests)
    assert [one["extra_args"][KEY]["number"] for one in requests] == list(range(PROMPTS * SAMPLES))
    assert {one["extra_args"][KEY]["requests"] for one in requests} == {PROMPTS * SAMPLES}
    assert all(one["temperature"] == 1.0 for one in requests) and PARAMS == {"temperature": 1.0}


def test_seeds_depend_on_the_step_and_not_on_names_which_begin_again_in_a_resumed_training() -> None:
    seeds = [one["seed"] for one in sampled(first=40)]
    assert seeds == [one["seed"] for one in sampled(first=0)]
    assert not set(seeds) & {one["seed"] for one in sampled(step=2)}


@pytest.mark.parametrize("changes", [{"validate": True}, {"mode": "colocate_async"}, {"max_num_seqs": 5}])
def test_what_is_not_sampled_together_does_not_wait(changes: dict[str, Any]) -> None:
    assert sampled(**changes) == [PARAMS] * (PROMPTS * SAMPLES)


def test_with_dynamic_sampling_requests_have_seeds_and_no_places() -> None:
    requests = sampled(resampled=True)
    assert [one["seed"] for one in requests] == [one["seed"] for one in sampled()]
    assert not any("extra_args" in one for one in requests)  # they would wait for others, which may not come


def test_completions_are_put_in_the_order_of_prompts_and_repeats() -> None:
    names = ["000000000010_0_0", "000000000002_10_0", "000000000002_9_0", "000000000002_9_1"]
    assert sorted(names, key=repeatable_requests.completion_position) == [names[2], names[3], names[1], names[0]]

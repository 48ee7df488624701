"""Requests with their own seeds and in their own order, with an engine that only notes what it is given."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from frameworks import repeatable_sampling

PROMPTS = ["one", "two", "three"]
SAMPLES = 2


class Engine:
    """Notes requests as vLLM's AsyncLLM gets them."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def pause_generation(self, mode: str) -> None:
        assert mode == "keep"
        await asyncio.sleep(0)
        self.events.append("paused")

    async def resume_generation(self) -> None:
        self.events.append("resumed")

    async def add_request(self, request_id: str, prompt: str, params: Any) -> str:
        await asyncio.sleep(random.random() / 1000)
        self.events.append((prompt, params.seed, params.extra_args))
        return request_id


def requests(step: int = 1, base: int = 0) -> list[tuple[str, Any]]:
    plain = SimpleNamespace(seed=None, extra_args=None)
    of_prompts = [
        repeatable_sampling.prompt_params(plain, base, step, PROMPTS, index, SAMPLES) for index in range(len(PROMPTS))
    ]
    return [
        (prompt, repeatable_sampling.completion_params(params, repeat))
        for prompt, params in zip(PROMPTS, of_prompts, strict=True)
        for repeat in range(SAMPLES)
    ]


def added(order: list[tuple[str, Any]], engine: Any) -> list[Any]:
    """What the engine is given when requests come in this order."""

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(engine.add_request(f"id-{n}", *one) for n, one in enumerate(order)))

    assert asyncio.run(all_of_them()) == [f"id-{n}" for n in range(len(order))]
    return list(engine.events)


@pytest.fixture
def engine_type() -> type[Engine]:
    holding = type("Holding", (Engine,), {})
    repeatable_sampling.hold_requests(holding)
    repeatable_sampling.hold_requests(holding)  # a process may load the replacement twice
    return holding


def test_requests_begin_in_their_order_whatever_the_order_in_which_they_come(engine_type: type[Engine]) -> None:
    expected = added(requests(), engine_type())
    assert expected[0] == "paused" and expected[-1] == "resumed"
    assert [event[0] for event in expected[1:-1]] == [prompt for prompt in PROMPTS for _ in range(SAMPLES)]
    assert all(event[2] is None for event in expected[1:-1]), "vLLM is not given our mark"
    for trial in range(10):
        order = requests()
        random.Random(trial).shuffle(order)
        assert added(order, engine_type()) == expected


def test_each_completion_has_a_seed_by_training_step_prompt_and_repeat() -> None:
    seeds = [params.seed for step in (1, 2) for base in (0, 1) for _, params in requests(step, base)]
    assert len(set(seeds)) == len(seeds) and all(0 <= seed < 2**31 for seed in seeds)
    assert [params.seed for _, params in requests()] == [params.seed for _, params in requests()]


def test_two_batches_at_once_do_not_mix(engine_type: type[Engine]) -> None:
    both = [one for pair in zip(requests(1), requests(2), strict=True) for one in pair]
    seeds = [event[1] for event in added(both, engine_type()) if isinstance(event, tuple)]
    assert sorted(seeds[: len(seeds) // 2]) == sorted(params.seed for _, params in requests(1))


def test_other_requests_do_not_wait(engine_type: type[Engine]) -> None:
    plain = SimpleNamespace(seed=None, extra_args=None)
    assert repeatable_sampling.prompt_params(plain, 0, None, PROMPTS, 0, SAMPLES) is plain
    assert repeatable_sampling.completion_params(plain, 1) is plain
    assert added([("alone", plain)], engine_type()) == [("alone", None, None)]


def test_a_batch_that_stays_incomplete_is_an_error() -> None:
    batches = repeatable_sampling.Batches(Engine(), patience=0.05)
    request = repeatable_sampling.batch_position("batch", 0, 2)[repeatable_sampling.KEY]

    async def add() -> None:
        raise AssertionError("the batch is not complete")

    with pytest.raises(RuntimeError, match=r"2 requests should come together, but 1 came in 0\.05 s"):
        asyncio.run(batches.add(request, add))


def test_an_engine_that_fails_is_resumed_and_says_so(engine_type: type[Engine]) -> None:
    class Dead(Engine):
        async def add_request(self, *_: Any) -> str:
            raise ValueError("the engine has ended")

    repeatable_sampling.hold_requests(Dead)
    engine = Dead()
    with pytest.raises(ValueError, match="the engine has ended"):
        added(requests(), engine)
    assert engine.events == ["paused", "resumed"]

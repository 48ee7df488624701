"""Has vLLM sample the same completions in every training of a seed; on the CPU alone (frameworks/<name>/cpu).

As released, all requests of a training draw from one generator in the order in which they arrive. The batches that
they are computed in depend on that order too, and so do the last bits of their probabilities. Here every request has a
seed of its own, and the requests of a batch wait for each other and then begin in the order of their numbers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from typing import Any

from system.quiet_time import QuietTime

KEY = "crosszero"  # in SamplingParams.extra_args
PATIENCE_SECONDS = 300.0
LOOK_SECONDS = 1.0


def seed(*parts: str | int) -> int:
    """A seed from 0 to 2^31-1: a hash of the training's seed, the step, the prompt and the completion's number."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "big") >> 1


def batch_position(batch: str, number: int, requests: int) -> dict[str, Any]:
    """What a request carries in `extra_args`.

    Args:
        batch: names the requests that belong together.
        number: of the request, each once in a batch.
        requests: how many there are in the batch.
    """
    return {KEY: {"batch": batch, "number": number, "requests": requests}}


def prompt_params(params: Any, base: int, step: int | None, prompts: Sequence[str], index: int, samples: int) -> Any:
    """SamplingParams for the completions of one of a step's prompts; `of_completion` makes those of each.

    Args:
        params: of all prompts.
        base: seed of the training.
        step: of the training; None where it samples for something else, which keeps the release's order.
        prompts: that are sampled together.
        index: of this one.
        samples: completions of each prompt.
    """
    if step is None:
        return params
    params_of_prompt = copy(params)
    params_of_prompt.seed = seed(base, step, prompts[index])
    params_of_prompt.extra_args = batch_position(str(seed(step, *prompts)), index * samples, len(prompts) * samples)
    return params_of_prompt


def completion_params(params: Any, repeat: int) -> Any:
    """SamplingParams of a prompt's completion, by its number from 0."""
    if not (params.extra_args or {}).get(KEY):
        return params
    params_of_completion = copy(params)
    params_of_completion.seed = seed(params.seed, repeat)
    params_of_completion.extra_args = {
        KEY: {**params.extra_args[KEY], "number": params.extra_args[KEY]["number"] + repeat}
    }
    return params_of_completion


Add = Callable[[], Awaitable[Any]]


class Batches:
    """Requests that wait for the others of their batch, in one engine."""

    def __init__(self, engine: Any, patience: float = PATIENCE_SECONDS) -> None:
        """Take vLLM's AsyncLLM, which is paused while a batch is added, and the longest wait for one, in seconds."""
        self.engine, self.patience = engine, patience
        self.one_at_a_time = asyncio.Lock()
        self.waiting: dict[str, dict[int, tuple[Add, asyncio.Future[Any]]]] = {}

    async def add(self, request: dict[str, Any], add: Add) -> Any:
        """Add a request when all of its batch are there.

        Args:
            request: its place, see `place`.
            add: adds it to the engine.

        Raises:
            RuntimeError: its number came twice, or the batch is not complete after `patience`.
        """
        batch = self.waiting.setdefault(request["batch"], {})
        if request["number"] in batch:
            raise RuntimeError(f"request {request['number']} of a batch should come once, but came twice")
        future = asyncio.get_running_loop().create_future()
        batch[request["number"]] = add, future
        if len(batch) == request["requests"]:
            await self._begin(self.waiting.pop(request["batch"]))
        quiet, look = QuietTime(LOOK_SECONDS), min(self.patience, LOOK_SECONDS)
        while not (await asyncio.wait([future], timeout=look))[0]:
            if quiet.seconds() >= self.patience:
                raise RuntimeError(
                    f"{request['requests']} requests should come together, but {len(batch)} came in {self.patience:g} s"
                )
        return future.result()

    async def _begin(self, batch: dict[int, tuple[Add, asyncio.Future[Any]]]) -> None:
        async with self.one_at_a_time:
            await self.engine.pause_generation(mode="keep")  # empties the cache of prefixes, too
            try:
                for _, (add, future) in sorted(batch.items(), key=lambda entry: entry[0]):
                    try:
                        future.set_result(await add())
                    except Exception as error:
                        future.set_exception(error)
            finally:
                await self.engine.resume_generation()


def hold_requests(engine: type[Any]) -> None:
    """Have requests with a place wait for their batch.

    Args:
        engine: vLLM's AsyncLLM.
    """
    add_request = engine.add_request
    if getattr(add_request, "holds", False):
        return

    async def add_in_order(self: Any, request_id: str, prompt: Any, params: Any, *others: Any, **named: Any) -> Any:
        request = (getattr(params, "extra_args", None) or {}).get(KEY)
        if request is None:
            return await add_request(self, request_id, prompt, params, *others, **named)
        plain = copy(params)
        plain.extra_args = {key: value for key, value in params.extra_args.items() if key != KEY} or None
        if not hasattr(self, "crosszero_batches"):
            self.crosszero_batches = Batches(self)
        return await self.crosszero_batches.add(
            request, lambda: add_request(self, request_id, prompt, plain, *others, **named)
        )

    add_in_order.holds = True  # type: ignore[attr-defined]
    engine.add_request = add_in_order

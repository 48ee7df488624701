"""The options of commands that sample models: on which benchmarks, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from cli import graph
from system.unknown_names import nearest, unknown

BENCHMARK = "--benchmark"


class BenchmarksCommand(graph.WorkflowCommand):
    """A command whose `--benchmark` takes several names at once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, after `--benchmark gsm8k math500` has become two options."""
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*each_benchmark(args[:end]), *args[end:]])


def each_benchmark(arguments: list[str]) -> list[str]:
    """Repeat `--benchmark` before each of its names. A model may stand behind them: it is no benchmark.

    Raises UserError for what is neither, but nearly a benchmark.
    """
    from eval import benchmark  # only here: the list of commands should come at once

    known, repeated, inside = benchmark.names(), [], False
    for position, argument in enumerate(arguments):
        if argument.startswith("-"):
            inside = argument == BENCHMARK
        elif inside and arguments[position - 1] != BENCHMARK:
            if argument in known:
                repeated.append(BENCHMARK)
            elif "/" not in argument and not Path(argument).exists() and nearest(argument, known):
                raise unknown("benchmark", argument, known)
            inside = argument in known
        repeated.append(argument)
    return repeated


def complete_benchmarks(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """The benchmarks that begin with what was typed, for the shell's completion."""
    from eval import benchmark

    return [name for name in benchmark.names() if name.startswith(typed)]


def model_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how models are asked; the function gets them among `settings`."""

    @click.option(
        BENCHMARK, "benchmarks", multiple=True, metavar="NAME…", help="Benchmarks (default: those of the model's run).",
        shell_complete=complete_benchmarks,
    )  # fmt: skip
    @click.option("--protocol", metavar="NAME", help="How to ask and decode (eval/protocols.yaml).")
    @click.option("--prompt", metavar="NAME", help="The prompt (tasks/prompts.yaml, or a task's own).")
    @click.option(
        "--max-tokens", type=click.IntRange(1), metavar="N", help="Of a completion, instead of the protocol's."
    )
    @click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N problems of each benchmark.")
    @click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N problems of each, at random.")
    @click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of that choice (default: 0).")
    @click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Where to sample (default: the scale's).")
    @wraps(function)
    def command(
        *, settings: dict[str, str], benchmarks: tuple[str, ...], protocol: str | None, prompt: str | None,
        max_tokens: int | None, limit: int | None, sample: int | None, seed: int | None,
        device: str | None, **values: Any,
    ) -> None:  # fmt: skip
        wishes = {
            "benchmarks": benchmarks or None, "protocol": protocol, "prompt": prompt, "max_tokens": max_tokens,
            "limit": limit, "sample": sample, "sample_seed": seed, "device": device,
        }  # fmt: skip
        function(settings=graph.configuration(wishes) | settings, **values)

    return command


def model_path(name: str) -> str:
    """A model as the workflow reads it, which runs in the project's folder: folders by their whole path."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() else name

"""Part of a benchmark's problems, for a quick look: the first N, or N at random. What is made of it says so.

The record of a subset, in provenance, is `{"size": 50, "seed": null, "whole": 1319}`; `seed` is of the random choice.
`"chosen": "elsewhere"` stands in it where a file of generations decides; its problem table has only those problems.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from system.errors import UserError


@dataclass(frozen=True)
class Subset:
    """So many problems of each benchmark: the first ones, or with a seed some at random."""

    size: int
    seed: int | None = None

    def rows(self, problems: pa.Table) -> pa.Table:
        """Those of a problem table, in its order."""
        if self.seed is None or self.size >= len(problems):
            return problems.slice(0, self.size)
        return problems.take(sorted(random.Random(self.seed).sample(range(len(problems)), self.size)))

    def record(self, problems: pa.Table) -> dict[str, Any] | None:
        """What provenance says of it; None for a benchmark that has no more problems."""
        whole = len(problems)
        return {"size": self.size, "seed": self.seed, "whole": whole} if self.size < whole else None

    @property
    def folder(self) -> str:
        """Name for the folder of its results."""
        return f"first-{self.size}" if self.seed is None else f"random-{self.size}-seed-{self.seed}"

    @property
    def options(self) -> list[str]:
        """On the command line (`add_options`)."""
        if self.seed is None:
            return ["--limit", str(self.size)]
        return ["--sample", str(self.size), "--sample-seed", str(self.seed)]


def choose(limit: int | None, sample: int | None, seed: int | None = None) -> Subset | None:
    """The subset of a command line or a configuration; None if it asks for all problems.

    Raises:
        UserError: both are named, a seed without a sample, or a number below 1.
    """
    if limit is not None and sample is not None:
        raise UserError(
            "limit takes the first problems and sample some at random: name one of them", code="contradicting-options"
        )
    if seed is not None and sample is None:
        raise UserError(
            "a seed of the problems belongs to a random sample: add sample=N, or leave it out", code="needless-option"
        )
    size = limit if sample is None else sample
    if size is None:
        return None
    if size < 1:
        raise UserError(f"there should be 1 problem or more, not {size}", code="argument-out-of-range")
    return Subset(size) if sample is None else Subset(sample, seed or 0)


def from_record(record: Mapping[str, Any]) -> Subset | None:
    """The subset that a provenance record names; None if the benchmark is whole."""
    subset = record.get("subset")
    return Subset(subset["size"], subset["seed"]) if subset else None


def label(record: Mapping[str, Any]) -> str:
    """For readers, of a provenance record: `first 50 of 1319`; empty if the benchmark is whole."""
    subset = record.get("subset")
    if not subset:
        return ""
    if subset.get("chosen"):
        return f"{subset['size']} of {subset['whole']}"
    if subset["seed"] is None:
        return f"first {subset['size']} of {subset['whole']}"
    return f"random {subset['size']} of {subset['whole']}, seed {subset['seed']}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--limit`, `--sample` and `--sample-seed` to a command line."""
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N problems of each benchmark")
    parser.add_argument("--sample", type=int, metavar="N", help="only N problems of each benchmark, at random")
    parser.add_argument("--sample-seed", type=int, metavar="N", help="seed of that choice (default: 0)")

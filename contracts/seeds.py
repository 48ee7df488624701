"""Seeds: of a training, as part of the run's id, and of each completion that is sampled."""

from __future__ import annotations

import hashlib
import json

SAMPLING_RULE = "sha256 of (base, benchmark, problem_id, repeat), 31 bits"


def run_id(run: str, seed: int | str) -> str:
    """The id of one training of a run, `<recipe>/<run>/seed-<n>`, also its folder under results/<scale>/runs/."""
    return f"{run}/seed-{seed}"


def run_of(run_id: str) -> str:
    """The run of an id, `<recipe>/<run>`; the id itself where it has no seed (generations made elsewhere)."""
    return run_id.rpartition("/seed-")[0] or run_id


def sampling_seed(base: int, benchmark: str, problem_id: str, repeat: int) -> int:
    """The sampling seed of one completion, from 0 to 2^31-1.

    It is a hash, so it depends on neither the order of the requests nor the number of GPUs.

    Args:
        base: the seed of the evaluation, shared by all its completions.
        benchmark: the benchmark's name.
        problem_id: the problem's id in that benchmark.
        repeat: which of the problem's completions, from 0.
    """
    text = json.dumps([base, benchmark, problem_id, repeat])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1

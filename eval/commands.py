"""The commands of an evaluation, generate → grade → score: nothing else spells them.

The workflow's rules, a check in rounds, studies and the first run on a GPU take them from here. Each is a list of words
for `subprocess`, or for a rule's `params`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval.run_settings import Evaluated, generation_gpus
from eval.subset import Subset

Command = list[str]


def set_options(overrides: Mapping[str, Any]) -> Command:
    """`--set key=value` for each field of the protocol that is overridden."""
    values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in overrides.items()}
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def sampling_options(
    protocol: str, overrides: Mapping[str, Any], device: str, *, seed: int | str = 0, processes: int = 1
) -> Command:
    """How to sample: the options of `generate` that are the same for all checkpoints and benchmarks.

    Args:
        protocol: a name in eval/protocols.yaml.
        overrides: of the protocol's fields.
        device: cpu or cuda.
        seed: base seed of the samples.
        processes: of vLLM, each with a model of its own.
    """
    device_options = ["--device", device, "--data-parallel", str(processes)]
    return ["--protocol", protocol, *set_options(overrides), "--seed", str(seed), *device_options]


def run_sampling_options(run: Evaluated, *, seed: int | str = 0, subset: Subset | None = None) -> Command:
    """`sampling_options` as a run's evaluation states them, for all problems or a part of them."""
    overrides, processes = run.evaluation.get("override", {}), max(generation_gpus(run), 1)
    part = subset.options if subset else []
    return part + sampling_options(run.evaluation["protocol"], overrides, run.device, seed=seed, processes=processes)


def generate(
    python: str | Path, *, run: str, checkpoints: Mapping[int, str | Path], benchmarks: Iterable[str],
    data: str | Path, work: str | Path, output: str | Path, sampling: Iterable[str],
) -> Command:  # fmt: skip
    """Generate the samples of checkpoints on benchmarks.

    Args:
        python: of the evaluation environment.
        run: name for the samples, such as <recipe>/<run>/seed-<n>.
        checkpoints: folders by step.
        benchmarks: names.
        data: folder of the benchmarks' problem tables.
        work: folder of unfinished samples; survives a failed job.
        output: folder for step-<n>/<benchmark>.parquet.
        sampling: see `sampling_options`.
    """
    options = [word for step, folder in checkpoints.items() for word in ("--checkpoint", f"{step}={folder}")]
    folders = ["--data", str(data), "--work", str(work), "--output", str(output)]
    return [str(python), "-m", "eval.generate", "--run", run, *options, "--benchmark", *benchmarks, *sampling, *folders]


def grade(
    python: str | Path, *, samples: str | Path, data: str | Path, output: str | Path,
    extraction: str | None = None, grader: str | None = None,
) -> Command:  # fmt: skip
    """Grade stored samples.

    Args:
        python: of the evaluation environment.
        samples: what `generate` wrote.
        data: folder of the benchmarks' problem tables.
        output: folder for step-<n>/<benchmark>.parquet.
        extraction: where to look for an answer without a box, by default as the samples' protocol says.
        grader: one of grading.verdicts.GRADERS.
    """
    command = [str(python), "-m", "eval.grade", "--samples", str(samples), "--data", str(data), "--output", str(output)]
    for option, value in (("--extraction", extraction), ("--grader", grader)):
        command += [option, value] if value else []
    return command


def score(python: str | Path, *, graded: str | Path, data: str | Path, output: str | Path) -> Command:
    """Score graded samples.

    Args:
        python: of the base environment.
        graded: what `grade` wrote.
        data: folder of the benchmarks' problem tables, which say what was requested.
        output: the score table.
    """
    options = ["--graded", str(graded), "--problems", str(data), "--output", str(output)]
    return [str(python), "-m", "eval.score", *options]

"""The JSON in which machines exchange trainings, and trainings of several machines put together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from analysis.benchmark.trainings import Training
from analysis.measures import phases
from contracts.run_file import validate
from system import durable
from system.errors import UserError
from system.text_safety import one_line

FORMAT = "crosszero benchmark 3"
WRONG = "something is wrong in it"


def write(trainings: Sequence[Training], file: Path) -> None:
    """Write trainings for another machine's `--with`."""
    rows = [{key: value for key, value in asdict(one).items() if key != "measurement"} for one in trainings]
    durable.write_text(file, json.dumps({"format": FORMAT, "trainings": rows}, indent=1) + "\n")


def check_evaluation(one: Training, scale: str, benchmarks: Sequence[str]) -> None:
    """Raise UserError unless a training of another machine was evaluated like those that it is put beside.

    Args:
        one: the training.
        scale: of the others.
        benchmarks: of the others, as in a Training.
    """
    if (one.scale, sorted(one.benchmarks)) != (scale, sorted(benchmarks)):
        raise UserError(
            f"the trainings should have the same scale and evaluation as these ({scale}: {', '.join(benchmarks)}), but "
            f"{one.name} has {one.scale}: {', '.join(one.benchmarks)}; evaluate both alike",
            code="other-benchmark",
        )


def put_together(own: Sequence[Training], *others: Sequence[Training]) -> list[Training]:
    """Own trainings and those of other files, to be shown on one page; one that is among several is there once.

    Trainings of another file are further seeds of the same measurement if they ran on such a machine with the same
    settings and have other seeds. Else they are a measurement of their own, which gets a number.

    Raises:
        UserError: they were evaluated otherwise, or seeds of a run differ in more than that.
    """
    for one in (one for each in (own, *others) for one in each):
        check_evaluation(one, own[0].scale, own[0].benchmarks)
    every = list(own)
    for number, theirs in enumerate(others, 2):
        new = [one for one in theirs if all(one.identity != other.identity for other in every)]
        apart = {one.machine for one in new if any(map(one.is_apart_from, every))}
        every += [replace(one, measurement=number) if one.machine in apart else one for one in new]
    _check_seeds(every)
    return every


def _check_seeds(trainings: Sequence[Training]) -> None:
    """Raise UserError where the trainings of a run on a machine differ in more than their seed, or not in that."""
    firsts, before = dict[tuple[str, str], Training](), set[tuple[str, str, int]]()
    for one in sorted(trainings, key=lambda one: bool(one.stop_reason)):  # those with all steps are compared first
        if (one.name, one.hardware, one.seed) in before:
            raise UserError(
                f"each seed of {one.name} should be there once, but seed {one.seed} is there twice: leave one out",
                code="repeated-seed",
                seed=one.seed,
            )
        before.add((one.name, one.hardware, one.seed))
        first = firsts.setdefault((one.name, one.hardware), one)
        for key in one.unequal(first):
            raise UserError(
                f"the seeds of {one.name} should differ in nothing else, but for seed {first.seed} {key} is "
                f"{getattr(first, key)}, for seed {one.seed} {getattr(one, key)}: train one of them again, or leave it "
                "out",
                code="unequal-seeds",
                key=key,
            )


def read(file: Path) -> list[Training]:
    """The trainings of another machine's benchmark.json; raises UserError if it is no such file, or contradictory."""
    try:
        text = file.read_text(encoding="utf-8")
        content = _visible(json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_number))
        if content["format"] != FORMAT:
            raise ValueError(f"it has the format {content['format']}")
        validate(content, "benchmark", WRONG)
        trainings = [_training(row) for row in content["trainings"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UserError) as error:
        why = str(error).split(f"; {WRONG}: ")[0] if isinstance(error, UserError | ValueError) else "it is none"
        raise UserError(
            f"{file} should be the benchmark.json of another machine ({FORMAT}), but {why}: give the file that "
            "crosszero benchmark wrote there",
            code="not-a-benchmark",
            path=str(file),
        ) from None
    try:
        _check_seeds(trainings)
    except UserError as error:
        raise error.within(str(file)) from None
    return trainings


def _training(row: Mapping[str, Any]) -> Training:
    """A training of a file that keeps to the schema; raises ValueError where its values contradict each other."""
    known = {one.name for one in fields(Training)} - {"measurement"}
    values = {key: row[key] for key in known & row.keys()}
    one = Training(**values | {"curve": [tuple(point) for point in row["curve"]]})
    steps, times = [point[0] for point in one.curve], [point[1] for point in one.curve]
    rates = [one.rate(kind) or 0.0 for kind in phases.KINDS]
    for holds, why in (
        (len(one.curve) == 0 if one.stop_reason else len(one.curve) > 1, "a curve with a checkpoint, or a stop_reason"),
        (all(low < high for each in (steps, times) for low, high in pairwise(each)), "a curve that goes on in time"),
        (len(one.seconds_of_steps) == one.steps >= max(steps, default=0), "seconds for each step, and no more steps"),
        (one.seconds > 0 and max(rates) < 1e15, "seconds above 0, and fewer than 1e15 tokens in each"),
    ):
        if not holds:
            raise ValueError(f"{one.name}, seed {one.seed}, should have {why}, and has not")
    return one


def _number(text: str) -> int | float:
    """A number of JSON; raises ValueError for NaN and for what is too large to be drawn."""
    if not abs(value := float(text)) < 1e100:
        raise ValueError(f"it has the number {text:.20}")
    return int(text) if text.lstrip("-").isdecimal() else value


def _visible(value: Any) -> Any:
    """Its texts as a page can show them in a line."""
    if isinstance(value, dict):
        return {one_line(key): _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return one_line(value) if isinstance(value, str) else value

"""Every judged completion of a training, written once by the reward hook; logs, warnings and rollouts are read from it.

    <work>/rollouts/<attempt>-from-<step>/<host>-<pid>-<random>.jsonl

Each start of the trainer is an attempt with its own folder, and each process that judges writes its own file. A row has
`step` (of the stage), `problem_id`, `reward`, `parts` (what each of several rewards gave), `verdict`, `format_error`,
`time` and, if the completion may be kept, `prompt` and `completion`. A hook that does not know its step writes null:
these rows are assigned to steps by counting, in the order of their times, because a synchronous trainer judges equally
many in every step. With dynamic sampling it judges until as many groups as it trains on have a signal, so these are
counted; a step's rows are all that were judged for it, those that were sampled in vain too.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from contracts.run_file import Stage
from contracts.tables import ROLLOUTS_PER_STEP
from recipes import rewards
from system import json_lines
from system.errors import UserError

VARIABLE = "CROSSZERO_ROLLOUTS"  # environment variable with the attempt's folder, for the training processes
FOLDER = "rollouts"
SECONDS_BETWEEN_SYNCS = 1.0
Row = dict[str, Any]
Known = TypeVar("Known")


class Attempt(NamedTuple):
    """One start of the trainer."""

    number: int
    resumed_from: int  # step of the checkpoint that it continues, 0 for none
    folder: Path


def attempts(work: Path) -> list[Attempt]:
    """The attempts at a stage, in order."""
    listed = []
    for folder in (work / FOLDER).glob("*-from-*"):
        number, _, resumed_from = folder.name.partition("-from-")
        listed.append(Attempt(int(number), int(resumed_from), folder))
    return sorted(listed)


def start_attempt(work: Path, resumed_from: int) -> Attempt:
    """Make the folder of a new attempt."""
    number = 1 + max((attempt.number for attempt in attempts(work)), default=0)
    folder = (work / FOLDER / f"{number:03d}-from-{resumed_from:06d}").absolute()
    folder.mkdir(parents=True)
    return Attempt(number, resumed_from, folder)


class Recorder:
    """Appends rows to this process's own file of an attempt."""

    def __init__(self, folder: Path) -> None:
        """Open a new file in the attempt's folder."""
        name = f"{os.uname().nodename}-{os.getpid()}-{secrets.token_hex(8)}.jsonl"
        self._file = (folder / name).open("x", encoding="ascii")
        self._synced = time.monotonic()
        self._step: int | None = None
        self._kept: list[str] = []  # problems of the step's kept rows so far, ascending

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows; each has `step`, `problem_id`, `prompt` and `completion`, besides what was judged."""
        lines = []
        for row in rows:
            line = {**row, "time": time.time()}
            if not self._may_be_kept(line["step"], line["problem_id"]):
                del line["prompt"], line["completion"]
            lines.append(json_lines.dump(line))
        self._file.write("".join(lines))
        self._file.flush()
        if time.monotonic() - self._synced >= SECONDS_BETWEEN_SYNCS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _may_be_kept(self, step: int | None, problem_id: str) -> bool:
        """Whether the row is among the first ROLLOUTS_PER_STEP of its step by problem, as far as this process knows.

        The first of all processes together are among the first of each, so no row that will be kept loses its text.
        """
        if step is None:
            return True
        if step != self._step:
            self._step, self._kept = step, []
        if bisect_right(self._kept, problem_id) >= ROLLOUTS_PER_STEP:
            return False
        insort(self._kept, problem_id)
        del self._kept[ROLLOUTS_PER_STEP:]
        return True


@cache
def process_recorder() -> Recorder:
    """The recorder of a training process; train_stage.py names its folder in the environment."""
    return Recorder(Path(os.environ[VARIABLE]))


class Batch(NamedTuple):
    """What a complete step has judged."""

    prompts: int
    samples: int  # of each prompt
    resampled: bool = False  # groups without a signal are sampled again

    @classmethod
    def of_stage(cls, stage: Stage) -> Batch:
        """The batch that a stage samples in each step."""
        prompts = stage.batch.get("prompts_per_step", stage.batch["prompts_per_update"])
        return cls(prompts, stage.batch["samples_per_prompt"], bool(stage.objective.get("dynamic_sampling")))

    def complete(self, rows: Sequence[Row]) -> bool:
        """Whether these are all rows of one step: the right number, in whole groups."""
        groups = [len(group) for group in _groups(rows)]
        if any(count % self.samples for count in groups):
            return False
        if not self.resampled:
            return len(rows) == self.prompts * self.samples
        return sum(map(has_signal, _groups(rows))) >= self.prompts


def score(reward: float | None, verdict: str | None) -> float:
    """What OpenRLHF judges a group by: 1 for a right answer, else 0; the reward where no answer is judged."""
    return float(reward or 0.0) if verdict is None else float(verdict == "correct")


def has_signal(group: Sequence[Row]) -> bool:
    """Whether OpenRLHF's dynamic sampling keeps a group: the mean of its scores is neither 0 nor 1."""
    scores = [score(row["reward"], row["verdict"]) for row in group]
    return 0 < sum(scores) / len(scores) < 1


def _is_row(content: Row) -> bool:
    """Whether a line has what a row needs; damaged ones may not."""
    types = {
        "step": int | None,
        "problem_id": str,
        "reward": int | float | None,
        "verdict": str | None,
        "format_error": bool,
        "time": int | float,
    }
    return all(name in content and isinstance(content[name], kind) for name, kind in types.items())


def rows_by_step(rows: Sequence[Row], steps_before: int, batch: Batch) -> dict[int, list[Row]]:
    """Rows of one attempt by step, each in the order in which it was judged.

    Args:
        rows: all that were judged after `steps_before`.
        steps_before: needed to count steps where the rows do not name theirs.
        batch: what each step judges.
    """
    by_step: dict[int, list[Row]] = {}
    if batch.resampled and any(row["step"] is None for row in rows):
        counted = all(row.get("copy") is not None for row in rows)  # else a step may have more groups with a signal
        return _resampled_steps(rows, steps_before, batch) if counted else {}
    if any(row["step"] is None for row in rows):
        size = batch.prompts * batch.samples
        for index, row in enumerate(sorted(rows, key=lambda row: row["time"])):
            by_step.setdefault(steps_before + 1 + index // size, []).append(row)
    else:
        for row in rows:
            by_step.setdefault(row["step"], []).append(row)
    return by_step


def _resampled_steps(rows: Sequence[Row], steps_before: int, batch: Batch) -> dict[int, list[Row]]:
    """Rows by step; one ends with the last of the groups with a signal that it trains on."""
    by_step: dict[int, list[Row]] = {}
    step, kept, growing = steps_before + 1, 0, dict[Any, list[Row]]()
    for row in sorted(rows, key=lambda row: row["time"]):
        by_step.setdefault(step, []).append(row)
        group = growing.setdefault(_group_name(row), [])
        group.append(row)
        if len(group) == batch.samples:
            kept += has_signal(growing.pop(_group_name(row)))
        if kept == batch.prompts:
            step, kept = step + 1, 0
    return by_step


def attempt_steps(work: Path, batch: Batch) -> Iterator[tuple[Attempt, dict[int, list[Row]]]]:
    """Each attempt at a stage with its rollouts by step; what cannot be read is a warning, and left out."""
    for attempt in attempts(work):
        rows: list[Row] = []
        for file in sorted(attempt.folder.glob("*.jsonl")):
            try:
                rows += filter(_is_row, json_lines.read(file, torn_last_line=True))  # before an error, what is intact
            except (UserError, OSError) as error:
                print(f"WARNING: the rest of these rollouts cannot be read: {error}", flush=True)
        yield attempt, rows_by_step(rows, attempt.resumed_from, batch)


def of_last_attempts(by_attempt: Iterable[tuple[Attempt, Mapping[int, Known]]]) -> dict[int, Known]:
    """What the attempts have by step; where one repeats steps of an earlier one, the later counts."""
    by_step: dict[int, Known] = {}
    for attempt, own in by_attempt:
        by_step = {step: kept for step, kept in by_step.items() if step <= attempt.resumed_from} | dict(own)
    return dict(sorted(by_step.items()))


def read(work: Path, batch: Batch) -> dict[int, list[Row]]:
    """The rollouts of a stage by step; see `attempt_steps` and `complete_steps`."""
    return complete_steps(attempt_steps(work, batch), batch)


def complete_steps(by_attempt: Iterable[tuple[Attempt, Mapping[int, list[Row]]]], batch: Batch) -> dict[int, list[Row]]:
    """The rollouts of the last attempt at each step, of the steps for which all are there."""
    return {step: rows for step, rows in of_last_attempts(by_attempt).items() if batch.complete(rows)}


class LiveColumns:
    """Columns of the training log from an attempt's rollouts, step by step while they are written."""

    def __init__(self, attempt: Attempt, batch: Batch) -> None:
        """Start before the attempt's first step."""
        self._attempt, self._batch, self._done = attempt, batch, attempt.resumed_from
        self._files: dict[Path, json_lines.Follower] = {}
        self._waiting: list[Row] = []  # rows of steps after `_done`, without their texts

    def columns(self, step: int) -> dict[str, float | None]:
        """See the function `columns`; empty where the step's rollouts are incomplete or cannot be read.

        Steps are to be asked for in ascending order.
        """
        try:
            self._waiting += self._new_rows()
        except (UserError, OSError):
            return {}
        by_step = rows_by_step(self._waiting, self._done, self._batch)
        step_rows = by_step.get(step, [])
        if not self._batch.complete(step_rows):
            return {}
        self._waiting = [row for other, rows in by_step.items() if other > step for row in rows]
        self._done = step
        return step_columns(step_rows)

    def _new_rows(self) -> Iterator[Row]:
        for file in sorted(self._attempt.folder.glob("*.jsonl")):
            for row in filter(_is_row, self._files.setdefault(file, json_lines.Follower(file)).read()):
                yield {name: value for name, value in row.items() if name not in ("prompt", "completion")}


def step_columns(rows: Sequence[Row]) -> dict[str, float | None]:
    """Columns of contracts.tables.TRAINING_LOG from the rollouts of one complete step; none without rollouts.

    With dynamic sampling zero_signal_rate is the share of groups that were sampled in vain.
    """
    if not rows:
        return {}
    judged = [rewards.Reward(row["reward"], row["verdict"], row["format_error"]) for row in rows]
    rewards_of_groups = [[row["reward"] for row in group] for group in _groups(rows)]
    deviation = _standard_deviation([one.value for one in judged if one.value is not None])
    return {**verdict_rates(judged), "reward_std": deviation, "zero_signal_rate": zero_signal_rate(rewards_of_groups)}


def reward_columns(rows: Sequence[Row], names: Sequence[str]) -> list[Row] | None:
    """How often each reward fired in one step, and its mean, as contracts.tables.REWARDS has them.

    Args:
        rows: of one complete step.
        names: of the run's rewards, in their order.

    Returns:
        None for a run with one reward, and where the values were not recorded one by one.
    """
    columns = [row.get("parts") for row in rows]
    if len(names) < 2 or not rows or any(not isinstance(c, list) or len(c) != len(names) for c in columns):
        return None
    by_reward = []
    for name, values in zip(names, zip(*columns, strict=True), strict=True):
        numbers = [value for value in values if isinstance(value, int | float)]
        count = len(numbers)
        fired = sum(value != 0 for value in numbers)
        by_reward.append(
            {"name": name, "fired": fired / count if count else None, "mean": sum(numbers) / count if count else None}
        )
    return by_reward


def verdict_rates(judged: Sequence[rewards.Reward]) -> dict[str, float]:
    """Accuracy and error rates of the rewards of one step."""
    count = max(len(judged), 1)
    malformed = ("format_error", "no_answer")
    return {
        "accuracy": sum(reward.verdict == "correct" for reward in judged) / count,
        "wrong_answer_rate": sum(reward.verdict == "wrong" for reward in judged) / count,
        "format_error_rate": sum(reward.format_error or reward.verdict in malformed for reward in judged) / count,
    }


def zero_signal_rate(groups: Iterable[Sequence[float]]) -> float | None:
    """Share of groups (the rewards of one prompt's completions) that are all equal; None without groups of several."""
    comparable = [set(group) for group in groups if len(group) > 1]
    return sum(len(values) == 1 for values in comparable) / len(comparable) if comparable else None


def kept_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows of one step whose texts are kept: the first ROLLOUTS_PER_STEP in the order of their problems."""
    return sorted(rows, key=lambda row: row["problem_id"])[:ROLLOUTS_PER_STEP]


def _group_name(row: Row) -> tuple[str, int]:
    return row["problem_id"], row.get("copy") or 0


def _groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    for _, members in groupby(sorted(rows, key=_group_name), key=_group_name):
        yield list(members)


def _standard_deviation(values: Sequence[float]) -> float | None:
    """With Bessel's correction; None for fewer than two values."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))

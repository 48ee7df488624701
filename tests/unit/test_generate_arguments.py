from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import provenance, tables
from eval import commands, protocols, sample_journal
from eval.generate import parse_arguments, parse_checkpoints
from eval.generation_target import Target
from eval.subset import Subset
from tests.user_errors import refused


@pytest.mark.parametrize("value", ["a=b", "1", "1=", "-1=a"])
def test_bad_checkpoint_arguments(value: str) -> None:
    with refused("malformed-option", option="--checkpoint"):
        parse_checkpoints([value])


def test_one_step_has_one_checkpoint() -> None:
    with refused("repeated-name", name=1):
        parse_checkpoints(["1=a", "1=b"])


def test_checkpoint_arguments() -> None:
    assert {step: str(path) for step, path in parse_checkpoints(["0=a", "100=b=c"]).items()} == {0: "a", 100: "b=c"}


def test_a_command_is_read_as_it_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = {"temperature": 0.5, "prompt": "boxed", "repeats": {"default": 2}, "stop": ["</answer>"]}
    folders = {"data": "data", "work": Path("work"), "output": "samples"}
    checkpoints = {0: "models/base", 12: Path("step-12")}
    sampling = [*Subset(5, seed=7).options, *commands.sampling_options("demo", overrides, "cpu", seed=3, processes=2)]
    command = commands.generate(
        "python", run="a/b/seed-3", checkpoints=checkpoints, benchmarks=["x", "y"], sampling=sampling, **folders
    )
    assert command[:3] == ["python", "-m", "eval.generate"]
    monkeypatch.setattr("sys.argv", command[2:])
    arguments = parse_arguments()
    assert parse_checkpoints(arguments.checkpoint) == {step: Path(folder) for step, folder in checkpoints.items()}
    assert protocols.parse_overrides(arguments.set) == overrides
    assert {name: getattr(arguments, name) for name in folders} == {name: Path(path) for name, path in folders.items()}
    assert (arguments.run, arguments.benchmark, arguments.protocol) == ("a/b/seed-3", ["x", "y"], "demo")
    assert (arguments.seed, arguments.device, arguments.data_parallel) == (3, "cpu", 2)
    assert (arguments.limit, arguments.sample, arguments.sample_seed) == (None, 5, 7)


def target(folder: Path, repeats: int, seed: int = 0) -> Target:
    problems = pa.Table.from_pylist([{"problem_id": "p", "answer": "4"}, {"problem_id": "q", "answer": "4"}])
    protocol, output = protocols.load("demo"), folder / "step-0" / "sums.parquet"
    return Target(
        0, folder, "sums", "mine/seed-0", protocol, problems, repeats, {"seed": seed}, folder / "work", output
    )  # fmt: skip


def written(one: Target) -> None:
    """The output of a target, as `write` leaves it."""
    constant = dict.fromkeys(tables.SAMPLE.names) | {"step": 0, "benchmark": "sums"}
    rows = [constant | {"problem_id": p, "repeat": r, "completion": f"{p} {r}"}
            for p, r in one.expected()]  # fmt: skip
    tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, one.output)
    provenance.write(one.output, **one.identity())


def test_more_repeats_keep_the_samples_of_fewer_under_the_same_settings(tmp_path: Path) -> None:
    written(target(tmp_path, repeats=1))
    more = target(tmp_path, repeats=3)
    assert not more.is_finished()
    assert {key: row["completion"] for key, row in more.stored_samples().items()} == {("p", 0): "p 0", ("q", 0): "q 0"}
    writer = sample_journal.Writer(more.folder)
    writer.write([{"problem_id": "p", "repeat": 1, "completion": "new"}])
    writer.close()
    assert [key for key in more.expected() if key not in more.stored_samples()] == [("p", 2), ("q", 1), ("q", 2)]
    assert not target(tmp_path, repeats=3, seed=1).samples_of_smaller_output()  # other settings, other samples
    assert target(tmp_path, repeats=1).is_finished() and not target(tmp_path, repeats=1).samples_of_smaller_output()


def test_more_problems_keep_the_samples_of_a_part(tmp_path: Path) -> None:
    whole = target(tmp_path, repeats=1)
    part = Subset(1)
    written(dataclasses.replace(whole, problems=part.rows(whole.problems), subset=part.record(whole.problems)))
    assert provenance.read(whole.output)["subset"] == {"size": 1, "seed": None, "whole": 2}
    assert not whole.is_finished() and list(whole.samples_of_smaller_output()) == [("p", 0)]

"""Trainings of other machines: what their files may hold, and what is put together."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis.strategies import sampled_from
from user_errors import refused

from analysis.benchmark import __main__ as program
from analysis.benchmark import exchange, request
from analysis.benchmark.groups import common_accuracy, groups_of
from analysis.benchmark.trainings import Training
from analysis.measures import phases
from cli import benchmark as command
from contracts.run_file import framework_names
from system.errors import ROOT, UserError
from tests.unit.stored_training import RUN, read, store


def test_what_is_no_benchmark_is_refused(tmp_path: Path) -> None:
    for missing in ({1, 2, 3, 4}, {2}):
        store(tmp_path, RUN, 0, without_phases=missing)
        with refused("log-without-phases"):
            read(tmp_path)
    file = tmp_path / "other.json"
    for text in ("[]", "{", json.dumps({"format": exchange.FORMAT, "trainings": [{}]}), '{"format": "other"}'):
        file.write_text(text)
        with refused("not-a-benchmark"):
            exchange.read(file)
    store(tmp_path, RUN, 1)
    one = read(tmp_path, seed=1)
    for key, value in (("scale", "small"), ("benchmarks", ["arithmetic_words by demo (max_tokens 48)"])):
        with refused("other-benchmark"):
            exchange.put_together([one], [replace(one, **{key: value})])
    reverse = replace(one, machine="another", benchmarks=one.benchmarks[::-1])
    assert len(exchange.put_together([one], [reverse])) == 2
    assert exchange.put_together([one], [one, replace(one, seed=2)]) == [one, replace(one, seed=2)]
    for vary in ("steps", "steps=", "steps=1,,2"):
        with refused("bad-variation"):
            command.varied([RUN], vary, "demo")


ODD = (
    None,
    "text",
    -1,
    1e999,
    math.nan,
    True,
    [],
    {},
    [None],
    {"update": -1.0},
    {"brewing": []},
    [(0, 1.0)],
    "a\x1b\ud800\nb",
    10**400,
    {"whole": [0.0, 2.0]},
    {"update": [1.0, 2.0]},
    [(0, 1.0, 0.1)],
    [(0, 1.0, 0.1), (3, 9.0, 0.2), (2, 10.0, 0.3)],
    [(0, 1.0, 0.1), (2, 9.0, 0.2), (3, 8.0, 0.3)],
    [(0, 1.0, 0.1), (99, 9.0, 0.2)],
)


@pytest.mark.slow
@given(key=sampled_from([one.name for one in fields(Training)]), value=sampled_from(ODD))
@settings(max_examples=150)
def test_any_value_of_another_machine_s_file_is_shown_or_refused(
    tmp_path_factory: pytest.TempPathFactory, one_training: Training, key: str, value: object
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    exchange.write([one_training], folder / "other.json")
    content = json.loads((folder / "other.json").read_text())
    content["trainings"][0][key] = value
    (folder / "other.json").write_text(json.dumps(content))
    try:
        (theirs,) = exchange.read(folder / "other.json")
        (group,) = groups_of(exchange.put_together([theirs], [theirs]))
    except UserError as error:
        assert error.code == "not-a-benchmark"
        return
    texts = str(program.costs_table([group], common_accuracy([theirs]), {group.name: 1.0}).display.to_dict())
    assert "nan" not in texts and "inf" not in texts
    assert "nan" not in str(program.share_table([group]).display) and group.name.isprintable()
    assert "\x1b" not in group.name + str(program.versions_table([group]))


STORED = sorted((ROOT / "results/reference/benchmarks").glob("*.json"))


@pytest.mark.parametrize("file", STORED, ids=lambda f: f.stem)
def test_the_files_of_this_project_can_be_put_beside_others(file: Path) -> None:
    stored = exchange.read(file)
    groups = groups_of(stored)
    assert len({tuple(sorted(one.seed for one in group.trainings)) for group in groups}) == 1
    assert {one.framework for one in stored} == {*framework_names()} or all(one.parts for one in stored)
    other = [replace(one, machine="another") for one in stored]
    assert len(groups_of(exchange.put_together(stored, other))) == 2 * len(groups)


def test_phases_of_other_machines_are_those_that_can_be_drawn(tmp_path: Path, one_training: Training) -> None:
    named = replace(one_training, phases={f"{kind} and more": 1.0 for kind in phases.KINDS})
    exchange.write([named], tmp_path / "theirs.json")
    assert exchange.read(tmp_path / "theirs.json") == [named]
    exchange.write([replace(named, phases={"rollout": 1.0})], tmp_path / "theirs.json")
    with refused("not-a-benchmark"):
        exchange.read(tmp_path / "theirs.json")


def test_a_file_is_read_before_anything_is_trained(tmp_path: Path, one_training: Training) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with refused("not-a-benchmark"):
        request.check([RUN], "demo", [tmp_path / "deep.json"], "", tmp_path)
    exchange.write([one_training], tmp_path / "alike.json")
    request.check([RUN], "demo", [tmp_path / "alike.json"], "", tmp_path)
    text = (tmp_path / "alike.json").read_text()
    for there in ("max_tokens 48", "max_tokens 96, prompt r1-tags"):
        (tmp_path / "otherwise.json").write_text(text.replace("max_tokens 96", there))
        with refused("other-benchmark"):
            request.check([RUN], "demo", [tmp_path / "otherwise.json"], "", tmp_path)
    for file in STORED:
        scale = exchange.read(file)[0].scale
        request.check(request.run_names(request.RUNS, scale), scale, [file], "", tmp_path)


def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path, one_training: Training) -> None:
    file, two = tmp_path / "theirs.json", [one_training, replace(one_training, seed=1)]
    for code, rows in (
        ("unequal-seeds", [two[0], replace(two[1], model="other")]),
        ("repeated-seed", [*two, two[0]]),
        ("repeated-seed", [*two, replace(two[0], curve=[(0, 1.0, 0.1), (4, 99.0, 0.7)])]),
        ("not-a-benchmark", [*two, replace(two[0], run="a/b", steps=5)]),
        ("not-a-benchmark", [*two, replace(two[0], run="a/b", phases={"sampling": 1e-300, "rest": 1.0})]),
        ("not-a-benchmark", [*two, replace(two[0], run="a/b", varied={"a": 10**400})]),
        ("not-a-benchmark", [*two, replace(two[0], run="a/b", stop_reason="collapse")]),
        ("not-a-benchmark", [*two, replace(two[0], run="a/b", gpu_utilisation=50.0)]),
    ):
        exchange.write(rows, file)
        with refused(code):
            exchange.read(file)
    exchange.write(two, file)
    file.write_text(file.read_text().replace('"varied": {}', '"varied": {"a": 1e400}'))
    with refused("not-a-benchmark"):
        exchange.read(file)


def test_equal_settings_may_be_written_otherwise(one_training: Training) -> None:
    one = replace(one_training, packages={"torch": "2", "trl": "1"}, completions_per_step=128)
    same = replace(one, seed=1, packages={"trl": "1", "torch": "2"}, completions_per_step=128.0)
    (group,) = groups_of(exchange.put_together([one], [same]))
    assert len(group.trainings) == 2
    with refused("repeated-seed"):
        exchange.put_together([one, same, one])

"""`crosszero compare A B`: what each side is, what is refused, the verdict and its exit status."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from analysis.compare_checkpoints import recognise_side as sides
from analysis.compare_checkpoints.recognise_side import check_sides, recognise_side
from cli import graph
from cli.compare import check_options, two_sides
from cli.main import crosszero
from contracts.paths import ResultsFolder
from tests.unit.test_grade_generations import QUESTIONS, qwen_row, results, write  # noqa: F401
from tests.user_errors import printed_code, refused

RUN = "openr1/qwen2.5-math-7b"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(crosszero, ["compare", *arguments], prog_name="crosszero")


def model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("typed", "kind", "name"),
    [
        (RUN, sides.TRAININGS, RUN),
        (f"{RUN}/seed-1", sides.TRAININGS, f"{RUN}/seed-1"),
        (f"{RUN}/seed-0/step-24", sides.STORED_STEP, f"{RUN}/seed-0/step-24"),
        ("sober/Qwen2.5-Math-7B", sides.PUBLISHED, "sober/Qwen2.5-Math-7B"),
        ("Qwen/Qwen2.5-Math-7B", sides.HUB, "Qwen/Qwen2.5-Math-7B"),
    ],
)
def test_names(typed: str, kind: str, name: str, tmp_path: Path) -> None:
    side = recognise_side(typed, ResultsFolder(tmp_path))
    assert (side.kind, side.name, side.typed) == (kind, name, typed)


def test_paths(tmp_path: Path, results: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(sides.model_folder, "check_files", lambda _: None)
    assert recognise_side(str(model(tmp_path / "m")), results).kind == sides.MODEL
    stored = model(results.run(f"{RUN}/seed-0").checkpoint(24))
    assert recognise_side(str(stored), results) == sides.RecognisedSide(
        str(stored), sides.STORED_STEP, f"{RUN}/seed-0/step-24"
    )
    assert recognise_side(*write(tmp_path / "a.jsonl", qwen_row(0, 0)), results).kind == sides.GENERATIONS
    with refused("unknown-name"):
        recognise_side("openr1", results)
    with refused("unknown-name"):
        recognise_side("openr1/qwen2.5-math-8b", results)


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ([RUN, f"{RUN}/seed-0/step-24"], "mixed-sides"),
        ([RUN, "Qwen/Qwen2.5-Math-7B"], "mixed-sides"),
        (["Qwen/Qwen2.5-Math-7B", "sober/Qwen2.5-Math-7B"], "published-second"),
        (["a/b", "a/c", "against", "a/d"], "mixed-sides"),
        ([RUN], "not-two-sides"),
        ([RUN, RUN, RUN], "not-two-sides"),
        (["against", RUN], "not-two-sides"),
    ],
)
def test_what_means_nothing_is_refused(names: list[str], code: str, tmp_path: Path) -> None:
    with refused(code):
        check_sides([[recognise_side(n, ResultsFolder(tmp_path)) for n in part] for part in two_sides(names)])


@pytest.mark.slow
def test_two_files_of_generations(tmp_path: Path, results: ResultsFolder) -> None:  # noqa: F811
    (old,) = write(tmp_path / "old.jsonl", *(qwen_row(i, 7) for i in range(3)))
    (new,) = write(tmp_path / "new.jsonl", *(qwen_row(i, f"The answer is {i}.") for i in range(3)))
    done = run(old, new)
    assert done.exit_code == 2 and "3 of the 1319 problems" in done.stdout  # a whole gsm8k has more
    done = run(old, new, "--accept", "subset")
    assert done.exit_code == 0, done.output
    page = Path(done.stdout.splitlines()[-1].removeprefix("page:").strip())
    content = json.loads(page.with_name("comparison.json").read_text())
    assert [line["difference"]["value"] for line in content["lines"]] == [1.0]
    assert page.is_file() and (content["checkpoint"], content["baseline"]) == (new, old)
    records = [json.loads(file.read_text()) for file in results.path.glob("runs/imported/old-*/imported.json")]
    assert sorted(record["extraction"] for record in records) == ["answer-is", "none"]  # as the other file needs it
    graded = results.run(records[0]["run"]).graded
    assert run(str(graded), str(graded), "--accept", "subset").exit_code == 0
    rows = [{"question": question, "response": f"\\boxed{{{i}}}"} for i, question in enumerate(QUESTIONS)]
    (plain,) = write(tmp_path / "plain.jsonl", *rows)  # no protocol of generations made elsewhere is known
    assert run(new, plain, "--accept", "subset", "--extraction", "answer-is").exit_code == 0


@pytest.mark.slow
def test_files_of_fields_that_are_named_and_of_a_benchmark_that_is_named(
    tmp_path: Path,
    results: ResultsFolder,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configured = graph.configured()
    monkeypatch.setattr(graph, "configured", lambda **chosen: configured | chosen)
    files = [
        write(tmp_path / name, *({"asked": QUESTIONS[i], "said": f"\\boxed{{{i + wrong}}}"} for i in numbers))[0]
        for name, numbers, wrong in (("old.jsonl", (0, 1), 1), ("new.jsonl", (1, 2), 0), ("far.jsonl", (2,), 0))
    ]
    fields = ["--map", "completion=said", "--map", "question=asked", "--accept", "subset"]
    assert printed_code(run(*files[:2]).output) == "not-generations"
    done = run(*files[:2], *fields, "--benchmark", "gsm8k")
    assert done.exit_code == 0 and "only the 1 of 1319 problems" in done.stdout, done.output
    done = run(files[0], files[2], *fields)
    assert done.exit_code == 2 and "share no problem" in done.stdout and "--accept:" not in done.stdout, done.output
    done = run(*files[:2], *fields, "--benchmark", "gsm8")
    assert done.exit_code == 3 and printed_code(done.output) == "unknown-name"
    done = run(*files[:2], *fields, "--benchmark", "aime24")
    assert done.exit_code == 3 and printed_code(done.output) == "unmatched-generations"
    (mixed,) = write(
        tmp_path / "mixed.jsonl", *({"question": q, "response": "1"} for q in (QUESTIONS[0], "What is it?"))
    )
    done = run(mixed, mixed, "--accept", "subset", "--benchmark", "gsm8k")
    assert done.exit_code == 0 and "aime24" not in done.stdout.partition("distinguishable")[2], done.output


def test_what_the_second_file_lacks_is_said_before_the_first_is_graded(tmp_path: Path, results: ResultsFolder) -> None:  # noqa: F811
    (good,) = write(tmp_path / "good.jsonl", qwen_row(0, 0))
    (bad,) = write(tmp_path / "bad.jsonl", {"question": QUESTIONS[0]})
    done = run(good, bad)
    assert done.exit_code == 3 and printed_code(done.output) == "not-generations" and "bad.jsonl" in done.output
    assert not results.run("imported").path.exists()


def test_mistakes_exit_with_3_as_1_and_2_are_verdicts(tmp_path: Path, results: ResultsFolder) -> None:  # noqa: F811
    (old,) = write(tmp_path / "old.jsonl", qwen_row(0, 7))
    done = run(old, str(tmp_path / "new.jsonl"))
    assert done.exit_code == 3 and printed_code(done.output) == "unknown-name"
    assert run(old, old, "--margin", "x").exit_code == 3
    assert run().exit_code == 3
    (tmp_path / "empty.jsonl").write_text("")
    done = run(old, str(tmp_path / "empty.jsonl"))
    assert done.exit_code == 3 and printed_code(done.output) == "no-generations"


def test_what_the_workflow_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    targets: list[tuple[str, dict[str, Any], list[str]]] = []

    def run_target(target: str, settings: dict[str, str], options: list[str]) -> int:
        targets.append((target, {key: yaml.safe_load(text) for key, text in settings.items()}, options))
        return 0

    monkeypatch.setattr(graph, "run_target", run_target)
    first, last = f"{RUN}/seed-0/step-0", f"{RUN}/seed-0/step-24"
    assert run(first, last, "-n", "--margin", "1").exit_code == 0
    target, settings, options = targets.pop()
    assert target.startswith("results/demo/compare/checkpoints/") and options == ["--dry-run"]
    assert settings == {"baseline": first, "checkpoint": last, "margin": 1.0}
    assert run(RUN, "simplerl/qwen2.5-math-7b", "--seeds", "0,1", "-n").exit_code == 0
    target, settings, _ = targets.pop()
    assert target == "compare_recipes"
    assert settings == {"recipe_a": [RUN], "recipe_b": ["simplerl/qwen2.5-math-7b"], "seeds": [0, 1]}


def test_one_training_a_side_is_refused_before_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "run_target", lambda *_: pytest.fail("nothing is to be started"))
    done = run(RUN, "simplerl/qwen2.5-math-7b")
    assert done.exit_code == 2 and printed_code(done.output) == "too-few-seeds" and "--seeds 0,1,2" in done.output


@pytest.mark.parametrize(("written", "failed", "status"), [(1, 1, 1), (2, 1, 2), (0, 0, 0), (None, 1, 3), (None, 0, 0)])
def test_the_verdict_on_recipes(
    written: int | None,
    failed: int,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    results: ResultsFolder,  # noqa: F811
) -> None:
    """It is that of this comparison, not of one before it."""
    folder = results.path / "compare" / "recipes" / "openr1_qwen2.5-math-7b-against-simplerl_qwen2.5-math-7b"
    folder.mkdir(parents=True)
    (folder / "recipes.json").write_text('{"exit_status": 1}')
    os.utime(folder / "recipes.json", (0, 0))

    def run_target(*_: object) -> int:
        if written is not None:
            (folder / "recipes.json").write_text(json.dumps({"exit_status": written}))
        return failed

    monkeypatch.setattr(graph, "run_target", run_target)
    assert run(RUN, "simplerl/qwen2.5-math-7b", "--seeds", "0,1").exit_code == status


@pytest.mark.parametrize(
    ("wanted", "recipes", "rounds"),
    [({"looks": 8}, True, False), ({"paired_seeds": True}, False, False), ({"posterior": True}, False, True)],
)
def test_options_of_another_kind_of_comparison_are_refused(wanted: dict[str, Any], recipes: bool, rounds: bool) -> None:
    with refused("needless-option", option=next(iter(wanted))):
        check_options(wanted, recipes, rounds)
    check_options(wanted, not recipes and not rounds, False)

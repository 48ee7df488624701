"""Every command, given a cut, empty, binary, unreadable or missing input, or an output that cannot be written.

It ends with one sentence and another status than 0, never with a traceback. A cut or damaged table is never accepted.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis import provenance_diff
from analysis.compare_checkpoints import __main__ as gate
from analysis.report import __main__ as report
from cluster import efficiency, preflight
from contracts import provenance, tables
from eval import generate, grade, grader_agreement, score
from eval.importers import __main__ as importers
from frameworks import __main__ as frameworks
from frameworks import join_stage_logs
from recipes import models
from studies.grader_validation import human_labels
from system import forked_job
from system.errors import UserError, run_command
from tasks import load_problems, overlap
from tests import budgets
from tests.unit.model_folders import CONTENT, weights
from tests.unit.report import synthetic_results

pytestmark = pytest.mark.slow
RUN, WORDS = "openr1/math-7b/seed-0", "arithmetic_words"
Main = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A command with its line, in which OUT stands for its output, and the files it reads in the prepared folder."""

    main: Main
    line: str
    inputs: list[str] = field(default_factory=list)
    output: str = ""


RUN_FILES = [f"results/runs/{RUN}/{name}" for name in (
    "scores.parquet", "training_log.parquet", "stage-1/rollouts.parquet", f"graded/step-0/{WORDS}.parquet",
    f"graded/step-0/{WORDS}.parquet.provenance.json",
)]  # fmt: skip
MODEL = [f"model/{name}" for name in (*CONTENT, "model.safetensors")]
OF_RUN = "--run openr1/qwen2.5-math-7b --scale demo --seed 0 --model model --work work"
CASES = {
    "tasks.load_problems": Case(load_problems.main, f"loading {WORDS} --output OUT", output="problems.parquet"),
    "tasks.load_problems --mirror": Case(
        load_problems.main, "loading aime24 --mirror mirror --output OUT", ["mirror/benchmarks/aime24.jsonl"],
        "aime24.parquet",
    ),
    "tasks.overlap": Case(
        overlap.main, f"overlap --train data/{WORDS}.parquet --benchmark data/{WORDS}.parquet --output OUT",
        [f"data/{WORDS}.parquet"], "overlap.csv",
    ),
    "frameworks train": Case(
        frameworks.main, f"frameworks train {OF_RUN} --problems data/{WORDS}.parquet --output l --rollouts r",
        [f"data/{WORDS}.parquet", *MODEL],
    ),
    "frameworks export": Case(
        frameworks.main, f"frameworks export {OF_RUN} --step 0 --output OUT", MODEL, "step-0"
    ),
    "frameworks.join_stage_logs": Case(
        join_stage_logs.main, f"training_log results/runs/{RUN}/training_log.parquet --output OUT",
        [RUN_FILES[1]], "log.parquet",
    ),
    "eval.generate": Case(
        generate.main,
        f"generate --run {RUN} --checkpoint 0=model --benchmark {WORDS} --protocol demo --data data --work w "
        "--output s --device cpu", [f"data/{WORDS}.parquet", *MODEL],
    ),
    "eval.grade": Case(
        grade.main, "grade --samples samples --data data --output OUT",
        [f"data/{WORDS}.parquet", f"samples/step-0/{WORDS}.parquet",
         f"samples/step-0/{WORDS}.parquet.provenance.json"], "graded",
    ),
    "eval.score": Case(
        score.main, "score --graded graded --problems data --output OUT",
        [f"data/{WORDS}.parquet", f"graded/step-0/{WORDS}.parquet",
         f"graded/step-0/{WORDS}.parquet.provenance.json"], "scores.parquet",
    ),
    "eval.grader_agreement": Case(
        grader_agreement.main,
        f"x --samples samples/step-0/{WORDS}.parquet --data data --reference reference.yaml --output OUT",
        [f"data/{WORDS}.parquet", f"samples/step-0/{WORDS}.parquet", "reference.yaml",
         f"samples/step-0/{WORDS}.parquet.source.jsonl"], "agreement.md",
    ),
    "studies.grader_validation.human_labels": Case(
        human_labels.main, "x --input labels.jsonl --output OUT", ["labels.jsonl"], "labels.md"
    ),
    "analysis.report": Case(
        report.main, f"report --results results --run {RUN} --overlap overlap.csv --output OUT",
        [RUN_FILES[0], "overlap.csv"], "report",  # provenance_diff reads the other tables by the same function
    ),
    "analysis.compare_checkpoints compare": Case(
        gate.main, f"gate compare --checkpoint results/runs/{RUN}/graded/step-25 "
        f"--baseline results/runs/{RUN}/graded/step-0 --output OUT", RUN_FILES[3:], "check",
    ),
    "analysis.compare_checkpoints show": Case(
        gate.main, "gate show comparison/comparison.json", ["comparison/comparison.json", "comparison/comparison.txt"]
    ),
    "analysis.provenance_diff": Case(
        provenance_diff.main, f"x results/runs/{RUN} results/runs/{synthetic_results.NAMES[1]}", RUN_FILES
    ),
    "recipes.models": Case(models.main, "models demo-arithmetic --output OUT", output="made"),
    "cluster.preflight": Case(preflight.main, "preflight jobs.json", ["jobs.json"]),
    "cluster.efficiency": Case(efficiency.main, "efficiency --output OUT", output="e.md"),
    **{
        f"eval.importers {layout}": Case(
            importers.main,
            f"x --format {layout} --input {file} --benchmark {WORDS} --run mine --problems data/{WORDS}.parquet "
            f"--match order --output OUT {more}", [file, f"data/{WORDS}.parquet"], "samples.parquet",
        )
        for layout, file, more in (
            ("qwen-math", "qwen.jsonl", ""), ("lm-eval", "lm.jsonl", ""), ("lighteval", "lighteval.parquet", ""),
            ("jsonl", "plain.jsonl", "--map completion=c,gold=g"),
        )
    },
}  # fmt: skip


def make_samples(project: Path) -> None:
    """Samples and verdicts of every problem, and other harnesses' files with them."""
    problems = tables.read(project / "data" / f"{WORDS}.parquet", tables.PROBLEM).to_pylist()
    rows = [
        {
            "run": "mine", "step": 0, "benchmark": WORDS, "problem_id": problem["problem_id"], "repeat": 0, "seed": 1,
            "prompt": "p", "completion": f"\\boxed{{{problem['answer']}}}", "finish_reason": "stop", "protocol": "demo",
            "prompt_tokens": 1, "completion_tokens": 5, "gold": problem["answer"], "answer": problem["answer"],
            "verdict": "correct", "grader": "math-verify",
        }
        for problem in problems
    ]  # fmt: skip
    for folder, schema in (("samples", tables.SAMPLE), ("graded", tables.GRADED)):
        path = project / folder / "step-0" / f"{WORDS}.parquet"
        tables.write(pa.Table.from_pylist(rows, schema), schema, path)
        provenance.write(path, overrides={})

    def jsonl(name: str, lines: list[dict[str, object]]) -> None:
        (project / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    texts = [(problem["problem_id"], problem["answer"]) for problem in problems]
    kept = ("problem_id", "repeat")
    source = [{key: row[key] for key in kept} | {"right": True} for row in rows]
    jsonl(f"samples/step-0/{WORDS}.parquet.source.jsonl", source)
    jsonl("qwen.jsonl", [{"idx": i, "gt": gold, "code": [gold], "score": [True]} for i, (_, gold) in enumerate(texts)])
    jsonl("lm.jsonl", [{"doc_id": i, "doc": {}, "target": g, "resps": [[g]]} for i, (_, g) in enumerate(texts)])
    jsonl("plain.jsonl", [{"c": gold, "g": gold} for _, gold in texts])
    jsonl("labels.jsonl", [{"ground_truth": "#### 4", "m": {"is_correct": True, "solution": "#### 4"}}])
    details = [{"example_id": i, "gold": [g], "predictions": [g], "full_prompt": "q"} for i, (_, g) in enumerate(texts)]
    pq.write_table(pa.Table.from_pylist(details), project / "lighteval.parquet")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with everything that the commands read; the working folder meanwhile."""
    project = tmp_path_factory.mktemp("damaged")
    before = Path.cwd()
    os.chdir(project)
    sys.argv = ["loading", WORDS, "--output", f"data/{WORDS}.parquet"]
    load_problems.main()
    make_samples(project)
    for run, ceiling in synthetic_results.RUNS.items():
        folder = synthetic_results.write_run(project / "results", run, ceiling, problems=12, steps=(0, 25))
        tables.write(tables.ROLLOUT.empty_table(), tables.ROLLOUT, folder / "stage-1" / "rollouts.parquet")
    (project / "model").mkdir()
    for name, text in CONTENT.items():
        (project / "model" / name).write_text(text)
    weights(project / "model" / "model.safetensors")
    mirror = project / "mirror" / "benchmarks"
    mirror.mkdir(parents=True)
    (mirror / "aime24.jsonl").write_text('{"problem": "1", "answer": "1"}\n')
    (project / "reference.yaml").write_text("source: none\nbenchmarks: {}\n")
    table = f"data/{WORDS}.parquet"
    sys.argv = ["overlap", "--train", table, "--benchmark", table, "--output", "overlap.csv"]
    overlap.main()
    (project / "jobs.json").write_text(json.dumps({"cluster": None, "jobs": []}))
    (project / "comparison").mkdir()
    (project / "comparison" / "comparison.json").write_text(json.dumps({"exit_status": 0}))
    (project / "comparison" / "comparison.txt").write_text("better\n")
    yield project
    os.chdir(before)


class Trial:
    """Runs a command of CASES in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def run(self, case: Case, output: Path) -> str:
        """The sentence that the command ends with; empty if it succeeds. Any other exception is a traceback."""
        self._monkeypatch.setattr(sys, "argv", [str(output) if word == "OUT" else word for word in case.line.split()])
        self._capsys.readouterr()
        status: object = None
        try:
            run_command(lambda: sys.exit(status) if (status := case.main()) else None)  # type: ignore[arg-type]
        except SystemExit as end:
            status = end.code
        said = self._capsys.readouterr().err
        assert "Traceback" not in said, said
        sentence = status if isinstance(status, str) else said.strip().rpartition("\n")[2]
        return sentence if status else ""


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Trial:
    return Trial(monkeypatch, capsys)


def damages(file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Ways to damage a file, by name; each begins with the whole file in its place."""
    whole, chosen = file.read_bytes(), random.Random(file.name)
    for content in (b"", b"\0" * 200, bytes(chosen.randrange(256) for _ in range(300)), b"[]", b"\x89PNG\r\n\x1a\n"):
        yield f"{content[:4]!r}", lambda content=content: file.write_bytes(content)
    for kept in sorted({1, len(whole) // 2, len(whole) - 1, *(chosen.randrange(len(whole)) for _ in range(3))}):
        yield f"cut at {kept} of {len(whole)}", lambda kept=kept: file.write_bytes(whole[:kept])
    flips = 0 if file.suffix == ".csv" else 4  # a digit of a table of text may be another one unnoticed
    for at in (chosen.randrange(len(whole)) for _ in range(flips)):
        flipped = whole[:at] + bytes([whole[at] ^ 1 << chosen.randrange(8)]) + whole[at + 1 :]
        yield f"flipped at {at}", lambda flipped=flipped: file.write_bytes(flipped)
    yield "missing", file.unlink
    yield "a folder", lambda: (file.unlink(), file.mkdir())
    yield "a link to itself", lambda: (file.unlink(), file.symlink_to(file))


def read_again(file: Path) -> pa.Table | None:
    """The table in a file, None if that fails; a flipped bit may be in what nothing reads, such as statistics."""
    try:
        return pq.read_table(file)
    except (pa.ArrowException, OSError):
        return None


def restore(file: Path, whole: bytes) -> None:
    if file.is_dir():
        file.rmdir()
    else:
        file.unlink(missing_ok=True)
    file.write_bytes(whole)


def refuse_to_train(*_: object) -> NoReturn:
    """In place of a training, once its input was accepted: it would start this program, pytest, again."""
    raise UserError("no trainer is started here", code="training-failed")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name == "analysis.report"))
        for name in CASES
        if CASES[name].inputs
    ],
)
def test_a_damaged_input_ends_in_a_sentence(
    project: Path, tmp_path: Path, trial: Trial, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked_job, "_run_again", refuse_to_train)
    case, accepted = CASES[name], []
    for number, file in enumerate(project / path for path in case.inputs):
        whole = file.read_bytes()
        table = pq.read_table(file) if file.suffix == ".parquet" else None
        for what, damage in budgets.some(damages(file), 0.4):
            damage()
            same = file.suffix == ".parquet" and what.startswith("flipped") and read_again(file) == table
            try:
                said = trial.run(case, tmp_path / f"{number}-{what[:9].strip()}" / case.output)
            except BaseException as error:
                raise AssertionError(f"{name}: {file.name} {what}: {error!r}") from error
            finally:
                restore(file, whole)
            if not said and not (what.startswith("flipped") and same):
                accepted.append(f"{file.name} {what}")
            assert "\n" not in said.strip(), f"{name}: {file.name} {what}: {said}"
    # A comparison takes the tables that a folder has.
    assert not [one for one in accepted if ".parquet " in one and not one.endswith("missing")], accepted
    print(name, accepted)


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """A read-only file system, a full one, and what else cannot be written to."""
    mounted = {}
    for name, options in (("full", "size=4k"), ("readonly", "size=1m")):
        folder = tmp_path / name
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("mounting a small tmpfs needs root")
        mounted[name] = folder
    subprocess.run(["mount", "-o", "remount,ro", mounted["readonly"]], check=True)
    (mounted["full"] / "filling").write_bytes(b"x" * 4096)
    (tmp_path / "file").touch()
    yield {**mounted, "a file as folder": tmp_path / "file", "a long name": tmp_path / ("x" * 300)}
    for name in ("full", "readonly"):
        subprocess.run(["umount", tmp_path / name], check=True)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].output])
def test_an_output_that_cannot_be_written_ends_in_a_sentence(
    project: Path, disks: dict[str, Path], trial: Trial, name: str
) -> None:
    case = CASES[name]
    for what, folder in disks.items():
        try:
            said = trial.run(case, folder / case.output)
        except BaseException as error:
            raise AssertionError(f"{name}: {what}: {error!r}") from error
        assert said and "\n" not in said.strip(), f"{name}: {what}: {said}"

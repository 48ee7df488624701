"""Hostile text through every stage, by the stages' own commands: nothing is lost, added, run or shown raw."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from analysis.pages import table_texts
from contracts import paths, tables
from contracts.run_file import ROOT
from eval import sample_journal
from frameworks import reward_hook, rollout_log
from recipes import model_tokens, rewards
from recipes.runs import load_run, run_names
from system import json_lines
from tasks import registry, sandbox
from tasks.problems import Problem
from tests.forked_command import run_module
from tests.hostile_text import TEXTS, encodable

ALL = list(TEXTS.values())
WHOLE = [encodable(text) for text in ALL]
BENCHMARK, STEPS = "arithmetic_words", (0, 6)
META = {
    "countdown": {"nums": [1, 2, 3]},
    "knights_knaves": {"names": ["Zoey"], "knights": [True]},
    "doudizhu": {"mine": "3 3 2", "theirs": "4 4", "last": "A"},
    "gomoku": {"size": 3, "need": 3, "board": "XX./OO./...", "values": {"C1": 1.0, "C2": 0.5}},
    # Without a sandbox every program is refused (tests/unit/test_programs.py).
    "programs": {"function": "f", "tests": [[[1], {}, 2]]} if sandbox.why_unavailable() is None else {},
}
ACTIVE = {"script", "iframe", "object", "embed", "link", "img", "base", "form", "foreignobject"}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.mark.slow
@pytest.mark.parametrize("run", run_names())
def test_rewards_and_their_record(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a trainer calls: each completion gets a reward, and comes back from the recorder as it was."""
    monkeypatch.setenv(rewards.VARIABLE, rewards.environment(load_run(run, "demo").rewards)[rewards.VARIABLE])
    monkeypatch.setenv(rollout_log.VARIABLE, str(rollout_log.start_attempt(tmp_path, 0).folder))
    # No tokenizer is installed here; tests/contract/test_model_tokens.py gives these texts to real ones.
    monkeypatch.setattr(model_tokens, "encode", lambda text: list(text.encode(errors="replace")))
    monkeypatch.setattr(model_tokens, "response_limit", lambda: 96)
    for cached in (reward_hook.load_rewards, rollout_log.process_recorder):
        cached.cache_clear()
    task = tables_task(run)
    question = {"problem_id": "p", "task": task, "answer": "6", "meta": json.dumps(META.get(task, {})), "prefill": ""}
    judged = reward_hook.judge([question] * len(ALL), ALL, ALL, step=1)
    assert all(one.value is None or math.isfinite(one.value) for one in judged)
    assert {one.verdict for one in judged} <= {None, *tables.VERDICTS}
    ((step, rows),) = rollout_log.read(tmp_path, rollout_log.Batch(1, len(ALL))).items()
    assert step == 1 and [(row["prompt"], row["completion"]) for row in rows] == [(text, text) for text in ALL]
    (file,) = tmp_path.rglob("*.jsonl")
    assert file.read_bytes().count(b"\n") == len(ALL)


def tables_task(run: str) -> str:
    """The task of a run's first stage."""
    from tasks import dataset_specs

    return str(dataset_specs.find(load_run(run, "demo").stages[0].dataset).spec["task"])


def test_the_journal_of_samples(tmp_path: Path) -> None:
    writer = sample_journal.Writer(tmp_path)
    writer.write({"problem_id": text, "repeat": n, "completion": text} for n, text in enumerate(ALL))
    writer.close()
    samples = sample_journal.read(tmp_path)
    assert [(key, row["completion"]) for key, row in samples.items()] == [((t, n), t) for n, t in enumerate(ALL)]
    assert sample_journal.SampleCounter([tmp_path]).count() == len(ALL)


@pytest.mark.parametrize("task", registry.task_names())
def test_verifiers(task: str) -> None:
    problem = Problem("p", task, "q", "6", META.get(task, {}))
    assert set(rewards.verdicts(ALL, [problem] * len(ALL))) <= set(tables.VERDICTS)


def command(folder: Path, *arguments: object) -> str:
    """What a command of ours prints; it succeeds, and no control code reaches the terminal."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = run_module(str(arguments[0]), *arguments[1:], cwd=folder, environment=environment)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert not CONTROL.search(said), said[-3000:]
    return said


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each text as the question, the completion and part of the id of a problem: imported, graded, scored."""
    folder = tmp_path_factory.mktemp("hostile")
    ids = [f"{number} {text[:60]}" for number, text in enumerate(WHOLE)]
    problems = [
        {"problem_id": name, "task": "arithmetic", "messages": [{"role": "user", "content": text}], "answer": "4",
         "meta": "{}"} for name, text in zip(ids, WHOLE, strict=True)
    ]  # fmt: skip
    tables.write(pa.Table.from_pylist(problems, tables.PROBLEM), tables.PROBLEM, folder / f"data/{BENCHMARK}.parquet")
    run = folder / "runs/imported/mine"
    for step in STEPS:
        turned = ALL[step:] + ALL[:step]
        rows = [
            {"id": name, "out": text, "gold": "4", "asked": question}
            for name, text, question in zip(ids, turned, ALL, strict=True)
        ]
        (folder / f"{step}.jsonl").write_text("".join(map(json_lines.dump, rows)), encoding="ascii")
        command(
            folder, "eval.importers", "--format", "jsonl", "--input", f"{step}.jsonl", "--benchmark", BENCHMARK,
            "--run", "imported/mine", "--step", step, "--problems", f"data/{BENCHMARK}.parquet", "--match", "id",
            "--map", "completion=out,gold=gold,problem_id=id,prompt=asked",
            "--output", run / f"samples/step-{step}/{BENCHMARK}.parquet",
        )  # fmt: skip
    command(folder, "eval.grade", "--samples", run / "samples", "--data", "data", "--output", run / "graded",
            "--extraction", "last-number")  # fmt: skip
    command(folder, "eval.score", "--graded", run / "graded", "--problems", "data", "--output", run / "scores.parquet")
    return folder


@pytest.mark.slow
def test_imported_graded_and_scored(line: Path) -> None:
    run = line / "runs/imported/mine"
    for step in STEPS:
        expected = [(question, text) for question, text in zip(WHOLE, WHOLE[step:] + WHOLE[:step], strict=True)]
        for folder, schema in ((run / "samples", tables.SAMPLE), (run / "graded", tables.GRADED)):
            rows = tables.read(paths.table(folder, step, BENCHMARK), schema).to_pylist()
            assert [(row["prompt"], row["completion"]) for row in rows] == expected
        assert {row["verdict"] for row in rows} <= set(tables.VERDICTS)
        source = paths.table(run / "samples", step, BENCHMARK).with_suffix(".parquet.source.jsonl")
        assert source.read_bytes().count(b"\n") == len(list(json_lines.read(source))) == len(ALL)
    scores = tables.read(run / "scores.parquet", tables.SCORE).to_pylist()
    assert [sum(score[f"n_{verdict}"] for verdict in tables.VERDICTS) for score in scores] == [len(ALL)] * len(STEPS)


class Markup(HTMLParser):
    """The elements of a page, and what its attributes could run or load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.loads: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.loads += [name for name, _ in attrs if name.startswith("on")]
        self.loads += [v for name, v in attrs if name in ("src", "href") and v and re.match(r"\s*(//|\w+script:)", v)]


@cache
def written(line: Path) -> list[Path]:
    """Everything that the report and the gate write."""
    run = line / "runs/imported/mine"
    command(line, "analysis.report", "--results", line, "--run", "imported/mine", "--output", line / "report")
    sides = ("--checkpoint", run / "graded/step-6", "--baseline", run / "graded/step-0")
    command(line, "analysis.compare_checkpoints", "compare", *sides, "--output", line / "comparison")
    return [file for name in ("report", "comparison") for file in (line / name).rglob("*") if file.is_file()]


@pytest.mark.slow
def test_pages_run_and_load_nothing(line: Path) -> None:
    pages = [file for file in written(line) if file.suffix == ".html"]
    assert len(pages) > 5
    for file in pages:
        page = Markup(file.read_text(encoding="utf-8"))
        browser = {"form", "onsubmit"} if file.parent.name == "samples" else set()
        whole = (
            file.name == "index.html" or file.parent == line / "report"
        )  # a script of ours, whose hash its policy has
        own = {"script"} | browser if whole else browser
        assert page.elements["script"] == len(own & {"script"}), file
        assert not {*page.elements, *page.loads} & ACTIVE - own and not set(page.loads) - own, file
    (browser,) = (file for file in pages if file.parent.name == "samples")
    assert "alert(1)" not in browser.read_text(encoding="utf-8"), "completions are data in files of their own"


@pytest.mark.slow
def test_no_control_code_and_no_formula_is_written(line: Path) -> None:
    for file in written(line):
        if file.suffix in (".html", ".md", ".tex", ".csv", ".txt", ".svg", ".json", ".js"):
            match = CONTROL.search(file.read_text(encoding="utf-8"))
            assert not match, (file, match)
        if file.suffix == ".csv":
            cells = pd.read_csv(file, dtype=str, keep_default_na=False).to_numpy().ravel()
            assert not [cell for cell in cells if re.match(r"[=@\t\r]|[+-](?!\d|inf)", cell)], file
        if file.suffix == ".md":
            text = re.sub(r"(?<!\\)(`+).+?\1", "", file.read_text(encoding="utf-8"))  # code is shown as it is
            assert not re.search(r"<(?!br\b)[a-z/!?]", text, re.IGNORECASE), file


def test_exported_tables_keep_their_shape(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": WHOLE, "value": range(len(WHOLE))})
    table_texts.write(table_texts.Table("t", frame, frame), tmp_path)
    read = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)
    assert read["value"].tolist() == [str(number) for number in frame["value"]]
    rows = [line for line in (tmp_path / "t.md").read_text(encoding="utf-8").split("\n") if line]
    assert len(rows) == len(WHOLE) + 2 and all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)
    tex = (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert not re.search(r"\\(input|write|def|newcommand|immediate|openout)\b", tex)
    assert Markup((tmp_path / "t.html").read_text(encoding="utf-8")).elements["tr"] == len(WHOLE) + 1
    for file in tmp_path.iterdir():
        assert not CONTROL.search(file.read_text(encoding="utf-8")), file


def test_tables_give_every_text_back(tmp_path: Path) -> None:
    rows = [dict.fromkeys(tables.SAMPLE.names) | {"problem_id": text, "completion": text} for text in WHOLE]
    tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, tmp_path / "t.parquet")
    table = tables.read(tmp_path / "t.parquet", tables.SAMPLE)
    assert table["completion"].to_pylist() == table["problem_id"].to_pylist() == WHOLE

"""Training sets and benchmarks from files: what the mirror gives, and what happens when it is not as it should be."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from contracts import tables
from tasks import dataset_specs
from tasks.dataset_specs import Entry, find
from tasks.load_problems import load, report
from tasks.problems import Problem, content_digest, rows_digest
from tests import needs
from tests.forked_command import run_module
from tests.unit.small_hub import COMMIT, serve
from tests.user_errors import refused

ROOT = Path(__file__).resolve().parents[2]
MIRROR = ROOT.parent / "shared" / "data"
needs_mirror = needs.published("benchmarks", "train")
PROBLEMS = {  # problems with a gold answer
    "gsm8k": 1319, "math500": 500, "aime24": 30, "amc23": 40, "minerva_math": 272, "olympiadbench": 675, "aime25": 30,
    "countdown": 2001, "knights_knaves": 200, "gsm8k_train": 7473, "math_level3to5": 8521, "math_level3to5_zoo": 8521,
    "math_train_7474": 7470, "countdown_train": 8001, "knights_knaves_3ppl_train": 900,
    "knights_knaves_5ppl_train": 900,
}  # fmt: skip


@needs_mirror
@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_set_of_the_mirror_loads_and_has_answers(name: str) -> None:
    problems, facts = load(find(name), MIRROR)
    assert len(problems) == facts["problems"] == PROBLEMS[name]
    assert len({problem.problem_id for problem in problems}) == len(problems)
    assert all(problem.question.strip() and problem.answer for problem in problems)
    assert facts["same_content_as_registered"] is True


def gold(name: str) -> dict[str, Problem]:
    return {problem.problem_id: problem for problem in load(find(name), MIRROR)[0]}


@needs_mirror
def test_golds_of_competitions_are_integers() -> None:
    assert all(problem.answer.isdigit() for problem in [*gold("aime24").values(), *gold("aime25").values()])
    leading = [problem for problem in gold("aime24").values() if problem.meta.get("source_answer", "").startswith("0")]
    assert Counter(len(problem.answer) for problem in leading) == {2: 7}
    assert all(re.fullmatch(r"-?\d+", problem.answer) for problem in gold("amc23").values())


@needs_mirror
def test_golds_of_olympiadbench_keep_units_tolerances_and_several_answers() -> None:
    problems = gold("olympiadbench")
    assert (problems["2592"].meta["unit"], problems["2592"].meta["tolerance"]) == ("%", 0.1)
    assert problems["2426"].answer.startswith(r"\frac{") and problems["2426"].meta["unit"] == "km/h"
    assert Counter(problem.meta["unit"] is None for problem in problems.values())[False] == 8
    assert sum(problem.meta["is_multiple_answer"] for problem in problems.values()) == 94
    assert not any("$" in problem.answer for problem in problems.values())
    with_two_answers = [problem for problem in problems.values() if problem.meta["source_answer"][0].count("$") == 4]
    assert with_two_answers and all("," in problem.answer or "where" in problem.answer for problem in with_two_answers)


@needs_mirror
def test_golds_of_minerva_are_the_boxes() -> None:
    problems = gold("minerva_math")
    for line in filter(None, (MIRROR / "benchmarks" / "minerva_math.jsonl").read_text(encoding="utf-8").split("\n")):
        row = json.loads(line)
        answer = problems[str(row["idx"])].answer
        assert answer and "boxed{" + "".join(answer.split()) + "}" in "".join(row["solution"].split())


@needs_mirror
def test_repeated_rows_and_rows_without_answer_are_told() -> None:
    entry = find("math_level3to5")
    problems, facts = load(entry, MIRROR)
    assert facts["rows"] == 8523
    assert sum(len(group) - 1 for group in facts["repeated_questions"]) == 2
    assert len(facts["without_gold_answer"]) == 2
    assert facts["distinct_questions"] == 8521 and facts["levels"] == {"3": 2514, "4": 2648, "5": 3361}
    assert "2 rows repeat" in report(facts, MIRROR) and "2 of 8,523 rows have no gold answer" in report(facts, MIRROR)
    assert Counter(problem.meta["level"] for problem in problems)[3] == 2514


@needs_mirror
@pytest.mark.slow
def test_two_files_of_the_same_set_have_the_same_content_hash() -> None:
    one, other = (load(find(name), MIRROR)[1] for name in ("math_level3to5", "math_level3to5_zoo"))
    assert one["source"] != other["source"] and one["content_sha256"] == other["content_sha256"]


@needs_mirror
def test_countdown_golds_can_be_judged() -> None:
    for problem in gold("countdown").values():
        assert problem.task == "countdown" and 3 <= len(problem.meta["nums"]) <= 4
        assert "<think>" not in problem.question and "User:" not in problem.question
        assert all(re.search(rf"\b{number}\b", problem.question) for number in (problem.answer, *problem.meta["nums"]))


@needs_mirror
def test_knights_and_knaves_golds_name_everybody() -> None:
    for problem in gold("knights_knaves").values():
        names, knights = problem.meta["names"], problem.meta["knights"]
        assert len(names) == len(knights) == problem.meta["people"] in (3, 5)
        lines = re.findall(r"\((\d)\) (\w+) is a (knight|knave)", problem.answer)
        assert [(int(number), name) for number, name, _ in lines] == list(enumerate(names, start=1))
        assert [kind == "knight" for *_, kind in lines] == knights
        assert all(name in problem.question for name in names)


@needs_mirror
@pytest.mark.parametrize("name", ["math_lighteval", "numinamath_tir"])
def test_what_the_mirror_lacks_is_said_with_what_to_do(name: str) -> None:
    with refused("missing-from-mirror", dataset=name):
        load(find(name), MIRROR)


@needs_mirror
@pytest.mark.slow
def test_a_truncated_file_of_the_mirror(tmp_path: Path) -> None:
    content = (MIRROR / "benchmarks" / "gsm8k.jsonl").read_bytes()
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "gsm8k.jsonl").write_bytes(content[:-1000])
    result = run_module("tasks.load_problems", "gsm8k", "--mirror", tmp_path, "--output", tmp_path / "o.parquet")
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1
    assert "gsm8k.jsonl should have sha256 9f098df7" in result.stderr and "eval/benchmarks/gsm8k.yaml" in result.stderr
    assert (
        hashlib.sha256(content[:-1000]).hexdigest() in result.stderr and "1,000 of 761,421 bytes short" in result.stderr
    )
    assert not (tmp_path / "o.parquet").exists()


def entry(folder: Path, content_rows: list[dict[str, Any]], **changes: Any) -> Entry:
    """A small set in a file of its own, and its entry; `changes` replace keys of the entry."""
    content = "".join(json.dumps(row) + "\n" for row in content_rows).encode()
    (folder / "set.jsonl").write_bytes(content)
    file = {"path": "set.jsonl", "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    spec = {"task": "math", "rows": len(content_rows), "columns": {"question": "q", "answer": "a"}, "files": [file]}
    return Entry("small", {**spec, **changes}, "here.yaml")


ROWS = [
    {"q": "1 +  1?", "a": "2", "id": "x"},
    {"q": "2 + 2?", "a": "4", "id": "y"},
    {"q": "1 + 1?", "a": "2", "id": "x"},
]


def test_wrong_row_count_names_both_numbers_and_the_file(tmp_path: Path) -> None:
    with refused("other-number-of-rows"):
        load(entry(tmp_path, ROWS, rows=7473), tmp_path)


def test_wrong_number_of_problems_names_both_numbers(tmp_path: Path) -> None:
    assert len(load(entry(tmp_path, ROWS, problems=3), tmp_path)[0]) == 3
    with refused("other-number-of-rows", rows=3):
        load(entry(tmp_path, ROWS, problems=2), tmp_path)


def test_wrong_content_names_both_hashes_and_the_file(tmp_path: Path) -> None:
    content_hash = load(entry(tmp_path, ROWS), tmp_path)[1]["content_sha256"]
    with refused("other-content", sha256=content_hash):
        load(entry(tmp_path, ROWS, content_sha256="0" * 64), tmp_path)
    with refused("other-content"):
        load(entry(tmp_path, ROWS, raw_sha256={"columns": ["q"], "sha256": "0" * 64}), tmp_path)


def test_content_does_not_depend_on_order_or_white_space_but_on_every_answer(tmp_path: Path) -> None:
    def digest(rows: list[dict[str, Any]]) -> str:
        return load(entry(tmp_path, rows), tmp_path)[1]["content_sha256"]

    assert digest(ROWS) == digest(ROWS[::-1]) == digest([{**row, "q": row["q"].replace("+  1", "+ 1")} for row in ROWS])
    assert digest(ROWS) != digest(ROWS[:2])
    assert digest(ROWS) != digest([*ROWS[:2], {**ROWS[2], "a": "3"}])


def test_rows_digest_by_hand() -> None:
    inner = hashlib.sha256(b'["a", "b"]').hexdigest()
    assert rows_digest([("a", "b")]) == hashlib.sha256(inner.encode()).hexdigest()
    assert content_digest([Problem("1", "math", " a ", "b", {})]) == rows_digest([("a", "b")])


def test_rows_without_answer_are_left_out_and_named(tmp_path: Path) -> None:
    problems, facts = load(entry(tmp_path, [*ROWS, {"q": "3?", "a": None, "id": "z"}]), tmp_path)
    assert len(problems) == 3 and facts["rows"] == 4
    assert [problem_id.split("-")[0] for problem_id in facts["without_gold_answer"]] == ["3"]


@pytest.mark.parametrize("name", ["set.parquet", "set.jsonl", "set.json"])
def test_a_broken_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'PAR1 {"q": ')
    broken = entry(tmp_path, ROWS, files=[{"path": name}]) if name != "set.jsonl" else None
    if broken is None:
        broken = entry(tmp_path, ROWS, files=[{"path": "set.jsonl"}])
        (tmp_path / name).write_bytes(b'{"q": "1", "a"')
    with refused("unreadable-rows"):
        load(broken, tmp_path)


def test_a_truncated_parquet_file_is_named_even_without_a_known_hash(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "set.parquet")
    content = (tmp_path / "set.parquet").read_bytes()
    assert len(load(entry(tmp_path, ROWS, files=[{"path": "set.parquet"}]), tmp_path)[0]) == 3
    (tmp_path / "set.parquet").write_bytes(content[: len(content) // 2])
    with refused("unreadable-rows"):
        load(entry(tmp_path, ROWS, files=[{"path": "set.parquet"}]), tmp_path)


def test_an_arrow_stream_is_read_whole_or_refused(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    with pa.OSFile(str(tmp_path / "set.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    content = (tmp_path / "set.arrow").read_bytes()
    arrow_set = entry(tmp_path, ROWS, files=[{"path": "set.arrow"}])
    assert len(load(arrow_set, tmp_path)[0]) == 3
    (tmp_path / "set.arrow").write_bytes(content[: len(content) - len(content) // 4])
    with refused("unreadable-rows"):
        load(arrow_set, tmp_path)


def test_a_missing_column_names_the_row_and_the_columns(tmp_path: Path) -> None:
    with refused("row-not-as-described"):
        load(entry(tmp_path, ROWS, columns={"question": "q", "answer": "answer"}), tmp_path)


def test_ids_that_repeat_are_refused(tmp_path: Path) -> None:
    with refused("repeated-problem-id"):
        load(entry(tmp_path, ROWS, columns={"question": "q", "answer": "a", "id": "id"}), tmp_path)


def test_an_unknown_converter_is_named(tmp_path: Path) -> None:
    with refused("missing-module"):
        load(entry(tmp_path, ROWS, convert="magic"), tmp_path)


def test_a_mirror_that_is_no_folder(tmp_path: Path) -> None:
    with refused("missing-folder"):
        load(entry(tmp_path, ROWS), tmp_path / "nowhere")


def test_an_address_that_does_not_answer(tmp_path: Path) -> None:
    with refused("download-failed"):
        load(entry(tmp_path, ROWS, files=[{"path": "set.jsonl", "url": "http://127.0.0.1:9/set.jsonl"}]), None)


@pytest.mark.slow
def test_a_download_is_checked_like_a_file_of_the_mirror(tmp_path: Path) -> None:
    mine = entry(tmp_path, ROWS)
    content = (tmp_path / "set.jsonl").read_bytes()
    with serve("a/b", {"set.jsonl": content}) as (address, _):
        file = {**mine.spec["files"][0], "url": f"{address}/datasets/a/b/resolve/{COMMIT}/set.jsonl"}
        problems, facts = load(entry(tmp_path, ROWS, files=[file]), None)
        assert len(problems) == 3 and facts["source"]["kind"] == "address"
        with refused("other-content"):
            load(entry(tmp_path, ROWS, files=[{**file, "sha256": "0" * 64}]), None)
        with refused("download-failed"):
            load(entry(tmp_path, ROWS, files=[{**file, "url": f"{address}/nothing.jsonl"}]), None)


SOURCE = {"task": "math", "rows": 3, "files": [{"path": "set.jsonl"}], "columns": {"question": "q", "answer": "a"}}


def benchmark(folder: Path, source: dict[str, Any], name: str = "mine") -> Path:
    text = yaml.safe_dump({"task": name, "metadata": {"source": source}})
    (folder / f"{name}.yaml").write_text(text + "process_results: !function some.module.judge\n")
    return folder


def test_a_user_adds_a_benchmark_with_one_file(tmp_path: Path) -> None:
    entry(tmp_path, ROWS)
    mine = find("mine", benchmarks=benchmark(tmp_path, SOURCE))
    assert [problem.answer for problem in load(mine, tmp_path)[0]] == ["2", "4", "2"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"row": 3}, "schema-broken"),
        ({"hub": {"pth": "a/b"}}, "schema-broken"),
        ({"columns": {"form": "boxd", "question": "q"}}, "unknown-name"),
        ({"files": []}, "missing-source"),
        ({"task": "maths"}, "unknown-name"),
        ({"rows": None}, "schema-broken"),
    ],
)
def test_a_badly_written_entry_is_refused(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    source = {k: v for k, v in {**copy.deepcopy(SOURCE), **change}.items() if v is not None}
    with refused(code):
        find("mine", benchmarks=benchmark(tmp_path, source))


def test_names_that_are_unknown_or_double(tmp_path: Path) -> None:
    with refused("unknown-name"):
        find("gsm8")
    with refused("repeated-name"):
        find("gsm8k_train", benchmarks=benchmark(tmp_path, SOURCE, "gsm8k_train"))


def test_a_broken_yaml_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("task: [")
    with refused("invalid-yaml"):
        find("mine", benchmarks=tmp_path)


def test_every_entry_is_well_formed_and_every_commit_full() -> None:
    names = [
        *dataset_specs.training_sets(),
        *(path.stem for path in dataset_specs.BENCHMARKS.glob("*.yaml")),
    ]
    commits = {name: find(name).spec["hub"]["revision"] for name in names if "hub" in find(name).spec}
    assert len(commits) >= 15 and all(len(commit) == 40 and int(commit, 16) for commit in commits.values())


@needs_mirror
@pytest.mark.slow
def test_the_file_written_keeps_the_contract(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "aime25.parquet"
    result = run_module("tasks.load_problems", "aime25", "--mirror", MIRROR, "--output", output)
    assert result.returncode == 0, result.stderr
    table = tables.read(output, tables.PROBLEM)
    assert table.num_rows == 30 and table["messages"][0].as_py()[0]["role"] == "user"
    record = json.loads(output.with_name("aime25.parquet.provenance.json").read_text())
    assert record["source"]["files"][0]["sha256"].startswith("4613b7d3") and record["rows"] == 30

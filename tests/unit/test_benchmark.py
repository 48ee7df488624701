import shutil

import pyarrow as pa
import pytest

from contracts import tables
from eval import benchmark, protocols, vllm_supervisor
from eval.completion_text import CompletionText
from eval.lm_eval import only_own_tasks
from tasks import prompts
from tests.user_errors import refused


def table(*questions, ids=None):
    rows = [
        {
            "problem_id": ids[number] if ids else str(number),
            "task": "math",
            "messages": [{"role": "user", "content": question}],
            "answer": "4",
            "meta": "{}",
        }
        for number, question in enumerate(questions)
    ]
    return pa.Table.from_pylist(rows, tables.PROBLEM)


def test_all_benchmarks_are_there():
    real = {"gsm8k", "math500", "aime24", "amc23", "minerva_math", "olympiadbench", "aime25"}
    generated = {"countdown", "knights_knaves", "arithmetic_expressions", "arithmetic_words"}
    assert real | generated <= set(benchmark.names())


def test_the_size_is_the_one_that_the_benchmarks_file_states():
    assert (benchmark.size("gsm8k"), benchmark.size("aime24"), benchmark.size("knights_knaves_2")) == (1319, 30, 200)


def test_all_files_are_in_order():
    benchmark.check_names(benchmark.names())


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("task: crosszero_mine", "benchmark-without-base", {"key": "include"}),
        ("include: _base_yaml\ntask: mine", "benchmark-without-base", {"key": "task"}),
        ("include: [", "invalid-yaml", {}),
        ("just text", "invalid-yaml", {}),
    ],
)
def test_a_file_that_lm_eval_would_pass_over(tmp_path, monkeypatch, text, code, facts):
    (tmp_path / "mine.yaml").write_text(text)
    monkeypatch.setattr(benchmark, "BENCHMARKS", tmp_path)
    with refused(code, **facts):
        benchmark.check_names(["mine"])


def test_an_unknown_benchmark_is_answered_with_the_known_ones():
    with refused("unknown-name", kind="benchmark", name="math501"):
        benchmark.check_names(["math501"])


def test_questions_are_put_into_the_prompt_as_they_are():
    question = r"Let $\{x\}$ be {question} and {{system}} {% if %} \boxed{}"
    (document,) = benchmark.documents(table(question), protocols.load("open-r1"))
    assert document["question"] == question
    assert prompts.load("lighteval-boxed").render(document["question"], None).endswith("\n\n" + question)


def test_without_a_chat_template_system_and_user_are_two_paragraphs():
    boxed = prompts.load("boxed")
    assert boxed.render("2+2?", None) == f"{boxed.system}\n\n2+2?"


def test_raw_prompts_need_no_chat_template():
    assert protocols.load("greedy-boxed").needs_chat_template()
    assert not protocols.load("greedy-boxed", {"prompt": "tinyzero-base"}).needs_chat_template()


def test_a_problem_has_one_user_message():
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    with refused("not-one-message"):
        benchmark.question({"problem_id": "1", "messages": messages})


def test_problems_are_checked(tmp_path):
    with refused("missing-file"):
        benchmark.problems(tmp_path, "gsm8k")
    tables.write(table("a", "b", ids=["x", "x"]), tables.PROBLEM, tmp_path / "gsm8k.parquet")
    with refused("not-one-row-per-problem"):
        benchmark.problems(tmp_path, "gsm8k")
    tables.write(table(), tables.PROBLEM, tmp_path / "gsm8k.parquet")
    with refused("not-one-row-per-problem"):
        benchmark.problems(tmp_path, "gsm8k")


def test_the_problems_hash_follows_the_problems_alone(tmp_path, monkeypatch):
    path, files = tmp_path / "gsm8k.parquet", tmp_path / "benchmarks"
    tables.write(table("a", "b"), tables.PROBLEM, path)
    first = benchmark.problems_hash(tmp_path, "gsm8k")
    shutil.copytree(benchmark.BENCHMARKS, files)
    monkeypatch.setattr(benchmark, "BENCHMARKS", files)
    for file in ("gsm8k.yaml", "_base_yaml"):
        (files / file).write_text(f"# a comment\n{(files / file).read_text()}")
    assert benchmark.problems_hash(tmp_path, "gsm8k") == first
    tables.write(table("a", "b").take([1, 0]), tables.PROBLEM, path)
    assert benchmark.problems_hash(tmp_path, "gsm8k") == first
    rows = table("a", "b").to_pylist()
    user_messages = [{"role": "user", "content": "c"}]
    for change in (
        {"problem_id": "9"},
        {"task": "arithmetic"},
        {"messages": user_messages},
        {"answer": "5"},
        {"meta": "[]"},
    ):
        tables.write(pa.Table.from_pylist([rows[0], rows[1] | change], tables.PROBLEM), tables.PROBLEM, path)
        assert benchmark.problems_hash(tmp_path, "gsm8k") != first, change


def test_completions_are_strings_that_know_how_they_ended():
    completion = CompletionText("abc", "length")
    assert completion == "abc"
    assert completion.finish_reason == "length"


def test_gpus_are_shared_out(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    assert vllm_supervisor.devices(2, 2) == ["4,5", "6,7"]
    assert vllm_supervisor.devices(1, 1) == ["4"]
    with refused("too-few-gpus", needed=8, visible=4):
        vllm_supervisor.devices(4, 2)


@pytest.mark.parametrize(
    ("arguments", "own"),
    [
        ("run --tasks crosszero_gsm8k --limit 5", True),
        ("run --tasks crosszero_gsm8k,crosszero_aime24", True),
        ("run --model hf -t crosszero_gsm8k crosszero_aime24", True),
        ("run --tasks crosszero_gsm8k,hellaswag", False),
        ("run --tasks hellaswag --output_path crosszero_gsm8k", False),
        ("run --tasks", False),
        ("ls tasks", False),
    ],
)
def test_lm_evals_own_tasks_are_read_where_one_is_wanted(arguments, own):
    assert only_own_tasks(arguments.split()) is own

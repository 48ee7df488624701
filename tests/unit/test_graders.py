"""Graders side by side: the Qwen harness's rules, classes of disagreements, the comparison, and human labels."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import tables
from eval.grader_agreement import class_table, compare, markdown, read_rows, rule_of_samples
from eval.importers.import_samples import import_samples
from grading import Grade
from grading.disagreements import CLASSES, Reference, classify, read_reference
from studies.grader_validation import human_labels
from tasks.math_answers import qwen_rules
from tests import needs
from tests.forked_command import run_module
from tests.unit.generations import lines
from tests.user_errors import refused

ROOT = Path(__file__).parents[2]
MIRROR = ROOT / "../shared/data"


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("18", "18.001", "correct"),  # relative tolerance 1e-4
        ("18", "18.01", "wrong"),
        ("0.5", "50", "correct"),  # a percentage
        ("0.5", "0.005", "correct"),
        ("0.5", "5", "wrong"),
        ("10", "10\\%", "correct"),
        ("x=5", "5", "correct"),
        ("x \\in [-2,7]", "[-2, 7]", "correct"),
        ("\\text{Evelyn}", "Evelyn", "correct"),
        ("\\text{ellipse}", "\\text{circle}", "wrong"),
        ("5", "5\\text{ cm}", "correct"),
        ("5", "5 cm", "correct"),
        ("15\\mbox{ cm}^2", "15", "wrong"),  # it leaves 15^2, as the harness does
        ("1,2", "2,1", "wrong"),  # order counts
        ("(1, 0.5)", "(1,\\frac12)", "correct"),
        ("(1,2)", "(1,2,3)", "wrong"),
        ("[0,1)", "(0,1)", "correct"),  # brackets do not
        ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{bmatrix}1\\\\2.0\\end{bmatrix}", "correct"),
        ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1\\\\3\\end{pmatrix}", "wrong"),
        ("x+y=3", "3-x=y", "correct"),
        ("x+y=3", "x+y=4", "wrong"),
        ("11\\sqrt2", "11\\sqrt{2}", "correct"),
        ("\\frac9{19}", "\\frac{9}{19}", "correct"),
        ("x^2-1", "(x-1)(x+1)", "correct"),
        ("x^2-1", "\\frac{", "wrong"),
    ],
)
def test_rules_of_the_qwen_harness(gold, answer, expected):
    assert qwen_rules.judge(gold, answer) == expected


def grades(gold_verdict, **answers):
    chosen = {"math-verify": "1", "qwen-rules": "1", "strict": "1"} | {
        k.replace("_", "-"): v for k, v in answers.items()
    }
    return {name: Grade(answer, gold_verdict, name) for name, answer in chosen.items()}


@pytest.mark.parametrize(
    ("gold", "answer", "kind"),
    [
        ("10", "10\\%", "percent or factor 100"),
        ("20", "2000", "percent or factor 100"),
        ("3e8", "3.0 \\times 10^8", "scientific notation"),
        ("\\frac{600}{7}", "85.71", "rounding"),
        ("5", "5 \\text{ cm}", "text or unit"),
        ("y=2x", "2x", "equation"),
        ("1,2", "2,1", "several answers"),
        ("\\pm 1", "1", "several answers"),
        ("\\begin{pmatrix}1\\end{pmatrix}", "1", "matrix"),
        ("\\frac{37}{4} m", "\\frac{37m}{4}", "writing"),
    ],
)
def test_classes(gold, answer, kind):
    everyone = dict.fromkeys(("math_verify", "qwen_rules", "strict"), answer)
    assert classify(gold, grades("wrong", **everyone)) == kind
    assert kind in CLASSES


def test_classes_of_what_could_not_be_judged():
    assert classify("1", grades("ungradable")) == "time-out"
    assert classify("\\frac{1}{", grades("ungradable")) == "bad gold"
    assert classify("1", grades("wrong", qwen_rules="7")) == "last number"


def rows(*cases):
    return [
        {"problem_id": str(i), "repeat": 0, "task": "math", "gold": gold, "completion": completion}
        for i, (gold, completion) in enumerate(cases)
    ]


@pytest.mark.slow
def test_compare_by_hand():
    samples = rows(
        ("1", "\\boxed{1}"),
        ("20", "\\boxed{2000}"),
        ("1,2", "\\boxed{2, 1}"),
        ("5", "no box but 5"),
        ("5", "\\boxed{6}"),
    )
    recorded = {("0", 0): False, ("4", 0): False}
    reference = Reference("by hand", {"b": 40.0}, {("b", "2"): ("several answers", "correct")})
    one = compare("b", samples, recorded=recorded, reference=reference)
    assert one.scores == {"math-verify": 40.0, "qwen-rules": 60.0, "strict": 20.0}
    assert [(d.problem_id, d.kind, d.truth) for d in one.disagreements] == [
        ("0", "writing", None),
        ("1", "percent or factor 100", None),
        ("2", "several answers", "correct"),
        ("3", "last number", None),
    ]
    table = class_table(one.disagreements)
    assert "| several answers | " + CLASSES["several answers"] + " | 1 | 1 | 1 | 0 | 0 |" in table
    assert table.endswith("| all |  | 4 | 1 | 1 | 0 | 0 |\n")
    page = markdown([one], reference)
    assert "| b | 5 | 40.0 | 60.0 | 20.0 | 20.0–60.0 | 40.0 | 0.0 |" in page
    assert page.count("not reviewed") == 3
    last_number = compare("b", samples, extraction="last-number")
    assert last_number.scores["math-verify"] == 60.0


def test_a_text_cannot_break_the_report():
    page = markdown([compare("b", rows(("1,2", "\\boxed{2, 1 | ` \n 3}"), ("1,2", "\\boxed{2,1}")))])
    assert all(line.count("|") == 10 for line in page.splitlines() if line.startswith("| b | ") and "not rev" in line)


def test_the_reference_file(tmp_path):
    (reference,) = [read_reference(path) for path in (ROOT / "results/reference/graders").glob("*.yaml")]
    assert reference.published["gsm8k"] == 84.8
    assert reference.reviewed["minerva_math", "10"] == ("percent or factor 100", "wrong")
    file = tmp_path / "r.yaml"
    for text, code in (
        ("a: 1", "invalid-review"),
        ("{source: s, published: {}, reviewed: {b: [[1, guess, right]]}}", "invalid-review"),
        ("[", "invalid-yaml"),
    ):
        file.write_text(text)
        with refused(code):
            read_reference(file)
    with refused("missing-file"):
        read_reference(tmp_path / "absent.yaml")


def test_the_benchmark_gives_gold_unit_and_tolerance(tmp_path):
    sample = {
        "run": "r",
        "step": 0,
        "benchmark": "gsm8k",
        "problem_id": "p",
        "repeat": 0,
        "completion": "\\boxed{4.25}",
    }
    path = tmp_path / "s.parquet"
    tables.write(pa.Table.from_pylist([sample | {"gold": "9"}], tables.SAMPLE), tables.SAMPLE, path)
    problem = {"problem_id": "p", "task": "math", "messages": [], "answer": "4.2", "meta": '{"tolerance": 0.1}'}
    tables.write(pa.Table.from_pylist([problem], tables.PROBLEM), tables.PROBLEM, tmp_path / "data/gsm8k.parquet")
    assert compare(*read_rows(path, None)).scores["math-verify"] == 0
    assert compare(*read_rows(path, tmp_path / "data")).scores["math-verify"] == 100
    other = pa.Table.from_pylist([sample | {"gold": "9", "problem_id": "q"}], tables.SAMPLE)
    tables.write(other, tables.SAMPLE, path)
    with refused("other-problems", count=1):
        read_rows(path, tmp_path / "data")


def test_agreement_with_labels(tmp_path):
    path = tmp_path / "l.jsonl"
    row = {
        "question": "?",
        "ground_truth": "so\nA: 1,000",
        "small": {"is_correct": True, "solution": "steps\nA: 1000"},
        "large": {"is_correct": True, "solution": "steps\nA: 999"},
    }
    path.write_text(json.dumps(row) + "\n")
    labelled = human_labels.agreement(path)
    assert [(model, label, result.verdict) for model, _, label, _, result in labelled] == [
        ("small", True, "correct"),
        ("large", True, "wrong"),
    ]
    page = human_labels.markdown(labelled)
    assert "| small | 1 | 1 | 1 | 100.00 % |" in page and "| large | 1 | 1 | 0 | 0.00 % |" in page
    assert "labelled right, ours wrong: 1" in page
    path.write_text('{"question": "?"}\n')
    with refused("no-labels"):
        human_labels.agreement(path)


@pytest.mark.long
@needs.published("generations/qwen2.5-math-1.5b-instruct", "benchmarks")
def test_real_generations_and_their_reviewed_disagreements(tmp_path):
    def run(*arguments):
        done = run_module(*arguments)
        done.check_returncode()
        return done

    source = MIRROR / "generations/qwen2.5-math-1.5b-instruct"
    names = ("gsm8k", "math500", "minerva_math", "olympiadbench", "aime24", "amc23")
    for name in names:
        problems = tmp_path / "data" / f"{name}.parquet"
        run("tasks.load_problems", name, "--output", problems, "--mirror", MIRROR)
        run("eval.importers", "--format", "qwen-math", "--input", source / f"{name}.jsonl", "--benchmark", name,
            "--run", "qwen", "--problems", problems, "--output", tmp_path / f"{name}.parquet")  # fmt: skip
    reference = next((ROOT / "results/reference/graders").glob("*.yaml"))
    done = run("eval.grader_agreement", "--samples", *(tmp_path / f"{name}.parquet" for name in names), "--data",
               tmp_path / "data", "--reference", reference, "--output", tmp_path / "report.md")  # fmt: skip
    page = (tmp_path / "report.md").read_text()
    assert "not reviewed" not in page, "somebody has to look at a new disagreement: " + done.stdout
    for row in (
        "| gsm8k | 1319 | 84.8 | 84.8 | 84.8 |",
        "| math500 | 500 | 75.2 |",
        "| minerva_math | 272 | 38.2 |",
        "| olympiadbench | 675 | 41.5 |",
        "| aime24 | 30 | 10.0 | 10.0 | 10.0 |",
        "| amc23 | 40 | 57.5 | 57.5 | 57.5 |",
    ):
        assert row in page


@pytest.mark.slow
@needs.published("generations/gsm8k_four_models.jsonl")
def test_every_human_label_of_four_models_is_met():
    labelled = human_labels.agreement(MIRROR / "generations/gsm8k_four_models.jsonl")
    assert len(labelled) == 5276
    assert all((result.verdict == "correct") == label for _, _, label, _, result in labelled)


def test_answers_in_words_are_not_a_silent_zero(tmp_path, capsys):
    rows = [
        {"idx": i, "gt": "5", "code": [text]}
        for i, text in enumerate(["The answer is 5.", "So the answer is 5, which is odd."])
    ]
    table, _ = import_samples("qwen-math", [lines(tmp_path / "a.jsonl", *rows)], "gsm8k", "r")
    tables.write(table, tables.SAMPLE, tmp_path / "gsm8k.parquet")
    name, samples = read_rows(tmp_path / "gsm8k.parquet", None)
    rule = rule_of_samples(tmp_path / "gsm8k.parquet", name, samples)
    assert rule == "answer-is" and "in a box or by answer-is" in capsys.readouterr().err
    assert compare(name, samples, extraction=rule).scores["strict"] == 100
    blank = [row | {"completion": "I do not know."} for row in samples]
    assert rule_of_samples(tmp_path / "gsm8k.parquet", name, blank) == "none"
    assert "the score will say little" in capsys.readouterr().err

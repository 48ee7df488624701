"""Grading: extraction, exact comparison, workers that are killed, and hostile text."""

import json
import time
from pathlib import Path

import psutil
import pytest

from contracts import tables
from grading import Item, grade, worker_pool
from grading.extraction import RULES
from grading.worker_pool import POOL, Pair
from tasks import registry
from tests import needs
from tests.hostile_text import MATHS
from tests.user_errors import refused

COSTLY_JUDGE = "tests.unit.costly_judge.judge"
JUDGE = registry.get("math").graders["math-verify"].judge


def verdict(gold, completion, **more):
    [result] = grade([Item("math", gold, completion, **more)])
    return result.verdict


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("18", "18", "correct"),
        ("18", "18.0", "correct"),
        ("1234", "1{,}234", "correct"),
        ("-7", "−7", "correct"),
        ("18", "81", "wrong"),
        ("\\frac{1}{2}", "0.5", "correct"),
        ("\\dfrac12", "\\frac{1}{2}", "correct"),
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3, \\frac{\\pi}{2})", "correct"),
        ("1,3,5", "5, 3, 1", "correct"),
        ("x^2+2x+1", "(x+1)^2", "correct"),
        ("\\text{east}", "\\text{west}", "wrong"),
        ("\\frac{1}{2004!}", "\\frac{1}{2006!}", "wrong"),
        ("2^{-99}", "2^{-98}", "wrong"),
        ("1,2,\\ldots,n", "1,3,\\ldots,2n-1", "wrong"),
        ("1,2,\\ldots,n", "1, 2, \\ldots, n", "correct"),
        ("2516_8", "2516_7", "wrong"),
        ("2516_8", "2516_{8}", "correct"),
        ("2516_8", "2516", "correct"),  # the question says which base
        ("2516_8", "1358", "wrong"),
        ("\\$36", "36", "correct"),
        ("\\$32,\\!348", "32348", "correct"),
        ("36", "\\$36.00", "correct"),
        ("10", "10\\%", "correct"),
        ("8 \\%", "8", "correct"),
        ("0.1", "10\\%", "correct"),
        ("10", "1000\\%", "correct"),
        ("10", "11\\%", "wrong"),
        ("\\frac{37}{4} m", "\\frac{37m}{4}", "correct"),
        ("\\frac{37}{4} m", "\\frac{37}{4}", "wrong"),
        ("x = 3 t", "x = 3", "wrong"),
        ("x = 3 t", "x = t \\cdot 3", "correct"),
        ("\\sin t", "\\cos t", "wrong"),
        ("5", "5 m", "correct"),
        ("5", "5~\\text{m}", "correct"),
        ("\\frac{1}{\\sqrt{2}}c", "\\frac{c}{\\sqrt{2}}", "correct"),
        ("-\\tau \\ln \\Delta", "\\tau \\ln(1/\\Delta)", "correct"),
        ("|x|", "x", "wrong"),
        ("np.arcsin(10/13)", "\\arcsin\\frac{1}{1.3}", "correct"),
        ("-1./3", "-\\frac{1}{3}", "correct"),
        ("-1./3", "\\frac{1}{3}", "wrong"),
        ("1e-5", "10^{-5}", "correct"),
        ("1e-5", "10^{-6}", "wrong"),
        ("(3,4]", "(3,4)", "wrong"),
        ("(3,4]", "(3, 4]", "correct"),
        ("\\{1,2\\}", "\\{2,1\\}", "correct"),
        ("(1,2)", "(2,1)", "wrong"),
        ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1\\\\3\\end{pmatrix}", "wrong"),
    ],
)
def test_verdicts(gold, answer, expected):
    assert verdict(gold, f"So it is $\\boxed{{{answer}}}$.") == expected


@pytest.mark.parametrize(
    ("gold", "completion", "extraction", "expected"),
    [
        ("4", "I count 4", "none", "no_answer"),
        ("4", "I count 4", "last-number", "correct"),
        ("4", "5 apples. The answer is: $4$.\n5 pears", "answer-is", "correct"),
        ("4", "The final answer is 4", "answer-is", "correct"),
        ("18", "The answer is 18. I hope it is correct.", "answer-is", "correct"),
        ("6", "So the answer is $6$ dollars. Then he goes home.", "answer-is", "correct"),
        ("5, 6", "The answer is $5$ and $6$.", "answer-is", "correct"),
        ("4", "5 is not the answer, 4 is", "answer-is", "correct"),
        ("4", r"\boxed{4}, so the answer is 5", "answer-is", "correct"),
        ("4", "\\boxed{5}</think> so it is \\boxed{4}", "none", "correct"),
        ("4", "\\boxed{4}</think> so it is clear", "none", "no_answer"),
        ("4", "<answer> 4 </answer>", "answer-tag", "correct"),
        ("4", "<answer> 4 ", "answer-tag", "format_error"),
    ],
)
def test_where_an_answer_stands_is_the_extractions(gold, completion, extraction, expected):
    assert verdict(gold, completion, extraction=extraction) == expected


@pytest.mark.parametrize(
    ("completion", "extraction", "expected"),
    [
        ("I count 4", "last-number", "truncated"),
        ("The answer is 4", "answer-is", "truncated"),
        ("Answer: 4", "answer-line", "truncated"),
        ("\\boxed{4}. Wait, let me check \\boxed{5", "none", "correct"),
        ("<answer> 4 </answer> and then", "answer-tag", "correct"),
    ],
)
def test_a_text_that_was_cut_off_has_an_answer_only_where_its_end_is_marked(completion, extraction, expected):
    assert verdict("4", completion, extraction=extraction, finish_reason="length") == expected


def test_a_prompt_that_was_too_long_has_no_answer():
    assert verdict("4", "", finish_reason="prompt_too_long") == "no_answer"


@pytest.mark.parametrize("gold", ["", "  ", "\\frac{1}{"])
def test_a_bad_gold_answer_is_never_wrong(gold):
    assert verdict(gold, "\\boxed{1}") == "ungradable"


def seconds_of_judges():
    """CPU time of all workers and their judges, ended ones included: what a deadline bounds, on a busy machine too."""
    workers = [psutil.Process(worker._process.pid) for worker in POOL._workers]
    times = [one.cpu_times() for worker in workers for one in (worker, *worker.children())]
    return sum(sum(one[:4]) for one in times)  # user, system, and both of ended children


@pytest.mark.slow
def test_only_the_guilty_pair_is_ungradable():
    pairs = [Pair("cpu 0", "yes", str(i)) for i in range(40)]
    pairs[17] = Pair("cpu 9", "yes", None)
    started = seconds_of_judges()
    verdicts = POOL.run(COSTLY_JUDGE, pairs, deadline_s=3.0, workers=2)
    assert [i for i, v in enumerate(verdicts) if v != "correct"] == [17]
    assert verdicts[17] == "ungradable"
    assert seconds_of_judges() - started < 15


@pytest.mark.slow
def test_a_worker_that_is_killed_from_outside_is_replaced():
    POOL.run(JUDGE, [Pair("x", "x+1", None)], deadline_s=5.0, workers=1)
    POOL._workers[0]._process.kill()
    assert POOL.run(JUDGE, [Pair("x+1", "1+x", None)], deadline_s=5.0, workers=1) == ["correct"]


@pytest.mark.slow
def test_progress_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(worker_pool, "SECONDS_BETWEEN_LINES", 0.0)
    pairs = [Pair("cpu 0", "yes", str(n)) for n in range(worker_pool.CHUNK)]
    assert POOL.run(COSTLY_JUDGE, [*pairs, Pair("cpu 9", "yes", None)], deadline_s=1.0, workers=1)[-1] == "ungradable"
    said = capsys.readouterr().err
    assert "grade: 9/9 pairs judged, 1 without verdict" in said and "grade: 1/1 pairs judged, 1 without verdict" in said


@pytest.mark.slow
def test_a_worker_that_runs_out_of_memory_is_replaced():
    pairs = [Pair("1", "\\binom{10^{9}}{5 \\cdot 10^{8}}", None), Pair("x+1", "1+x", None)]
    assert POOL.run(JUDGE, pairs, deadline_s=5.0, workers=1)[1] == "correct"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grader", "text"),
    [
        *(pytest.param("math-verify", text, id=f"math-verify-{n}") for n, text in enumerate(MATHS)),
        *(
            pytest.param("qwen-rules", text, id=f"qwen-rules-{n}", marks=[pytest.mark.long] * bool(n % 4))
            for n, text in enumerate(MATHS)
        ),
    ],
)
def test_hostile_answers_end_within_the_deadline_and_run_nothing(text, grader, tmp_path):
    target = tmp_path / "made"
    answer = text.replace("{target}", str(target))
    completions = (f"\\boxed{{{answer}}}", answer, f"<answer>{answer}</answer>", "\\boxed{" + answer)
    started = seconds_of_judges() + time.process_time()
    items = [Item("math", "58", completion, extraction="answer-tag") for completion in completions]
    results = grade(items, deadline_s=0.5, workers=1, grader=grader)
    assert seconds_of_judges() + time.process_time() - started < len(items) * 0.5 + 2.0
    assert {result.verdict for result in results} <= set(tables.VERDICTS) - {"correct"}
    assert not target.exists()


def test_marks_that_nobody_sees_do_not_make_an_answer_wrong():
    assert verdict("5", "\\boxed{\u202e\u200f5\u202c}") == "correct"
    assert verdict("5", "\\boxed{5\x00\x00}") == "correct"


@pytest.mark.slow
def test_long_completions_take_linear_time():
    verdict("x", "\\boxed{y+1}")  # starts the workers
    for text in (
        "\\boxed{" * 40_000,
        "{" * 300_000,
        "}" * 300_000,
        "<answer>" * 40_000,
        "1," * 150_000,
        "Answer:\n" * 40_000,
        "\n" * 200_000,
        "* # > \n" * 40_000,
        "Answer:" + " \t" * 100_000,
        "\\boxed" + " " * 200_000,
        "\\boxed{1} and " * 20_000,
        "A: " * 60_000,
        "٣" * 200_000,
        "\u202e" * 200_000,
    ):
        for rule in RULES:
            started = time.process_time()
            grade([Item("math", "7", text, extraction=rule)])
            assert time.process_time() - started < 2


def test_the_same_pair_is_judged_once(monkeypatch):
    judged = []
    real = POOL.run
    monkeypatch.setattr(POOL, "run", lambda judge, pairs, **more: judged.extend(pairs) or real(judge, pairs, **more))
    results = grade([Item("math", "x+1", "\\boxed{1+x}")] * 50 + [Item("math", "2", "\\boxed{2}")] * 50)
    assert [r.verdict for r in results] == ["correct"] * 100
    assert judged == [Pair("x+1", "1+x", None)]


def test_mistakes_are_named():
    with refused("unknown-name", kind="grader", name="guess"):
        grade([], grader="guess")
    with refused("unknown-name", kind="extraction rule", name="first-number"):
        grade([Item("math", "1", "1", extraction="first-number")])


def test_the_grader_that_is_recorded_is_the_one_that_decided():
    countdown = Item("countdown", "24", "<answer>4*6</answer>", meta={"nums": [4, 6]})
    for grader, name in (("math-verify", "math-verify (math-verify "), ("strict", "strict")):
        results = grade([Item("math", "24", "\\boxed{24}"), countdown], grader=grader)
        assert [result.verdict for result in results] == ["correct", "correct"]
        assert results[0].grader.startswith(name) and results[1].grader.startswith("countdown verifier")


def test_an_unknown_task_is_never_graded_as_another():
    with refused("unknown-name", kind="task", name="countdwn"):
        grade([Item("countdwn", "24", "\\boxed{24}", meta={"nums": [4, 6]})])


def test_tolerances_and_units():
    assert verdict("1.6", "\\boxed{1.57}") == "wrong"
    assert verdict("1.6", "\\boxed{1.57}", meta={"relative_tolerance": 0.05}) == "correct"
    assert verdict("22.6", "\\boxed{22.55}", meta=json.dumps({"tolerance": 0.1})) == "correct"
    assert verdict("22.6", "\\boxed{22.8}", meta={"tolerance": 0.1}) == "wrong"
    assert verdict("90", "\\boxed{90^{\\circ}}", meta={"unit": "^{\\circ}"}) == "correct"


GENERATIONS = Path(__file__).parents[2] / "../shared/data/generations/qwen2.5-math-1.5b-instruct"


@needs.published("generations/qwen2.5-math-1.5b-instruct/math500.jsonl")
@pytest.mark.slow
def test_real_generations_score_near_the_published_figures():
    rows = [
        json.loads(line) for line in (GENERATIONS / "math500.jsonl").read_text(encoding="utf-8").split("\n") if line
    ]
    results = grade([Item("math", row["gt"], row["code"][0]) for row in rows])
    assert 73.6 <= 100 * sum(r.verdict == "correct" for r in results) / len(rows) <= 75.6  # published: 74.6

"""Programs: suites that leave known faults uncaught, how values are compared, the published rows, the rewards."""

from __future__ import annotations

import gzip
import json

import pytest

from contracts.run_file import ROOT
from grading import Item, grade
from recipes import rewards
from recipes.code import reward
from tasks import dataset_sources, dataset_specs, load_problems, registry, sandbox
from tasks.programs import problems, suite
from tasks.programs.suite import Suite, extract_program, read_asserts, run_tests, same_value
from tasks.sandbox import pipes
from tests import needs
from tests.user_errors import refused

MIRROR = ROOT.parent / "shared" / "data"
REFUSED = sandbox.why_unavailable()
needs_sandbox = needs.sandbox(REFUSED)
needs_mirror = needs.published("code/leetcode_v0.3.1_test.jsonl.gz")
PROBLEM = problems.generate(1, "train", 0)[0]


@needs_sandbox
def test_each_fault_is_caught_by_as_many_tests_as_stated_and_no_fewer() -> None:
    for problem in problems.generate(2, "train", 1):
        faults = {int(count): text for count, text in problem.meta["faults"].items()}
        for count, text in faults.items():
            passed = run_tests(text, Suite.from_meta(problem.meta)).passed
            assert not all(passed[:count])
            assert all(all(passed[:fewer]) for fewer in faults if fewer < count)
        assert run_tests(problem.answer or "", Suite.from_meta(problem.meta)).share == 1.0


@pytest.mark.slow
def test_splits_share_no_function_and_wordings_are_known() -> None:
    sets = {split: {p.answer for p in problems.generate(300, split, 0)} for split in ("train", "test")}
    assert not sets["train"] & sets["test"] and len(sets["train"]) == 300
    assert problems.generate(5, "train", 0) == problems.generate(5, "train", 0) != problems.generate(5, "train", 1)
    for wrong, code in (
        ({"split": "dev"}, "unknown-name"), ({"wording": "long"}, "unknown-name"),
        ({"rows": 10**4}, "too-few-problems"),
    ):  # fmt: skip
        with refused(code):
            problems.generate(**{"rows": 1, "split": "train", "seed": 0, **wrong})  # type: ignore[arg-type]


@needs_sandbox
def test_verdicts() -> None:
    right, fault = PROBLEM.answer or "", PROBLEM.meta["faults"]["64"]
    texts = {
        f"<answer>{right}</answer>": "correct",
        f"so <answer>\n```python\n{right}\n```\n</answer>": "correct",
        f"<answer>{fault}</answer>": "wrong",
        "<answer>def f(</answer>": "wrong",
        "<answer></answer>": "format_error",
        right: "format_error",
    }
    items = [Item("programs", right, text, meta=PROBLEM.meta) for text in texts]
    assert [graded.verdict for graded in grade(items, workers=1)] == list(texts.values())
    verify = registry.get("programs").verify
    for meta in ({}, {"tests": []}, {"tests": [[1]], "function": "f"}, {"tests": 3}):
        assert verify(right, right, meta) == "ungradable"


@needs_sandbox
def test_the_rewards_of_two_eight_and_all_tests() -> None:
    texts = [f"<answer>{text}</answer>" for text in (PROBLEM.answer, *PROBLEM.meta["faults"].values(), "def g(): 1")]
    each = [rewards.problem_from_columns("programs", PROBLEM.answer or "", json.dumps(PROBLEM.meta))] * len(texts)
    passes = {2: [1, 0, 1, 1, 1, 0], 8: [1, 0, 0, 1, 1, 0], 32: [1, 0, 0, 0, 1, 0], None: [1, 0, 0, 0, 0, 0]}
    for tests, all_pass in passes.items():
        steps = [1.1 if one else 0.1 for one in all_pass[:-1]] + [-0.9]
        assert [one.value for one in reward.in_steps(texts, each, tests=tests)] == pytest.approx(steps)
        shares = [one.value for one in reward.share_passed(texts, each, tests=tests)]
        assert [share == 1.0 for share in shares] == [bool(one) for one in all_pass] and shares[-1] == 0.0
    assert 0.9 < (reward.share_passed(texts, each)[4].value or 0) < 1.0
    (paid,) = reward.in_steps(["def f(a, b): return 1"], each[:1], tests=2)
    assert paid == rewards.Reward(-1.1, "format_error", True)
    assert reward.in_steps(texts[:1], [each[0]._replace(meta={})])[0].value is None
    with refused("argument-out-of-range"):
        reward.share_passed((), (), tests=0)


def test_without_a_sandbox_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    monkeypatch.setattr("subprocess.Popen", lambda *arguments, **named: pytest.fail("a program was run"))
    each = [rewards.problem_from_columns("programs", "", json.dumps(PROBLEM.meta))]
    with refused("no-sandbox"):
        reward.share_passed(["<answer>def f(a, b): return 'never seen'</answer>"], each)
    with refused("no-sandbox"):
        registry.get("programs").verify("def f(a, b): return 'never seen'", "", PROBLEM.meta)


@pytest.mark.slow
@needs_sandbox
def test_a_program_without_a_definition_is_paid_as_one_that_does_not_run() -> None:
    beginnings = ("import os\nos._exit(0)", "while True: pass", "import ctypes\nctypes.string_at(0)",
                  "raise SystemExit", "while True: print('x' * 9999)", "import time\ntime.sleep(10 ** 6)",
                  "import os\nos.kill(1, 9)", "import os\nos.write(3, b'runnable\\n=1\\ndone\\n')",
                  "from math import *")  # fmt: skip
    texts = [f"<answer>{text}</answer>" for text in beginnings]
    texts += [f"<answer>{text}\nraise KeyError\ndef f(a, b): return 1</answer>" for text in beginnings]
    each = [rewards.problem_from_columns("programs", PROBLEM.answer or "", json.dumps(PROBLEM.meta))] * len(texts)
    assert [one.value for one in reward.in_steps(texts, each, tests=2)] == pytest.approx([-0.9] * len(texts))


@needs_sandbox
def test_a_sandbox_that_did_not_start_is_ungradable_and_the_others_are_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_right(job: bytes, most: int, wall_s: float) -> pipes.ProcessOutput:
        if b"lambda" in job:
            return pipes.ProcessOutput(b"", b"no namespace is left", "")
        if b"os" in job:
            raise OSError("no process is left")
        return start(job, most, wall_s)

    start = sandbox.single_use.run
    monkeypatch.setattr(sandbox, "why_not_warm", lambda: "each in a sandbox of its own")
    monkeypatch.setattr(sandbox.single_use, "run", only_right)
    texts = ["<answer>f = lambda a, b: 7</answer>", f"<answer>{PROBLEM.answer}</answer>", "<answer>import os</answer>"]
    each = [rewards.problem_from_columns("programs", PROBLEM.answer or "", json.dumps(PROBLEM.meta))] * len(texts)
    paid = reward.share_passed(texts, each, tests=2)
    assert [(one.value, one.verdict) for one in paid] == [(None, "ungradable"), (1.0, "correct"), (None, "ungradable")]
    assert registry.get("programs").verify("f = lambda a, b: 7", "", PROBLEM.meta) == "ungradable"


@pytest.mark.parametrize(
    ("value", "expected", "equal"),
    [
        (1, 1, True), (1.0, 1, True), (True, 1, True), ("1", 1, False), ([1, 2], [1, 2], True), ([1], [1, 2], False),
        (0.1 + 0.2, 0.3, True), (0.3001, 0.3, False), ([[0.30000000000000004]], [[0.3]], True), (None, None, True),
        ({"a": 1}, {"a": 1}, True), (float("nan"), 1, False), ([...], [1], False), (10**400, 10**400, True),
        (1000000006.5, 1000000006, False), (1000000017, 1000000006.5, False), (3, 3.0, True), (1e16 + 2, 10**16, False),
        (0.5, 10**400, False), (10**400, 0.5, False), ([1000000006.5], [1000000006], False), (True, 1.0, True),
    ],
)  # fmt: skip
def test_values_are_compared_as_python_does(value: object, expected: object, equal: bool) -> None:
    assert same_value(value, expected) == equal


def test_tests_are_read_from_plain_asserts_alone() -> None:
    source = (
        "def check(candidate):\n    assert candidate(n = 2, rows = [[1, -2]]) == 3\n    assert candidate(4) == 'x'\n"
    )
    assert read_asserts(source) == [[[], {"n": 2, "rows": [[1, -2]]}, 3], [[4], {}, "x"]]
    for other in ("import os", "candidate(**x) == 1", "assert candidate(tree([1])) == 1", "assert candidate(1) > 2",
                  "assert other(1) == 2", "assert candidate(1) == {1}", "x = 1"):  # fmt: skip
        assert read_asserts(f"def check(candidate):\n    {other}\n") is None
    assert read_asserts("def check(:") is None and read_asserts("") is None


def test_a_program_is_what_the_last_fence_holds() -> None:
    assert extract_program("def f(): 1") == "def f(): 1"
    assert extract_program("```python\none\n```\nor\n```\ntwo\n```") == "two\n"
    assert not run_tests("x" * (suite.MOST_CHARACTERS + 1), Suite.from_meta(PROBLEM.meta)).runnable


def test_compressed_rows_are_read_and_damaged_ones_refused() -> None:
    packed = gzip.compress(b'{"a": 1}\n{"a": 2}\n')
    assert dataset_sources.parse_rows("rows.jsonl.gz", packed) == [{"a": 1}, {"a": 2}]
    for damaged in (packed[:-6], b"no gzip", packed[:12] + b"x" + packed[13:]):
        with refused("unreadable-rows"):
            dataset_sources.parse_rows("rows.jsonl.gz", damaged)


@pytest.mark.slow
@needs_mirror
@needs_sandbox
def test_the_published_rows_load_and_their_own_solutions_pass() -> None:
    loaded, facts = load_problems.load(dataset_specs.find("leetcode"), MIRROR)
    assert facts["rows"] == 228 and len(loaded) == facts["problems"]
    assert all(len(problem.meta["tests"]) >= 32 for problem in loaded)
    for problem in loaded[:60:20]:
        assert run_tests(problem.answer or "", Suite.from_meta(problem.meta, 32)).share == 1.0

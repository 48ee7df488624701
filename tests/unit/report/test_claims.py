"""Claims: each kind of rule measures what it says, an interval decides, and every claim stands where it is said to."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_runs import graded_row, log_row, make_run
from synthetic_results import write_run

from analysis import reference
from analysis.claims import table as claims
from analysis.claims.__main__ import main
from analysis.claims.registry import KINDS, load_registry, runs_of
from analysis.claims.verdicts import (
    CANNOT_TELL,
    CONTRADICTED,
    NOT_MEASURED,
    SUPPORTED,
    finding,
    measure,
    printed_finding,
    runs_by_name,
)
from analysis.measures import training_log
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe, compare
from eval.statistics import Estimate
from recipes.runs import run_names
from tests.user_errors import refused

PROBLEMS = 40
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(/\d+)?[KG%]?")


def _completion(name: str, step: int, problem: int, right: bool, tokens: int) -> dict[str, Any]:
    thinking = "First, think. Let's try again." if step else "think"
    text = f"{thinking}</think>{(f'{name[0]}{name[-1]}' * len(thinking))[: len(thinking)]}"  # each training has its own
    verdict = "correct" if right else "truncated" if problem % 2 else "wrong"
    return graded_row(step, f"{problem:02d}", 0, verdict, completion=text, completion_tokens=tokens)


def synthetic(name: str, solved: int = 10, level: float = 100.0, swing: float = 1.0) -> RunResults:
    """Solves a number of 40 problems at steps 0 and 40, twice as many at step 20; lengths swing, and double there."""
    rows = [
        _completion(
            name, step, problem, problem < solved * (2 if step == 20 else 1), 100 + 20 * (problem % 2) + 5 * step
        )
        for step in (0, 20, 40)
        for problem in range(PROBLEMS)
    ]
    log = [
        log_row(step, response_length_mean=(1 if step <= 20 else 2) * level + swing * (1, -1, 2, -2)[step % 4])
        for step in range(1, 41)
    ]
    return replace(make_run(rows, log), name=name)


RUNS = runs_by_name(
    run
    for seed in (0, 1, 2)
    for run in (
        synthetic(f"a/run/seed-{seed}", level=100.0 + seed / 100, swing=1.0 + seed / 100),
        synthetic(f"b/run/seed-{seed}", solved=16, level=50.0 + seed / 50, swing=5.0 + seed / 20),
    )
)
A, B = {"run": "a/run"}, {"run": "b/run", "against": "a/run"}
EARLY, LATE = [1, 20], [21, 40]
LENGTH = {"column": "response_length_mean"}
KL_SIGN = {"measure": "listed_deviation", "deviation": "the sign of the KL term"}
MEASURED: dict[str, tuple[dict[str, Any], float]] = {
    "share": ({"measure": "heldout", **A, "step": 0}, 0.25),
    "last": ({"measure": "heldout", **A, "step": "last", "benchmark": "sums"}, 0.25),
    "verdict": ({"measure": "heldout", **A, "step": 0, "what": "truncated"}, 0.375),
    "keyword": ({"measure": "heldout", **A, "step": 20, "what": "reflection"}, 1.0),
    "tokens": ({"measure": "heldout", **A, "step": 0, "what": "tokens"}, 110.0),
    "range": ({"measure": "heldout", **A, "step": 0, "what": {"tokens": [100, 120]}}, 0.5),
    "thinking": ({"measure": "heldout", **A, "step": 20, "what": "thinking_tokens"}, 105.0),
    "change": ({"measure": "heldout_change", **A, "before": 0, "after": 20}, 0.25),
    "longer": ({"measure": "heldout_change", **A, "before": 0, "after": 20, "what": "tokens"}, 100.0),
    "less": ({"measure": "heldout_change", **A, "before": 0, "after": 20, "what": "reflection", "less": "correct"},
             0.75),
    "ratio of lengths": ({"measure": "heldout_ratio", **A, "before": 0, "after": 20}, 210 / 110),
    "size": ({"measure": "heldout_size_of_change", **A, "before": 20, "after": 40, "what": "correct",
              "less": "reflection"}, 0.25),
    "between": ({"measure": "heldout_between", **B, "step": 0, "against_step": 0}, 0.15),
    "best": ({"measure": "heldout_best_step", **A}, 20.0),
    "level": ({"measure": "training", **A, **LENGTH, "steps": EARLY}, 100.0),
    "rise": ({"measure": "training_change", **A, **LENGTH, "before": EARLY, "after": LATE}, 100.0),
    "apart": ({"measure": "training_between", **B, **LENGTH, "steps": EARLY, "against_steps": LATE}, -150.0),
    "ratio": ({"measure": "training_ratio", **B, **LENGTH, "steps": EARLY, "against_steps": EARLY}, 0.5),
    "rough": ({"measure": "roughness_ratio", **B, **LENGTH, "steps": EARLY, "against_steps": EARLY}, 10.0),
    "bias": ({"measure": "kl_bias", "estimator": "k2", "shift": 1.0}, 0.25),  # Schulman's note, second case
    "spread": ({"measure": "kl_spread", "estimator": "k3", "than": "k1", "shift": 0.1}, 1.42 / 20),  # its first case
    "advantage": ({"measure": "advantage", "rewards": [1, 1, -1, -1], "position": 0}, 0.75**0.5),
    "equal": ({"measure": "advantage", "rewards": [1, 1], "position": 0}, 0.0),
    "both": ({"measure": "heldout", **A, "step": 20, "what": {"all_of": ["reflection", "correct"]}}, 0.5),
    "judged": ({"measure": "judged", "task": "math", "completion": r"\boxed{2/4}", "gold": "0.5"}, 1.0),
    "reach": ({"measure": "kl_reach", "kl_in": "reward", "gae_lambda": 0.95}, 1.0),
    "rows": ({"measure": "rows", "sets": ["gsm8k", "aime24"]}, 1349.0),
    "listed": ({**KL_SIGN, "run_file": "tinyzero/grpo-3b"}, 1.0),
    "unlisted": ({**KL_SIGN, "run_file": "tinyzero/ppo-3b"}, 0.0),
}  # fmt: skip


def claim(*rules: dict[str, Any], scale: str = "full") -> dict[str, Any]:
    return {"scale": scale, "rules": list(rules)}


@pytest.mark.parametrize(("rule", "expected"), MEASURED.values(), ids=MEASURED)
def test_each_kind_measures_a_known_value_and_its_interval_decides(rule: dict[str, Any], expected: float) -> None:
    estimate = measure(rule, RUNS)
    assert isinstance(estimate, Estimate)
    assert estimate.value == pytest.approx(expected, rel=0.01)
    assert estimate.low <= estimate.value <= estimate.high
    above = {"at_least": estimate.high + 1}
    assert finding(claim({**rule, "at_least": estimate.low - 1e-9}), RUNS, "full").verdict == SUPPORTED
    assert finding(claim({**rule, **above}), RUNS, "full").verdict == CONTRADICTED
    if estimate.low < estimate.high:
        between = (estimate.low + estimate.high) / 2
        assert finding(claim({**rule, "at_most": between}), RUNS, "full").verdict == CANNOT_TELL
    if runs_of(rule):
        missing = finding(claim({**rule, **above}), {}, "full")
        assert missing.verdict == NOT_MEASURED and "a/run" in missing.evidence


@pytest.mark.parametrize(
    ("rule", "missing"),
    [({**KL_SIGN, "run_file": "tinyzero/none"}, "tinyzero/none"), ({"measure": "rows", "sets": ["none"]}, "none")],
)
def test_a_run_file_or_set_that_was_removed_leaves_its_claim_open(rule: dict[str, Any], missing: str) -> None:
    judged = finding(claim({**rule, "at_least": 1}), RUNS, "full")
    assert judged.verdict == NOT_MEASURED and missing in judged.evidence


def test_every_kind_is_tested() -> None:
    assert {rule["measure"] for rule, _ in MEASURED.values()} == KINDS.keys() - {"not_stored"}


@pytest.mark.parametrize("kind", ["share", "change", "longer", "between", "level", "rise", "apart", "ratio", "rough"])
def test_only_exact_counts_have_an_interval_without_width(kind: str) -> None:
    estimate = measure(MEASURED[kind][0], RUNS)
    assert isinstance(estimate, Estimate) and estimate.low < estimate.high


def test_results_of_the_demo_scale_decide_nothing_about_the_full_scale() -> None:
    rule = {**MEASURED["share"][0], "at_least": 0.9}
    assert finding(claim(rule), RUNS, "full").verdict == CONTRADICTED
    assert finding(claim(rule), RUNS, "demo").verdict == CANNOT_TELL
    assert finding(claim(rule), {}, "demo").verdict == NOT_MEASURED
    assert finding(claim(rule, scale="any"), RUNS, "demo").verdict == CONTRADICTED


def test_what_is_missing_is_said() -> None:
    for change, reason in (
        ({"step": 10}, "not evaluated at step 10"),
        ({"benchmark": "differences"}, "on differences"),
    ):
        judged = finding(claim({**MEASURED["share"][0], **change, "at_least": 0}), RUNS, "full")
        assert judged.verdict == NOT_MEASURED and reason in judged.evidence
    log = {**MEASURED["level"][0], "at_least": 0}
    for change, reason in (({"steps": [30, 50]}, "30 to 50"), ({"column": "kl"}, "no kl")):
        judged = finding(claim({**log, **change}), RUNS, "full")
        assert judged.verdict == NOT_MEASURED and reason in judged.evidence
    judged = finding(claim({"measure": "not_stored", "needs": "a judge"}), RUNS, "full")
    assert judged == (NOT_MEASURED, "needs a judge")


def test_all_rules_must_hold_and_one_may_contradict() -> None:
    holds, fails = ({**MEASURED["share"][0], key: 0.01} for key in ("at_least", "at_most"))
    unclear = {**MEASURED["share"][0], "at_least": 0.25}
    missing = {**holds, "run": "c/run"}
    for rules, expected in (
        ([holds, holds], SUPPORTED),
        ([holds, unclear], CANNOT_TELL),
        ([holds, unclear, missing], NOT_MEASURED),
        ([holds, unclear, missing, fails], CONTRADICTED),
    ):
        assert finding(claim(*rules), RUNS, "full").verdict == expected


def _recipe(name: str, *solved: int) -> list[RunResults]:
    return [synthetic(f"{name}/seed-{seed}", solved=count) for seed, count in enumerate(solved)]


def test_one_training_seed_decides_nothing_about_a_recipe_but_a_base_model_is_a_checkpoint() -> None:
    alone, repeated = runs_by_name(_recipe("a/run", 10)), runs_by_name(_recipe("a/run", 10, 10, 10))
    low = {**MEASURED["last"][0], "at_least": 0.9}
    judged = finding(claim(low), alone, "full")
    assert judged.verdict == CANNOT_TELL and "one training seed" in judged.evidence
    assert finding(claim(low), repeated, "full").verdict == CONTRADICTED
    assert finding(claim({**low, "step": 0}), alone, "full").verdict == CONTRADICTED
    of_log = {**MEASURED["level"][0], "at_most": 1}
    assert finding(claim(of_log), alone, "full").verdict == CANNOT_TELL


@pytest.mark.slow
def test_a_sentence_about_recipes_is_decided_by_their_test() -> None:
    rule = {"measure": "heldout_between", **B, "step": "last", "against_step": "last"}
    sides = [_recipe("a/run", 10, 11, 9), _recipe("b/run", 16, 13, 18)]
    estimate = measure(rule, runs_by_name([*sides[0], *sides[1]]))
    line = compare(Recipe(sides[0]), Recipe(sides[1]), ["sums"])
    assert isinstance(estimate, Estimate) and estimate.value == pytest.approx(line.welch.difference.value)
    assert estimate.low == pytest.approx(min(line.welch.difference.low, line.crossed.difference.low))
    more = measure(rule, runs_by_name([*_recipe("a/run", *[10, 11, 9] * 3), *_recipe("b/run", *[16, 13, 18] * 3)]))
    assert isinstance(more, Estimate) and more.high - more.low < estimate.high - estimate.low


def test_copies_and_other_last_steps_decide_no_claim() -> None:
    low = {**MEASURED["last"][0], "at_least": 0.9}
    one, two = _recipe("a/run", 10, 11)
    for runs in ([one, two, replace(two, name="a/run/seed-2")], [replace(one, name="b/run/seed-0"), one, two]):
        rule = low if len(runs_by_name(runs)) == 1 else {**MEASURED["between"][0], "step": 20, "at_least": 0.9}
        judged = finding(claim(rule), runs_by_name(runs), "full")
        assert judged.verdict == NOT_MEASURED and "same completions" in judged.evidence
    early = replace(two, scores=two.scores[two.scores["step"] < 40])
    judged = finding(claim(low), runs_by_name([one, early]), "full")
    assert judged.verdict == NOT_MEASURED and "different steps" in judged.evidence
    assert finding(claim({**low, "step": 20}), runs_by_name([one, early]), "full").verdict == CONTRADICTED


@pytest.mark.slow
def test_each_of_several_rules_contradicts_with_its_share_of_the_error() -> None:
    estimate = measure({**MEASURED["share"][0], "step": 40}, RUNS)
    assert isinstance(estimate, Estimate)
    barely = {**MEASURED["share"][0], "step": 40, "at_least": estimate.high + 1e-6}
    assert finding(claim(barely), RUNS, "full").verdict == CONTRADICTED
    assert finding(claim(barely, *[{**barely, "at_least": 0.0}] * 4), RUNS, "full").verdict == CANNOT_TELL


@pytest.mark.slow
def test_levels_of_two_windows_of_correlated_steps_do_not_differ() -> None:
    """Neighbouring steps of a log are alike: here with a correlation of 0.8."""
    random, differ = np.random.default_rng(0), 0
    for _ in range(300):
        noise = random.standard_normal(160)
        for step in range(1, 160):
            noise[step] += 0.8 * noise[step - 1]
        run = replace(RUNS["a/run"][0], log=pd.DataFrame({"step": np.arange(160), "kl": noise}))
        differ += training_log.training_change(run, "kl", [60, 80], [130, 150]).change != "cannot tell"
    assert differ / 300 < 0.06  # 2 % in a longer simulation; 18 % with blocks of steps


def test_two_runs_that_were_measured_differently_are_not_compared() -> None:
    other = synthetic("b/run/seed-0")
    other = replace(other, graded=other.graded.assign(protocol="another"))
    difference = measure(MEASURED["between"][0], runs_by_name([synthetic("a/run/seed-0"), other]))
    assert not isinstance(difference, Estimate) and "not comparable" in str(difference)


def test_the_printed_table_is_judged_by_the_same_rules() -> None:
    known = {one["id"]: one for one in load_registry()["claims"]}
    rises, dips = (printed_finding(known[name]) for name in ("simplerl-rises", "simplerl-dip-of-accuracy"))
    assert rises and rises.verdict == "cannot tell" and "0.121" in rises.evidence  # 33.7 to 45.9 on average
    assert dips and dips.verdict == "cannot tell"
    assert printed_finding(known["k3-a-tenth"]) is None


@pytest.mark.parametrize("one", load_registry()["claims"], ids=lambda one: str(one["id"]))
def test_every_claim_can_be_judged(one: dict[str, Any]) -> None:
    assert finding(one, {}, "full").verdict in (SUPPORTED, CONTRADICTED, CANNOT_TELL, NOT_MEASURED)
    if "printed" in one:
        assert printed_finding(one)
    for name in {name for rule in one["rules"] for name in runs_of(rule)}:
        assert (name in run_names()) != (name in load_registry()["planned"]), f"{name} is planned or exists, not both"


@pytest.mark.slow
def test_the_table_has_every_claim_and_its_addresses() -> None:
    table = claims.table(RUNS["a/run"], "demo")
    assert len(table.data) == len(table.display) == len(load_registry()["claims"])
    (row,) = table.data[table.data["id"] == "simplerl-length"].to_dict("records")
    assert (
        "mp.weixin.qq.com" in row["addresses"]
        and "580" in row["quotes"]
        and row["section"] == "3.2.1"
        and row["verdict"] == NOT_MEASURED
    )
    assert claims.verdict_counts(table).startswith(f"{len(table.data)} claims: ")


@pytest.mark.slow
def test_the_command_reads_every_stored_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "openr1/qwen2.5-math-7b/seed-0"
    write_run(tmp_path / "full", name, 0.9, benchmarks=("gsm8k", "minerva_math"), steps=(0, 400), problems=40)
    monkeypatch.setattr("sys.argv", ["claims", "--results", str(tmp_path / "full"), "--output", str(tmp_path / "out")])
    main()
    page = str(tmp_path / "out" / "claims.html")
    assert capsys.readouterr().out.split("\n")[1] == page and Path(page).is_file()
    rows = pd.read_csv(tmp_path / "out" / "claims.csv").set_index("id")
    assert rows.loc["openr1-generalises", "verdict"] == NOT_MEASURED
    gsm8k, minerva, missing = rows.loc["openr1-generalises", "measured"].split("; ")[:3]
    assert "[" in gsm8k and "[" in minerva and missing == f"{name} was not evaluated at step 0 on olympiadbench"


def test_a_report_depends_on_every_published_file_that_it_shows() -> None:
    of_others = {
        "baselines.yaml",
        "own_speed.csv",
        "smollm2.csv",
        "sober_reasoning.csv",
        "published_rewards.yaml",
        "published_rewards.jsonl",
    }
    files = {file.name for file in reference.REFERENCE.iterdir() if file.is_file()}
    assert files - of_others <= reference.page_content().keys()


def edited(tmp_path: Path, **changes: Any) -> Path:
    """A file with the first claim alone, changed."""
    known = load_registry()
    path = tmp_path / "claims.yaml"
    path.write_text(json.dumps({**known, "claims": [{**known["claims"][0], **changes}]}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "code", "facts"),
    [
        ({"source": "hearsay"}, "unknown-name", {"kind": "source", "name": "hearsay"}),
        ({"scale": "huge"}, "schema-broken", {"keys": ["claims.0.scale"]}),
        ({"quotes": []}, "schema-broken", {"keys": ["claims.0.quotes"]}),
        ({"rules": []}, "schema-broken", {"keys": ["claims.0.rules"]}),
        ({"rules": [{"measure": "gut_feeling", "at_least": 0}]}, "unknown-name", {"kind": "measurement"}),
        ({"rules": [{"measure": "rows", "sets": ["gsm8k"]}]}, "rule-without-limits", {"measure": "rows"}),
        ({"rules": [{"measure": "rows", "sets": ["gsm8k"], "run": "a/run", "at_least": 1}]}, "wrong-arguments", {}),
        ({"rules": [{"measure": "heldout", "run": "a/run", "at_least": 1}]}, "wrong-arguments", {}),
        (
            {"rules": [{"measure": "heldout", "run": "a/run", "step": 1, "what": "luck", "at_least": 1}]},
            "schema-broken",
            {"keys": ["claims.0.rules.0.what"]},
        ),
    ],
)
def test_a_damaged_claim_is_refused(tmp_path: Path, changes: dict[str, Any], code: str, facts: dict[str, Any]) -> None:
    with refused(code, **facts):
        load_registry(edited(tmp_path, **changes))


def numbers(sentence: str) -> list[str]:
    """The numbers of a sentence, without those in names such as GSM8K, 7B or Qwen2.5."""
    tokens = [word.rstrip(".,;:").rpartition("=")[2] for word in sentence.split()]
    return [word.lstrip("+-").rstrip("KG%") for word in tokens if NUMBER.fullmatch(word)]


def test_numbers_of_a_sentence() -> None:
    assert numbers("GSM8K: k3 of 7B models, 0.1 apart, has 1/10 at step=12, 8.5K and 82 %.") == [
        "0.1", "1/10", "12", "8.5", "82",
    ]  # fmt: skip


IN_DOCUMENTS = [one for one in load_registry()["claims"] if "author" in load_registry()["sources"][one["source"]]]


def test_a_claim_from_elsewhere_has_an_address() -> None:
    elsewhere = [one for one in load_registry()["claims"] if one not in IN_DOCUMENTS]
    assert elsewhere and all(load_registry()["sources"][one["source"]]["url"] for one in elsewhere)


@pytest.mark.parametrize("one", IN_DOCUMENTS, ids=lambda one: str(one["id"]))
def test_every_number_of_a_claim_stands_in_its_quotations(one: dict[str, Any]) -> None:
    cited = " ".join(one["quotes"])
    missing = [
        number for number in numbers(one["claim"]) if not re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", cited)
    ]
    assert not missing, f"{missing} not in: {cited[:300]}"

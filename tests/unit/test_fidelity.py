"""The published values beside those of the run files: every value has a source, and none differs without a reason."""

from __future__ import annotations

import copy
import dataclasses
import re

import pytest

from analysis import fidelity, reward_fidelity, script_fidelity
from analysis.fidelity import Entry
from recipes.runs import load_run, run_names
from system.yaml_files import read_yaml
from tests.user_errors import refused

RUN = load_run("simplerl/qwen2.5-math-7b", "full")


@pytest.mark.parametrize("name", run_names())
def test_every_value_has_a_source_and_none_differs_without_a_reason(name: str) -> None:
    rows = fidelity.rows(load_run(name, "full"))
    assert all(row.why for row in rows if row.verdict != fidelity.SAME)
    assert all(row.source == fidelity.OURS or ":" in row.source or "report" in row.source for row in rows)


def test_a_value_without_a_source_is_an_error() -> None:
    known = fidelity.entries(RUN)
    del known["rollout.temperature"]
    with refused("missing-source", key="full.rollout.temperature"):
        fidelity.rows(RUN, known)


def test_a_changed_value_is_an_error_until_a_reason_is_given() -> None:
    stage = dataclasses.replace(RUN.stages[0], batch=RUN.stages[0].batch | {"prompts_per_step": 512})
    changed = dataclasses.replace(RUN, stages=(stage,))
    with refused("unexplained-deviation", key="full.batch.prompts_per_step", here=512, published=1024):
        fidelity.rows(changed)
    known = fidelity.entries(RUN) | {"batch.prompts_per_step": Entry(1024, "simplerl", 22, "half of the memory")}
    (row,) = [row for row in fidelity.rows(changed, known) if row.key == "batch.prompts_per_step"]
    assert (row.verdict, row.why) == (fidelity.DEVIATION, "half of the memory")


def test_what_a_release_cannot_do_is_listed_too() -> None:
    listed = {one["what"]: one["source"] for one in RUN.deviations}
    rows = {row.key: row.source for row in fidelity.rows(RUN) if row.key in listed}
    assert rows == listed != {}


def test_an_unlisted_source_is_an_error() -> None:
    with refused("unknown-name", name="hearsay"):
        fidelity.rows(RUN, {"*": Entry(None, "hearsay", 1, "somebody said so")})


def test_a_later_stage_has_rows_for_what_it_changes_alone() -> None:
    keys = {row.key for row in fidelity.rows(load_run("logicrl/qwen2.5-7b", "full"))}
    assert {"stage-2.optimizer.schedule", "stage-3.optimizer.learning_rate"} <= keys
    assert "stage-2.optimizer.learning_rate" not in keys


@pytest.mark.parametrize("name", read_yaml(reward_fidelity.SOURCES))
def test_rewards_pay_as_the_published_code_or_say_why_not(name: str) -> None:
    table = reward_fidelity.rows(name, run_names())
    assert {row.run for row in table} == set(read_yaml(reward_fidelity.SOURCES)[name]["runs"])
    for run in {row.run for row in table}:
        assert sum(row.completions for row in table if row.run == run) >= 200
    assert set(read_yaml(reward_fidelity.SOURCES)[name]["why"]) == {
        row.form for row in table if row.same < row.completions
    }


def test_a_reward_that_pays_otherwise_without_a_reason_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = read_yaml(reward_fidelity.SOURCES)
    stated["tinyzero"]["why"] = {}
    monkeypatch.setattr(reward_fidelity, "read_yaml", lambda path: stated)
    with refused("unexplained-deviation", run="tinyzero/grpo-3b", form="multiplication sign"):
        reward_fidelity.rows("tinyzero", ["tinyzero/grpo-3b"])


@pytest.mark.parametrize("name", sorted(script_fidelity.registered()))
def test_every_setting_of_a_cited_script_has_a_row(name: str) -> None:
    script, (run, _, stage) = script_fidelity.registered()[name], name.partition(" ")
    begins = f"script of {stage}: " if stage else "script: "
    rows = [row for row in fidelity.rows(load_run(run, "full")) if row.key.startswith(begins)]
    stated = [row for row in rows if ", a default of " not in row.key]
    assert len(script["settings"]) == script["flags"] == len(stated)
    assert {row.verdict for row in rows} <= {"same", "documented deviation", "not applicable"}
    assert all(row.why for row in rows if row.verdict != "same")


QUANTITIES = {  # what moves a result though a script need not state it, and the row that says it
    "schedule": "schedule", "clipping": "clip|cliprange|Loss|loss", "dual clipping": "dual_clip|advantage is negative",
    "entropy": "entropy", "top_k": "top_k", "top_p": "top_p", "stop": "stop|where a completion ends",
    "attention": "attention|attn|flash", "seed": "seed", "precision": "precision|dtype|bf16", "Adam": "[bB]eta",
    "aggregation": "loss_aggregation", "KL": "kl_|beta|kl", "whitening": "whiten|scale_rewards",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(script_fidelity.registered()))
def test_every_quantity_that_moves_a_result_has_a_row(name: str) -> None:
    keys = " ".join(row.key for row in fidelity.rows(load_run(name.partition(" ")[0], "full")))
    assert not [quantity for quantity, label in QUANTITIES.items() if not re.search(label, keys)]


def test_a_run_that_differs_from_its_script_without_a_reason_is_refused() -> None:
    run = load_run("tinyzero/ppo-3b", "full")
    stage = dataclasses.replace(run.stages[0], rollout={**run.stages[0].rollout, "temperature": 0.7})
    with refused("unexplained-deviation", key="rollout.temperature"):
        script_fidelity.rows(run.name, dataclasses.replace(run, stages=(stage,)), {}, {})


def test_a_script_of_a_trainer_that_is_no_framework_here_is_compared_by_its_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, runs = load_run("drgrpo/qwen2.5-math-7b", "full"), copy.deepcopy(script_fidelity.registered())
    runs[run.name]["settings"]["learning_rate"] = 2e-6
    monkeypatch.setattr(script_fidelity, "registered", lambda: runs)
    with refused("unexplained-deviation", key="learning_rate"):
        script_fidelity.rows(run.name, run, fidelity.entries(run), fidelity.run_values(run))

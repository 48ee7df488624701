"""A setting that a script leaves open decides nothing: it is asked for, or it is a path, or it changes no meaning."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest

from frameworks import command_parser
from frameworks.adapter import frameworks_with
from system.errors import UserError
from tests.translated_pages import printed_page
from tests.user_errors import refused
from translate.translation import read_settings, refuse_open

COMMAND = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=4 "
GROUPS: dict[str, dict[str, Any]] = {
    "trl": {}, "verl": {"algorithm.adv_estimator": "grpo"}, "openrlhf": {"algo.advantage.estimator": "group_norm"},
}  # fmt: skip
PATHS = {"model", "dataset"}


def meanings(common: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in common.items() if key not in PATHS}


@pytest.mark.parametrize("framework", frameworks_with("command_parser"))
def test_an_open_setting_changes_no_meaning_or_is_asked_for(framework: str) -> None:
    parser = command_parser.load(framework)
    closed, _ = read_settings(parser, GROUPS[framework])
    changed = []
    for name in parser.defaults:
        try:
            reading, _ = read_settings(parser, GROUPS[framework] | {name: "$OPEN"})
            refuse_open(reading, ["$OPEN"])
        except UserError as error:
            assert error.code in ("open-setting", "not-a-number", "not-a-word", "unknown-name", "not-a-mapping"), error
            continue
        if meanings(reading.common) != meanings(closed.common):
            changed.append(name)
    assert not changed


@pytest.mark.parametrize("framework", frameworks_with("command_parser"))
@pytest.mark.parametrize("value", ["foo", "", 3, -1, 1.5, True, [1], {"a": 1}], ids=repr)
def test_a_value_of_any_kind_is_read_or_refused(framework: str, value: Any) -> None:
    parser = command_parser.load(framework)
    for name in parser.defaults:
        with contextlib.suppress(UserError):
            read_settings(parser, GROUPS[framework] | {name: value})


@pytest.mark.parametrize("target", ["trl", "openrlhf", "run-file"])
@pytest.mark.parametrize(
    "setting",
    ["algorithm.adv_estimator=$B", "actor_rollout_ref.actor.use_kl_loss=${B%x}", "actor_rollout_ref.rollout.n=$((B+1))",
     "actor_rollout_ref.actor.loss_agg_mode=$B", "algorithm.norm_adv_by_std_in_grpo=$B"],
)  # fmt: skip
def test_what_a_branch_leaves_open_is_asked_for_by_name(setting: str, target: str) -> None:
    script = f'if [ "$X" = a ]; then B=1; else B=2; fi\n{COMMAND}{setting}'
    with pytest.raises(UserError, match="add --set B=") as error:
        printed_page(script, "verl", target)
    assert error.value.code in ("open-setting", "not-a-number")


@pytest.mark.parametrize("target", ["trl", "run-file", "verl"])
def test_a_path_stays_open_and_is_named(target: str) -> None:
    text = printed_page(COMMAND + "actor_rollout_ref.model.path=/models/$B", "verl", target)
    assert re.search(r"^# Left open by the text: \$B\. --set NAME=VALUE says one\.", text, re.MULTILINE)
    assert "/models/$B" in text
    assert "/models/m" in printed_page(COMMAND + "actor_rollout_ref.model.path=/models/$B", "verl", target, "B=m")


def test_settings_alone_are_asked_for_too() -> None:
    with refused("open-setting", setting="algorithm.adv_estimator"):
        printed_page("algorithm.adv_estimator=$B actor_rollout_ref.rollout.n=4", "verl", "trl")

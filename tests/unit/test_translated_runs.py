"""The training commands of all runs: read as what they were made of, made again, and translated."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from contracts.run_file import SCALES, Run, Stage
from frameworks import command_parser
from frameworks.adapter import frameworks_with
from frameworks.command_parser import CommandParser
from frameworks.run_settings import values
from recipes.runs import load_run, run_names
from system.errors import UserError
from tests.translated_pages import everything_printed
from translate.rendering import Rendering
from translate.settings_of_text import settings_of_text
from translate.translation import key_meanings, read_settings, translate_settings

FRAMEWORKS = frameworks_with("command_parser")
ONLY_PPO = ("optimizer.critic_learning_rate", "objective.value_clip", "objective.gamma", "objective.gae_lambda")
TRAINED = ("algorithm", "batch.", "rollout.", "optimizer.", "objective.", "lora", "hardware.")


@cache
def stages() -> list[tuple[Run, Stage]]:
    runs = [load_run(name, scale) for scale in SCALES for name in run_names(scale)]
    translatable = [run for run in runs if run.framework in FRAMEWORKS]
    return [(run, stage) for run in translatable for stage in run.stages if not in_environment(run, stage)]


def in_environment(run: Run, stage: Stage) -> bool:
    """Whether a part of the run is in environment variables: a momentum, or a sampler's own temperature."""
    sampled = stage.rollout["temperature"]
    other = run.framework == "openrlhf" and stage.objective.get("logits_temperature", sampled) != sampled
    return other or stage.objective.get("scale_rewards") == "running"


@cache
def own_commands() -> list[tuple[Run, Stage, CommandParser, dict[str, Any]]]:
    """Each run's own rendering as text, parsed again."""
    commands = []
    for run, stage in stages():
        parser = command_parser.load(run.framework)
        command = [*parser.launcher(run, stage), *parser.as_arguments(parser.stated_settings(run, stage))]
        commands.append((run, stage, parser, settings_of_text(parser, shlex.join(command), Path(), {}, None)))
    return commands


@pytest.mark.slow
def test_the_command_of_every_run_is_read_as_what_it_was_made_of() -> None:
    for run, stage, parser, own in own_commands():
        reading, _ = read_settings(parser, own)
        wanted = values(stage)
        for key, value in reading.common.items():
            if key in wanted and key != "optimizer.warmup_ratio":  # which is rounded to whole steps there
                if run.framework == "verl" and key == "optimizer.schedule":  # its `constant` has a warm-up
                    value, wanted[key] = (str(name).removesuffix("_with_warmup") for name in (value, wanted[key]))
                assert value == wanted[key], f"{run.name} ({run.scale}): {key}"
        assert {"batch.prompts_per_update", "optimizer.learning_rate", "rollout.temperature"} <= {*reading.common}
        assert reading.common["algorithm"] == run.algorithm


@pytest.mark.slow
def test_the_command_of_every_run_is_made_again_from_what_was_read() -> None:
    for run, stage, parser, own in own_commands():
        again = Rendering(parser, read_settings(parser, own)[0].common)
        assert not again.refused and not again.notes, f"{run.name} ({run.scale})"
        for name, (value, source) in parser.stated_settings(run, stage).items():
            key = source.removeprefix(f"{run.scale}.")
            on_gpus = run.scale == "full" or not key.startswith(("hardware.", "rollout.engine"))
            only_critic = key in ONLY_PPO and run.algorithm != "ppo"  # given to OpenRLHF, which does not use it
            if key.startswith(TRAINED) and on_gpus and not only_critic:
                if (run.framework, name) == ("trl", "warmup_steps"):
                    assert again.flags[name][0] == pytest.approx(value, abs=1), run.name
                else:
                    assert again.flags[name][0] == value, f"{run.name} ({run.scale}): {name}"


@pytest.mark.slow
@pytest.mark.parametrize("target", FRAMEWORKS)
def test_every_setting_of_every_run_is_said_to_become_something(target: str) -> None:
    for run, stage, parser, own in own_commands():
        if run.framework == target or run.scale == "demo":
            continue
        reading, labels = read_settings(parser, own)
        try:
            translation, _ = translate_settings(parser, command_parser.load(target), reading, labels)
        except UserError as error:  # PPO without groups, in a framework without PPO
            assert stage.batch["samples_per_prompt"] == 1 and error.code == "one-completion-per-prompt"
            continue
        printed = everything_printed(translation)
        assert not [text for texts in labels.values() for text in texts if text not in printed], run.name
        assert all(line.key in key_meanings() for line in translation.lines)

"""The parts of a difference between two frameworks, with planted effects."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from studies.lockstep import fixed_rollout_training
from studies.waterfall import study
from tests.forked_command import run_snakemake
from tests.user_errors import refused

NAMES = ["a", "b", "c"]
SIZES = {"expressions": 60, "words": 90}
SEEDS = range(6)


def stages(effects: list[float], generator: np.random.Generator, seeds: int = 6) -> list[dict[str, np.ndarray]]:
    """Accuracies after each effect: problems differ in difficulty, and trainings by chance."""
    difficulty = {name: generator.uniform(0.2, 0.6, size) for name, size in SIZES.items()}
    answers = []
    for level in np.concatenate([[0.0], np.cumsum(effects)]):
        of_seeds = generator.normal(0, 0.02, (seeds, 1))
        answers.append(
            {
                name: np.clip(values + level + of_seeds + generator.normal(0, 0.1, (seeds, len(values))), 0, 1)
                for name, values in difficulty.items()
            }
        )
    return answers


def test_planted_effects_are_given_back_and_the_parts_add_up_to_the_whole() -> None:
    generator = np.random.default_rng(0)
    effects = [0.0, -0.1, 0.05]
    waterfall = study.attribute(stages(effects, generator, 40), NAMES, range(40))
    assert [part.name for part in waterfall.parts] == NAMES
    for part, effect in zip(waterfall.parts, effects, strict=True):
        assert part.change.value == pytest.approx(effect, abs=0.02)
    assert sum(part.change.value for part in waterfall.parts) == pytest.approx(waterfall.whole.change.value, abs=1e-12)
    assert np.sum([part.by_seed for part in waterfall.parts], axis=0) == pytest.approx(
        waterfall.whole.by_seed, abs=1e-12
    )
    assert waterfall.of_seed == pytest.approx(waterfall.whole.change.value + waterfall.residual)
    assert waterfall.of_seed == pytest.approx(waterfall.whole.by_seed[0])


def test_an_exact_effect_has_an_exact_interval() -> None:
    base = {"expressions": np.tile([0.25, 0.5], (5, 1))}
    part = study.difference("a", base, {"expressions": base["expressions"] + 0.125})
    assert part.change == (0.125, 0.125, 0.125)


@pytest.mark.slow
def test_intervals_cover_a_planted_effect_at_about_their_level() -> None:
    generator = np.random.default_rng(1)
    inside = 0
    trials = 200
    for _ in range(trials):
        waterfall = study.attribute(stages([-0.07], generator), ["a"], SEEDS)
        inside += waterfall.parts[0].change.low <= -0.07 <= waterfall.parts[0].change.high
    assert 0.92 <= inside / trials <= 0.995  # 95 %, with 1.5 points of chance; a little wide by design


def test_few_seeds_are_refused() -> None:
    with refused("too-few-seeds"):
        study.attribute(stages([0.1], np.random.default_rng(0), 2), ["a"], [0, 1])


def test_missing_trainings_are_named(tmp_path: Path) -> None:
    with refused("missing-trainings"):
        study.stored(tmp_path, range(5))


def test_the_page_and_its_figure_name_every_part(tmp_path: Path) -> None:
    waterfall = study.attribute(stages([0.0, -0.1, 0.05], np.random.default_rng(0)), NAMES, SEEDS)
    text = study.page(waterfall, SEEDS)
    assert all(f"| {name} |" in text for name in [*NAMES, "all of them", "seed 0", "seed 0 beside the mean"])
    assert "Beyond chance: b" in text
    rows = study.frame(waterfall)
    assert rows["change"].iloc[:3].sum() == pytest.approx(rows["change"].iloc[3])
    assert [float(word) for word in rows["by_seed"].iloc[0].split()] == pytest.approx(waterfall.parts[0].by_seed)
    study.draw(waterfall, tmp_path)
    assert (tmp_path / "waterfall.png").stat().st_size > 1000


def test_each_stage_releases_one_thing_more_that_its_framework_can_release() -> None:
    before: tuple[str, ...] = ()
    for stage in study.REPLAYED:
        plug_in = fixed_rollout_training.load_plug_in("openrlhf", stage.released)
        assert stage.released[:-1] == before[: len(stage.released)] or not stage.released
        before = stage.released
    assert set(before) == set(plug_in.RELEASES), "the last stage is the framework's own training"


def test_a_stage_trains_on_the_recording_of_its_own_seed(tmp_path: Path) -> None:
    arguments = Namespace(
        steps=2, problems="p", model="m", work=tmp_path / "w", seed=3, output=tmp_path / "sampler" / "seed-3"
    )
    command_line = list(map(str, study.command(study.STAGES[2], arguments)))
    assert command_line[command_line.index("--replay") + 1] == str(tmp_path / "recorded" / "seed-3" / "rollouts.jsonl")
    assert command_line[command_line.index("--release") + 1 :] == ["sampler"]
    arguments.output = tmp_path / "recorded" / "seed-3"
    command_line = list(map(str, study.command(study.RECORDED, arguments)))
    assert command_line[command_line.index("--record") + 1] == str(arguments.output / "rollouts.jsonl")


def test_what_a_framework_cannot_release_is_refused() -> None:
    with refused("cannot-be-released", names=["sampler"]):
        fixed_rollout_training.load_plug_in("trl", ["sampler"])
    with refused("cannot-be-released", names=["colour"]):
        fixed_rollout_training.load_plug_in("openrlhf", ["colour"])
    with refused("order-without-sampler"):
        fixed_rollout_training.load_plug_in("openrlhf", ["order"])


@pytest.mark.slow
def test_every_training_has_a_work_folder_of_its_own() -> None:
    options = ["-n", "-p", "--forceall", "--nolock"]
    done = run_snakemake(*options, "study_waterfall", "--config", "seeds=[0,1,2,3,4]")
    done.check_returncode()
    folders = re.findall(r"studies\.waterfall\.study train .*? --work (\S+)", done.stdout + done.stderr)
    wanted = {f"work/studies/waterfall/{stage.name}/seed-{seed}" for stage in study.STAGES for seed in range(5)}
    assert len(folders) == len(wanted) and set(folders) == wanted

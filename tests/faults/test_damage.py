"""Inputs that are cut off, or have one flipped bit, at a random offset.

The same result, or one clear sentence. A flipped bit, or a cut between two lines, may also leave a whole file that
says something else, which no reader can know: an answer in JSON Lines, a setting. Then the record beside the result
must differ from the undisturbed one too (`noticed`), so that the change can be traced. What cannot be read of the
rollouts of a training is left out with a warning (`noticed`), because it must not throw the training away.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.faults import bed
from tests.faults.book import Book
from tests.workflow import miniature

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
TRIALS = int(os.environ.get("FAULT_TRIALS", "60"))
CHECKPOINT = f"{bed.RUN}/checkpoints/step-{bed.STEPS[1]}"
INPUTS = {  # kind of file: the stage that reads it, and where it is
    "problems (Parquet)": ("grade", bed.PROBLEMS),
    "samples (Parquet)": ("grade", f"{bed.RUN}/samples/step-*/*.parquet"),
    "graded samples (Parquet)": ("score", f"{bed.REGRADED}/graded/step-*/*.parquet"),
    "graded samples, for the gate (Parquet)": ("gate", f"{bed.REGRADED}/graded/step-*/*.parquet"),
    "record of samples (JSON)": ("grade", f"{bed.RUN}/samples/step-*/*.provenance.json"),
    "record of graded samples (JSON)": ("score", f"{bed.REGRADED}/graded/step-*/*.json"),
    "completions to import (JSON Lines)": ("import", "completions.jsonl"),
    "scores (Parquet)": ("report", f"{bed.RUN}/scores.parquet"),
    "training log (Parquet)": ("report", f"{bed.RUN}/training_log.parquet"),
    "overlap (CSV)": ("report", "results/demo/data/overlap/all.csv"),
    "weights (safetensors)": ("generate", f"{CHECKPOINT}/model.safetensors"),
    "config.json": ("generate", f"{CHECKPOINT}/config.json"),
    "generation_config.json": ("generate", f"{CHECKPOINT}/generation_config.json"),
    "tokenizer.json": ("generate", f"{CHECKPOINT}/tokenizer.json"),
    "tokenizer_config.json": ("generate", f"{CHECKPOINT}/tokenizer_config.json"),
    "chat template": ("generate", f"{CHECKPOINT}/chat_template.jinja"),
    "base model (safetensors)": ("train", f"{bed.RUN}/checkpoints/step-0/model.safetensors"),
    "training problems (Parquet)": ("train", "results/demo/data/train/arithmetic.parquet"),
    "native checkpoint (safetensors)": ("export", f"{bed.WORK}/stage-1-*/native/checkpoint-*/model.safetensors"),
}
UNFINISHED = {  # what a kill leaves in the work folder, and the stage that continues it
    "journal of samples (JSON Lines)": ("generate", f"{bed.WORK}/samples/step-*/*/*.jsonl"),
    "rollouts (JSON Lines)": ("train", f"{bed.WORK}/stage-1-*/rollouts/*/*.jsonl"),
    "trainer state (JSON)": ("train", f"{bed.WORK}/stage-1-*/native/checkpoint-3/trainer_state.json"),
}
SETTINGS = {
    "run file (YAML)": f"recipes/{miniature.RUN}.yaml",
    "config.yaml": "config/config.yaml",
    "task (YAML)": "tasks/arithmetic/task.yaml",
    "benchmark (YAML)": f"eval/benchmarks/{bed.BENCHMARK}.yaml",
    "protocols (YAML)": "eval/protocols.yaml",
    "prompts (YAML)": "tasks/prompts.yaml",
    "models (YAML)": "recipes/models.yaml",
}
DAMAGES = ("cut off", "flipped bit")


def damage(file: Path, how: str, draw: random.Random) -> None:
    """Cut a file or flip one of its bits, and leave its time as it was: the workflow is to see it by its content."""
    was, content = file.stat(), bytearray(file.read_bytes())
    offset = draw.randrange(len(content))
    if how == "cut off":
        del content[offset:]
    else:
        content[offset] ^= 1 << draw.randrange(8)
    file.write_bytes(content)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


KINDS = len(INPUTS) + len(UNFINISHED) + len(SETTINGS)


def params(kinds: Iterable[str], quick: Iterable[str] = ()) -> list[object]:
    """The first trials of quick kinds are part of make test, all others of make test-faults."""
    return [
        pytest.param(kind, how, trial, marks=() if kind in quick and trial == 0 else pytest.mark.faults_long)
        for kind in kinds
        for how in DAMAGES
        for trial in range(-(-TRIALS // (len(DAMAGES) * KINDS)))
    ]


def judged(test_bed: bed.Bed, project: Path, stage: str, number: int = 0) -> str:
    """How a stage's command ends on damaged input."""
    command = bed.Command(project, stage, number)
    status = command.wait()
    if status != test_bed.status[stage]:
        if bed.clear_sentence(command.output()) is None:
            raise bed.Fault(f"status {status} without a clear sentence: {command.output()[-1500:]}")
        return "one clear sentence"
    expected, actual = test_bed.expected[stage], bed.state(project, stage)
    recorded = any(actual.get(name) != expected[name] for name in expected if "provenance" in name)
    if recorded or (actual != expected and re.search("^WARNING: ", command.output(), re.MULTILINE)):
        return "noticed"
    bed.compare(expected, actual)
    return "same result"


@pytest.mark.parametrize(("kind", "how", "trial"), params(INPUTS, ("samples (Parquet)",)))
def test_a_damaged_input(
    request: pytest.FixtureRequest, book: Book, tmp_path: Path, kind: str, how: str, trial: int
) -> None:
    stage, pattern = INPUTS[kind]
    test_bed: bed.Bed = request.getfixturevalue("light" if stage in bed.LIGHT else "line")
    draw = bed.rng("damage", kind, how, trial)
    with book.trial(how, kind, trial) as outcome:
        project = test_bed.without(stage, tmp_path)
        file = draw.choice(sorted(project.glob(pattern)))
        damage(file, how, draw)
        with bed.cleared(project):
            outcome.append(judged(test_bed, project, stage))
        if how == "cut off" and outcome == ["noticed"] and file.suffix not in (".jsonl", ".csv"):
            raise bed.Fault(f"{file.name} was cut off, and used")


@pytest.mark.parametrize(("kind", "how", "trial"), params(UNFINISHED))
def test_damage_to_what_a_kill_left(line: bed.Bed, book: Book, tmp_path: Path, kind: str, how: str, trial: int) -> None:
    stage, pattern = UNFINISHED[kind]
    draw = bed.rng("unfinished", kind, how, trial)
    with book.trial(how, kind, trial) as outcome:
        project = line.without(stage, tmp_path)
        with bed.cleared(project):
            command = bed.Command(project, stage)
            there = command.wait_for(lambda: [file for file in project.glob(pattern) if file.stat().st_size > 3000])
            assert there, command.output()
            bed.kill_all(command)
            command.wait()
            damage(draw.choice(sorted(project.glob(pattern))), how, draw)
            outcome.append(judged(line, project, stage, 1))


@pytest.mark.parametrize(("kind", "how", "trial"), params(SETTINGS))
def test_a_damaged_setting(light: bed.Bed, book: Book, tmp_path: Path, kind: str, how: str, trial: int) -> None:
    """A dry run shows what follows from it; a whole file with another value is another setting."""
    draw = bed.rng("setting", kind, how, trial)
    with book.trial(how, kind, trial) as outcome:
        project = light.without("score", tmp_path)
        damage(project / SETTINGS[kind], how, draw)
        status, output = miniature.snakemake(project, "-n", "reproduce_all")
        if status and bed.clear_sentence(output) is None:
            raise bed.Fault(f"status {status} without a clear sentence: {output[-1500:]}")
        outcome.append("one clear sentence" if status else "noticed")

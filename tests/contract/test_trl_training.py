"""Real trainings through TRL on the CPU, ended by a signal between two checkpoints."""

from __future__ import annotations

import json
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from contracts import tables
from frameworks import phases
from system import json_lines
from tests import needs
from tests.contract import foreign_logs, open_sockets, phase_checks, tiny_project
from tests.waiting import WORKFLOW_LIMIT
from tests.warm_python import warm_python

STEPS, UPDATES = 6, 2
pytestmark = [pytest.mark.contract, pytest.mark.slow]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs.skip_without("trl")
    return tiny_project.make(
        tmp_path_factory.mktemp("trl"),
        "trl",
        "grpo",
        checkpoints=[STEPS],
        optimizer={"learning_rate": 1e-3},
        objective={"kl_coefficient": 0.0},
    )


def train(project: Path) -> subprocess.Popen[str]:
    return tiny_project.train(project, framework="trl")


@pytest.fixture(scope="module")
def watch(project: Path) -> open_sockets.Watch:
    return open_sockets.Watch(project)


@pytest.fixture(scope="module")
def ended(project: Path, watch: open_sockets.Watch) -> list[Path]:
    """Ends the training with SIGTERM after its second step; returns its checkpoints."""
    waiting = tiny_project.after_steps(project / tiny_project.WAIT_FILE, 2)
    training = train(project)
    log = project / tiny_project.WORK / "train.log"
    while (log.read_text() if log.is_file() else "").count("'reward':") < 2 or not watch.saw("trl.scripts.grpo"):
        assert training.poll() is None, training.communicate()[0]
        watch.look()
        time.sleep(0.02)
    training.send_signal(signal.SIGTERM)
    waiting.unlink()
    output, _ = training.communicate(timeout=WORKFLOW_LIMIT)
    assert training.returncode == 128 + signal.SIGTERM, output
    return sorted((project / tiny_project.WORK / "native").glob("checkpoint-*"))


def test_it_listens_on_nothing(watch: open_sockets.Watch, ended: list[Path]) -> None:
    """With one process; test_open_sockets.py starts several."""
    assert watch.saw("trl.scripts.grpo") and not watch.sockets


def test_it_resumes_from_the_step_at_which_it_was_ended(project: Path, ended: list[Path]) -> None:
    assert len(ended) == 1  # none was due before the last step
    step, odd = divmod(int(ended[0].name.rpartition("-")[2]), UPDATES)
    assert 2 <= step < STEPS and not odd  # a step makes two updates
    training = train(project)
    output, _ = training.communicate(timeout=WORKFLOW_LIMIT)
    assert training.returncode == 0 and f"resuming from step {step}" in output, output
    rows = tables.read(project / "log.parquet", tables.TRAINING_LOG).to_pylist()
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    rollouts = tables.read(project / "rollouts.parquet", tables.ROLLOUT).to_pylist()
    assert tiny_project.text_after_stops(rollouts) == []
    for row in rows:
        of_step = [rollout["reward"] for rollout in rollouts if rollout["step"] == row["step"]]
        assert len(of_step) == 16 and sum(of_step) / 16 == pytest.approx(row["reward_mean"], abs=1e-6)
        assert row["accuracy"] == 0.0 and row["wrong_answer_rate"] == 1.0  # the reward says so of every completion
        assert row["reward_std"] == pytest.approx(statistics.stdev(of_step))

    phase_checks.check(project / tiny_project.WORK, rows, ("sampling", "reward", "advantages", "update"))
    noted = json_lines.read(max((project / tiny_project.WORK / phases.FOLDER).iterdir()))
    assert [note["step"] for note in noted].count(STEPS) == UPDATES  # a step ends with its last update

    native = project / tiny_project.WORK / "native"
    state = native / f"checkpoint-{STEPS * UPDATES}" / "trainer_state.json"
    foreign_logs.check("trl", [state], rows, ("reward_mean", "reward_std", "response_length_mean"))

    export = tiny_project.command(project, "export", "--step", str(STEPS), "--output", "exported", framework="trl")
    subprocess.run(export, cwd=project, check=True)
    base, exported = ((project / name / "generation_config.json").read_text() for name in ("model", "exported"))
    assert exported == base  # an evaluation decides itself where completions end


def test_checkpoints_that_training_does_not_resume_from(project: Path, ended: list[Path]) -> None:
    """Of half a step, without a number, not written to its end, spoiled by a power cut or a flipped bit, or saved in
    between earlier."""
    native = project / "other" / "native"
    for step, grad_norm in (
        (2, 1.0),
        (4, 1.0),
        (5, 1.0),
        (6, float("nan")),
        *((step, 1.0) for step in range(8, 18, 2)),
    ):
        folder = native / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        shutil.copy(project / "model" / "model.safetensors", folder)
        if step != 8:
            state = {"log_history": [{"grad_norm": grad_norm}], "global_step": step if step != 14 else 15}
            control = {"TrainerControl" if step != 16 else "TrainerContrgl": {}}
            (folder / "trainer_state.json").write_text(json.dumps({**state, "stateful_callbacks": control}))
    (native / "checkpoint-10" / "model.safetensors").write_bytes(b"")  # as a power cut leaves it
    (native / "checkpoint-12" / "optimizer.pt").write_bytes(b"")
    script = (
        "from pathlib import Path; from recipes.runs import load_run; from frameworks import adapter\n"
        f"run = load_run('{tiny_project.RUN}', 'demo')\n"
        "paths = adapter.Paths(Path(), Path(), Path('other'))\n"
        "print(adapter.load('trl').newest_checkpoint(run, run.stages[0], paths))"
    )
    command = [warm_python("trl"), "-c", script]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"  # a step makes two updates
    assert [folder.name for folder in native.iterdir()] == ["checkpoint-4"]

"""A short PPO training through the real verl, its weights in step with its engine's.

The one that is killed and resumed, and the one whose reward fails, are for `make test-long`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from contracts import tables
from envs.build import python
from system import json_lines
from tests.contract import foreign_logs, open_sockets, phase_checks, tiny_project
from tests.contract.tiny_project import FAIL_FILE, SAVED, STEPS, WAIT_FILE, WORK
from tests.waiting import WORKFLOW_LIMIT, wait_until
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]


class Trained(NamedTuple):
    """A copy of the project with its training, what the last command printed, and what the watch saw of the first."""

    folder: Path
    output: str
    watch: open_sockets.Watch


def train(folder: Path, killed: bool) -> Trained:
    """Watch the training until its third step is logged; then it ends, or is killed, and is started once more."""
    tiny_project.make(folder)
    watch = open_sockets.Watch(folder, python("verl"))
    waiting = tiny_project.after_steps(folder / WAIT_FILE, 3)
    training = tiny_project.train(folder)
    log = folder / WORK / "train.log"
    while " step:3 - " not in (log.read_text() if log.is_file() else ""):
        assert training.poll() is None, training.communicate()[0]
        watch.look()
        time.sleep(0.1)
    if killed:
        training.kill()
        training.communicate()
    waiting.unlink()
    if killed:
        wait_until(lambda: not tiny_project.processes(folder))
        training = tiny_project.train(folder)
    output, _ = training.communicate(timeout=WORKFLOW_LIMIT)
    assert training.returncode == 0, output
    return Trained(folder, output, watch)


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trained]:
    """The two stories, each of which happens once."""
    return cache(lambda story: train(tmp_path_factory.mktemp(story), killed=story == "killed"))


@pytest.fixture(params=["undisturbed", pytest.param("killed", marks=pytest.mark.long)])
def trained(request: pytest.FixtureRequest, trainings: Callable[[str], Trained]) -> Trained:
    return trainings(request.param)


@pytest.fixture
def project(trained: Trained) -> Path:
    return trained.folder


def logged(project: Path) -> dict[int, dict[str, float]]:
    steps = {}
    for file in sorted((project / WORK / "native" / "log").iterdir()):
        steps.update({entry["step"]: entry["data"] for entry in json_lines.read(file)})
    return steps


def test_it_listens_on_loopback_only_and_ray_asks_for_its_token(trained: Trained) -> None:
    trained.watch.check_ray()


def test_no_process_outlives_a_training(project: Path) -> None:
    assert tiny_project.processes(project) == []


@pytest.mark.long
def test_it_resumes_from_its_newest_complete_checkpoint(trainings: Callable[[str], Trained]) -> None:
    killed = trainings("killed")
    assert "resuming from step 2" in killed.output
    log = killed.folder / WORK / "native" / "log"
    assert {file.name for file in log.iterdir()} == {"from-000000.jsonl", "from-000002.jsonl"}


def test_the_engine_has_the_trainers_weights_after_every_update(project: Path) -> None:
    """Also where it has kept the keys and values of a prompt's beginning, which all have in common."""
    steps = logged(project)
    assert sorted(steps) == list(range(1, STEPS + 1))
    for step, metrics in steps.items():
        # Probabilities of the sampled tokens, by vLLM and by the trainer: with weights of a step before they differ by
        # 0.05 and more.
        assert metrics["training/rollout_probs_diff_max"] < 2e-4, step
        assert metrics["critic/grad_norm"] > 0
        assert metrics.get("actor/grad_norm", 0) > 0 or step == 1  # the critic's warm-up


def test_the_training_log_and_the_rollouts(project: Path) -> None:
    log = tables.read(project / "log.parquet", tables.TRAINING_LOG).to_pylist()
    assert [row["step"] for row in log] == list(range(1, STEPS + 1))
    for row in log:
        assert 0 <= row["reward_mean"] <= 1 and row["wrong_answer_rate"] == 1.0 and row["accuracy"] == 0.0
        assert row["response_length_max"] <= 24 and 0 <= row["truncated_rate"] <= 1 and row["kl"] is not None
    phase_checks.check(
        project / WORK, log, ("sampling and reward", "log-probabilities", "values", "advantages", "update")
    )
    rollouts = tables.read(project / "rollouts.parquet", tables.ROLLOUT).to_pylist()
    assert len(rollouts) == STEPS * 16
    assert tiny_project.text_after_stops(rollouts) == []
    problems = {row["problem_id"] for row in pq.read_table(project / "problems.parquet").to_pylist()}
    for row in rollouts:
        assert row["problem_id"] in problems and row["verdict"] == "wrong" and row["prompt"].endswith("assistant\n")
    mean = sum(row["reward"] for row in rollouts[:16]) / 16
    assert mean == pytest.approx(log[0]["reward_mean"], abs=1e-6)


@pytest.mark.parametrize("files", [f"{WORK}/native/log/*.jsonl", f"{WORK}/train.log"])
def test_its_files_are_imported_like_those_of_a_training_without_us(project: Path, files: str) -> None:
    log = tables.read(project / "log.parquet", tables.TRAINING_LOG).to_pylist()
    columns = ("reward_mean", "response_length_mean", "truncated_rate", "kl")
    foreign_logs.check("verl", sorted(project.glob(files)), log, columns)


COMPARE = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
base, trained = (AutoModelForCausalLM.from_pretrained(folder, dtype=None) for folder in sys.argv[1:3])
templates = [AutoTokenizer.from_pretrained(folder).chat_template for folder in sys.argv[1:3]]
assert templates[0] == templates[1]
native = torch.load(sys.argv[3], weights_only=False)["model.norm.weight"].full_tensor()
exported = trained.state_dict()["model.norm.weight"]
assert exported.dtype == torch.float32 and torch.equal(exported, native)
print(float((exported - base.state_dict()["model.norm.weight"]).abs().max()))
"""


def test_the_exported_checkpoint_has_the_trained_weights_and_the_base_models_tokenizer(
    project: Path,
) -> None:
    subprocess.run(
        tiny_project.command(project, "export", "--step", str(STEPS), "--output", "exported"), cwd=project, check=True
    )
    native = f"{WORK}/native/checkpoints/global_step_{STEPS}/actor/model_world_size_1_rank_0.pt"
    done = subprocess.run(
        [warm_python("verl"), "-c", COMPARE, "model", "exported", native], cwd=project, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) > 0


SAME = """
import sys, torch
first, second = (torch.load(file, weights_only=False) for file in sys.argv[1:3])
assert first.keys() == second.keys()
print([name for name in first if not torch.equal(first[name].full_tensor(), second[name].full_tensor())])
"""


@pytest.mark.long
def test_a_reward_that_fails_ends_the_training(trainings: Callable[[str], Trained]) -> None:
    folder = trainings("undisturbed").folder
    failing = tiny_project.after_steps(folder / FAIL_FILE, 1)
    training = tiny_project.train(folder, work="again")
    printed, _ = training.communicate(timeout=WORKFLOW_LIMIT)
    failing.unlink()
    assert training.returncode == 1 and "resuming" not in printed
    assert "a reward function failed: RuntimeError: the reward is broken" in printed.splitlines()[-1]
    assert tiny_project.processes(folder) == []


@pytest.mark.long
def test_the_same_seed_gives_the_same_weights_whatever_was_killed(trainings: Callable[[str], Trained]) -> None:
    """Those of the step that the resumed training made first."""
    for role in ("actor", "critic"):
        file = f"{WORK}/native/checkpoints/global_step_{SAVED[1]}/{role}/model_world_size_1_rank_0.pt"
        files = [trainings(story).folder / file for story in ("undisturbed", "killed")]
        command = [warm_python("verl"), "-c", SAME, *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout.split("\n")[-2:] == ["[]", ""], (role, done.stdout, done.stderr)

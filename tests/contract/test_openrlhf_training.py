"""A real training through OpenRLHF on the CPU, of three steps. Each start takes half a minute of a core: the one that
is killed and started again, with the same weights, and the one whose reward fails are for `make test-long`."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import yaml

from contracts import tables
from contracts.run_file import RECIPES, ROOT, read_yaml
from envs.build import python
from tasks.arithmetic import problems as arithmetic
from tests import needs
from tests.contract import foreign_logs, open_sockets, phase_checks, tiny_model, tiny_project
from tests.waiting import WORKFLOW_LIMIT, wait_until
from tests.warm_python import warm_python

PYTHON = python("openrlhf")
STEPS, PROMPTS, SAMPLES = 3, 4, 4
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("openrlhf"),
]

# Counts lower-case letters, so that a model with random weights has something to learn. It waits or fails after as many
# steps of its process as the test says: on a busy machine a step may end before the test has looked.
REWARD = """
import itertools, os, pathlib, time
from recipes.rewards import Reward
calls = itertools.count(1)
def letters(completions, problems):
    steps_before = (next(calls) - 1) // int(os.environ["CALLS_OF_A_STEP"])
    def due(variable):
        file = pathlib.Path(os.environ[variable])
        return file.exists() and steps_before >= int(file.read_text())
    if due("FAIL_FILE"):
        raise ValueError("the judge is out of order")
    while due("WAIT_FILE"):
        time.sleep(0.05)
    given = [sum(map(str.islower, text)) / 24 for text in completions]
    return [Reward(value, "correct" if value > 0.3 else "wrong") for value in given]
"""


class OpenRLHFProject:
    """The files of the story."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder, folder / "work"
        self.fail, self.wait = folder / "fail", folder / "wait"
        self.run_file, self.model = folder / "short.yaml", folder / "model"
        self.problems = folder / "problems.parquet"
        tiny_model.copy_model(self.model, environment="openrlhf")
        (folder / "test_reward.py").write_text(REWARD)
        rows = [
            {
                "problem_id": problem.problem_id, "task": "arithmetic", "answer": problem.answer, "meta": "{}",
                "messages": [{"role": "user", "content": problem.question}],
            }
            for problem in arithmetic.generate(40, "train", 0, kinds=["expressions"])
        ]  # fmt: skip
        tables.write(pa.Table.from_pylist(rows, schema=tables.PROBLEM), tables.PROBLEM, self.problems)
        content = read_yaml(RECIPES / "simplerl" / "qwen2.5-math-7b.yaml")
        content["rewards"] = [{"function": "test_reward.letters", "weight": 1.0}]
        content["demo"] |= {
            "prompt": "plain",
            "steps": STEPS,
            "checkpoints": [1, 2, 3],
            "batch": {
                "prompts_per_step": PROMPTS,
                "prompts_per_update": 2,
                "samples_per_prompt": SAMPLES,
                "samples_per_device": 8,
            },
        }
        content["demo"]["rollout"] |= {"max_response_tokens": 24, "stop": tiny_project.STOPS}
        content["demo"]["optimizer"] |= {"learning_rate": 3.0e-3, "warmup_ratio": 0.0}
        # has OpenRLHF ask vLLM for its log-probabilities, and compare them with the trainer's (vllm_kl)
        content["demo"]["objective"] |= {"sampler_correction": "token"}
        content["demo"]["native"] = {"algo.advantage.is_correction_mode": "clip"}
        self.run_file.write_text(yaml.safe_dump(content))

    def start(self) -> subprocess.Popen[str]:
        script = ROOT / "tests/contract/openrlhf_project.py"
        command = [PYTHON, script, self.run_file, self.problems, self.model, self.work]
        environment = {
            **os.environ, "PYTHONPATH": f"{ROOT}:{self.folder}", "FAIL_FILE": str(self.fail),
            "WAIT_FILE": str(self.wait), "CALLS_OF_A_STEP": str(PROMPTS * SAMPLES), "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self) -> tuple[int, str, str]:
        process = self.start()
        try:
            output, errors = process.communicate(timeout=WORKFLOW_LIMIT)
        finally:
            process.kill()
        return process.returncode, output, errors

    def left_behind(self) -> list[str]:
        """Processes that were started for this folder and still run."""
        mark, processes = str(self.folder).encode(), []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes() and (entry / "cmdline").read_bytes():
                    processes.append(f"{entry.name} {(entry / 'cmdline').read_bytes()[:60]!r}")
            except OSError:
                continue
        return processes


class Trained(NamedTuple):
    """What the last command printed, as text and the results that it ends with, and what the watch saw of the first."""

    project: OpenRLHFProject
    output: str
    results: dict[str, Any]
    watch: open_sockets.Watch


def train(project: OpenRLHFProject) -> Trained:
    """Watch the training until its second step is saved, and let it end."""
    watch = open_sockets.Watch(project.work, PYTHON)
    process = _saved_second_step(project, watch)
    project.wait.unlink()
    return _ended(project, process, watch)


def train_killed(project: OpenRLHFProject) -> Trained:
    """Kill it in its third step; what it wrote last of its second step's state is deleted, as if it had been killed
    before. The same command then trains to the end."""
    watch = open_sockets.Watch(project.work, PYTHON)
    process = _saved_second_step(project, watch)
    process.send_signal(signal.SIGKILL)
    output, _ = process.communicate()
    assert "resuming" not in output
    project.wait.unlink()
    _states(project)[0].unlink()
    return _ended(project, project.start(), watch)


def _states(project: OpenRLHFProject) -> list[Path]:
    checkpoints = project.work / "native" / "checkpoints"
    return [checkpoints / name / "global_step2" / "metric.json" for name in ("_actor", "_critic")]


def _saved_second_step(project: OpenRLHFProject, watch: open_sockets.Watch) -> subprocess.Popen[str]:
    project.wait.write_text("2")
    process = project.start()

    def saved() -> bool:
        assert process.poll() is None, process.communicate()
        watch.look()
        return len(watch.calls) >= 2 and all(state.is_file() for state in _states(project))

    wait_until(saved)
    return process


def _ended(project: OpenRLHFProject, process: subprocess.Popen[str], watch: open_sockets.Watch) -> Trained:
    output, errors = process.communicate(timeout=WORKFLOW_LIMIT)
    assert process.returncode == 0, errors
    return Trained(project, output, json.loads(output.strip().split("\n")[-1]), watch)


def weights_of_step_two(project: OpenRLHFProject) -> str:
    file = project.work / "native" / "checkpoints" / "global_step2_hf" / "model.safetensors"
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trained]:
    """The two stories, each of which happens once."""
    stories = {"undisturbed": train, "killed": train_killed}
    return cache(lambda story: stories[story](OpenRLHFProject(tmp_path_factory.mktemp(story))))


@pytest.fixture(params=["undisturbed", pytest.param("killed", marks=pytest.mark.long)])
def trained(request: pytest.FixtureRequest, trainings: Callable[[str], Trained]) -> Trained:
    return trainings(request.param)


@pytest.fixture
def project(trained: Trained) -> OpenRLHFProject:
    return trained.project


@pytest.fixture
def finished(trained: Trained) -> dict[str, Any]:
    return {"output": trained.output, **trained.results}


def test_no_process_outlives_a_training(project: OpenRLHFProject) -> None:
    assert not project.left_behind()


@pytest.mark.long
def test_a_killed_training_resumes_with_the_same_weights(trainings: Callable[[str], Trained]) -> None:
    """Those of the second step, which two trainings made: the one undisturbed, the other resumed."""
    undisturbed, killed = trainings("undisturbed"), trainings("killed")
    assert "resuming" not in undisturbed.output and "resuming from step 1" in killed.output
    assert weights_of_step_two(undisturbed.project) == weights_of_step_two(killed.project)


@pytest.mark.long
def test_a_reward_that_raises_fails_the_job_and_leaves_nothing_running(tmp_path: Path) -> None:
    project = OpenRLHFProject(tmp_path)
    project.fail.write_text("1")
    status, _, errors = project.finish()
    assert status == 1 and "ValueError: the judge is out of order" in errors.splitlines()[-1]
    assert not project.left_behind()


def test_it_listens_on_loopback_only_and_ray_asks_for_its_token(trained: Trained) -> None:
    trained.watch.check_ray()
    assert 8265 not in {port for _, port in trained.watch.sockets}, "Ray's dashboard"


def test_the_log_has_every_step_once(project: OpenRLHFProject, finished: dict[str, Any]) -> None:
    log = finished["log"]
    assert [row["step"] for row in log] == [1, 2, 3]
    for row in log:
        assert set(row) >= set(tables.TRAINING_LOG.names)
        assert 0 <= row["reward_mean"] <= 1 and row["accuracy"] + row["wrong_answer_rate"] == pytest.approx(1)
        assert 0 < row["response_length_mean"] <= 24 and 0 <= row["truncated_rate"] <= 1
        assert row["grad_norm"] > 0 and row["learning_rate"] == pytest.approx(3e-3) and row["entropy"] > 0
        assert 0 <= row["zero_signal_rate"] <= 1 and row["tokens_per_second"] > 0
    models = "log-probabilities, reference and values"
    phase_checks.check(project.work, log, ("sampling and reward", models, "update", "weight transfer"))
    assert {phase["name"]: phase["seconds"] for phase in log[2]["phases"]}["checkpoint"] > 0, "of the second step"
    assert [row["wall_time"] for row in log] == sorted(row["wall_time"] for row in log)
    assert log[0]["kl"] == pytest.approx(0, abs=1e-6) and log[2]["kl"] > 0.01


def test_its_events_are_imported_like_those_of_a_training_without_us(
    project: OpenRLHFProject, finished: dict[str, Any]
) -> None:
    files = sorted((project.work / "native" / "log").rglob("events.*"))
    foreign_logs.check("openrlhf", files, finished["log"], (*foreign_logs.EXACT, "reward_std", "kl", "entropy"))


def test_vllm_samples_from_the_weights_that_were_trained(finished: dict[str, Any]) -> None:
    """vllm_kl: mean of log p(trainer) - log p(vLLM) over the sampled tokens; kl: of the policy and the base model."""
    for step in ("2", "3"):
        values = finished["logged"][step]
        assert values["kl"] > 0.01, "the policy has hardly moved: stale weights would not show"
        assert abs(values["vllm_kl"]) < values["kl"] / 5


def test_rollouts_are_those_of_the_steps_that_count(finished: dict[str, Any]) -> None:
    rows = finished["rollouts"]
    assert tiny_project.text_after_stops(rows) == []
    for step in (1, 2, 3):
        of_step = [row for row in rows if row["step"] == step]
        assert len(of_step) == PROMPTS * SAMPLES
        assert len({row["problem_id"] for row in of_step}) == PROMPTS
        mean = sum(row["reward"] for row in of_step) / len(of_step)
        assert mean == pytest.approx(finished["log"][step - 1]["reward_mean"], abs=1e-6)
        for row in of_step:
            assert row["prompt"].endswith("<|im_start|>assistant\n") and "<|im_end|>" not in row["completion"]
            assert row["reward"] == pytest.approx(sum(map(str.islower, row["completion"])) / 24)


def test_a_checkpoint_loads_with_its_tokenizer(project: OpenRLHFProject, finished: dict[str, Any]) -> None:
    script = (
        "import sys; from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        "base, trained = (AutoModelForCausalLM.from_pretrained(folder) for folder in sys.argv[1:])\n"
        "tokenizer = AutoTokenizer.from_pretrained(sys.argv[2])\n"
        "ids = tokenizer('hello', return_tensors='pt')['input_ids']\n"
        "assert trained(ids).logits.isfinite().all()\n"
        "moved = (base.model.layers[0].mlp.up_proj.weight - trained.model.layers[0].mlp.up_proj.weight).abs().max()\n"
        "assert moved > 1e-3, moved\n"
    )
    command = [warm_python("openrlhf"), "-c", script, project.model, project.work / "export"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=False)
    assert done.returncode == 0, done.stderr


def test_a_loss_that_is_not_a_number_is_an_error_whatever_the_exit_status(
    project: OpenRLHFProject, finished: dict[str, Any]
) -> None:
    printed = next(line for line in (project.work / "train.log").read_text().split("\n") if "Global step 3" in line)
    script = (
        "import sys; from pathlib import Path\n"
        "from contracts.run_file import parse_run, read_yaml; from frameworks import adapter, stage_training_log\n"
        "from system.errors import UserError\n"
        "file, work, printed = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]\n"
        "run, openrlhf = parse_run(read_yaml(file), 'test/short', file, 'demo'), adapter.load('openrlhf')\n"
        "stage, paths = run.stages[0], adapter.Paths(Path(), Path(), work)\n"
        "assert openrlhf.columns_in_line(stage, printed)['critic_loss'] >= 0\n"
        "broken = printed.replace(\"'critic_loss': \", \"'critic_loss': nan, 'was': \")\n"
        "columns = openrlhf.columns_in_line(stage, broken)\n"
        "assert columns['critic_loss'] != columns['critic_loss']\n"
        "with (work / 'train.log').open('a') as log: log.write(broken + '\\n')\n"
        "try: stage_training_log.read(openrlhf, run, stage, paths, 'test/short/seed-0')\n"
        "except UserError as error: print(error.code, error.facts['metrics'], error.facts['step'])\n"
    )
    command = [warm_python("openrlhf"), "-c", script, project.run_file, project.work, printed]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "metric-not-a-number ['critic_loss'] 3\n", done.stderr

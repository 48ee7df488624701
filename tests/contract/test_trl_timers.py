"""What TRL's timers make of a step, by a clock that is set: every second has one phase."""

from __future__ import annotations

import json
import subprocess

import pytest

from contracts.run_file import ROOT
from tests import needs
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]
SCRIPT = """
import json, time
from transformers.integrations import integration_utils
from trl.extras import profiling
from frameworks.trl import step_timers

now, written = 0.0, []
step_timers.time.perf_counter = lambda: now
integration_utils.TensorBoardCallback.on_log = lambda self, *_, logs, **__: written.append(logs)
callback = step_timers.TimedLog()


def spend(seconds):
    global now
    now += seconds


def inside(name, *parts):
    with profiling.ProfilingContext(name, [], True, None):
        for part in parts:
            part() if callable(part) else spend(part)


def update(*parts, **logs):
    callback.on_step_begin(None, None, None)
    for part in parts:
        part() if callable(part) else spend(part)
    callback.on_log(None, None, None, logs=logs)


def prepare(*parts):
    return lambda: inside("GRPOTrainer._prepare_inputs", *parts)


weights = lambda: inside("GRPOTrainer.sync_weights", 2)
generate = lambda: inside("GRPOTrainer.vLLM.generate", 16)
sample = lambda: inside("GRPOTrainer._generate", weights, 1, generate, 1)
scores = lambda: inside("GRPOTrainer._get_per_token_logps_and_entropies", 8)
reward = lambda: inside("GRPOTrainer._calculate_rewards", 1, lambda: inside("GRPOTrainer.correct", 3))
loss = lambda: inside("GRPOTrainer.compute_loss", 2, scores)

update(prepare(1, sample, scores, reward), loss, 100, step_time=20.0, reward=0.5)
spend(5)
callback.on_save(None, None, None)
spend(1000)  # between steps
update(prepare(), loss, 50, step_time=30.0)
update(prepare(), 50, loss=0.1)  # a log without a step
print(json.dumps([{name: value for name, value in logs.items() if name.startswith("timing")} for logs in written]))
"""


def test_every_second_of_an_update_has_a_phase() -> None:
    needs.skip_without("trl")
    done = subprocess.run([warm_python("trl"), "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True)
    first, second, neither = json.loads(done.stdout)
    assert {name.removeprefix("timing/"): value for name, value in first.items() if value} == {
        "weight_transfer": 2, "sampling": 18, "log_probabilities": 8, "reward": 4, "advantages": 1, "update": 110,
    }  # fmt: skip
    assert {name.removeprefix("timing/"): value for name, value in second.items() if value} == {
        "update": 60, "checkpoint": 5,
    }  # fmt: skip
    assert neither == {}

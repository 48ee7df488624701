"""Launching a trainer: here small real processes that behave as trainers do when something goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contracts.run_file import ROOT
from frameworks import adapter, rollout_log, trainer_process, training_progress
from frameworks.adapter import Command
from frameworks.reward_hook import FAILURE
from frameworks.train_stage import check_log, discard_if_changed
from frameworks.trainer_process import Monitor
from recipes.runs import load_run
from tests import needs
from tests.user_errors import refused
from tests.waiting import LIMIT, wait_until

pytestmark = pytest.mark.slow
STAGE = load_run("openr1/qwen2.5-math-7b", "demo").stages[0]


def trainer(script: str) -> Command:
    return Command([sys.executable, "-c", script])


def run(command: Command, log: Path, steps: int, framework: str = "trl", **settings: Any) -> None:
    parse_line = partial(adapter.load(framework).columns_in_line, STAGE)
    trainer_process.run(command, log, Monitor("r/x", steps, parse_line, **settings))


def test_progress_is_one_line_a_step_and_the_output_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "print({'loss': '0.1', 'reward': '0.5', 'completions/mean_length': '31'}); print('saved')"
    run(trainer(script), tmp_path / "train.log", 1)
    assert "r/x: step 1/1, reward 0.5, length 31" in capsys.readouterr().out
    assert "saved" in (tmp_path / "train.log").read_text()


COLLAPSING = """
import time
for step in range(30):
    cut = str(float(step > 15))
    print({'reward': '0.5', 'completions/mean_length': '31', 'completions/clipped_ratio': cut}, flush=True)
time.sleep(600 * STOPPED)
"""


def test_a_collapse_is_warned_of_as_it_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(trainer(COLLAPSING.replace("STOPPED", "0")), tmp_path / "l", 30)
    warnings = [line for line in capsys.readouterr().out.splitlines() if "WARNING" in line]
    assert warnings == [
        "WARNING: r/x: length at the cap at step 19: 60% of the completions are truncated at the limit, after 0% at "
        "best; the mean response has 31 tokens"
    ]


def test_a_collapse_ends_the_run_where_that_is_asked_for(tmp_path: Path) -> None:
    command = trainer(COLLAPSING.replace("STOPPED", "1"))
    with pytest.raises(
        trainer_process.Collapsed, match=r"is collapsing .length at the cap at step 19: .* and was ended"
    ) as end:
        run(command, tmp_path / "l", 30, stop_on_collapse=True)
    assert end.value.command == command and 19 <= end.value.step <= 30


@pytest.mark.parametrize(
    ("key", "value", "column"),
    [("loss", "nan", "loss"), ("reward", "nan", "reward_mean"), ("reward", None, "reward_mean")],
)
def test_a_loss_or_reward_that_is_not_a_number_ends_the_run(tmp_path: Path, key: str, value: Any, column: str) -> None:
    values = {"loss": "0.1", "reward": "0.5", key: value}
    script = f"import time; print({values!r}, flush=True); time.sleep(600)"
    with refused("metric-not-a-number", metrics=[column], step=1):
        run(trainer(script), tmp_path / "train.log", 5)  # not after the trainer's 600 seconds


def test_a_trainer_that_would_go_on_is_ended_when_what_is_wanted_is_written(tmp_path: Path) -> None:
    line = "print({'reward': '0.5'}, flush=True)"
    script = f"import time; from pathlib import Path; {line}; {line}; Path('{tmp_path}/saved').touch(); time.sleep(600)"
    seen: list[int] = []
    command = replace(trainer(script), finished=(tmp_path / "saved").exists)
    run(command, tmp_path / "l", 1, on_step=lambda step, _: seen.append(step))
    assert seen == [1]  # the second step is not of the stage
    trainer_process.run_unwatched(command, tmp_path / "bare")  # not its 600 seconds


def test_another_status_than_zero_is_an_error_with_the_last_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with refused("training-failed", status=3):
        run(trainer("print('CUDA out of memory'); raise SystemExit(3)"), tmp_path / "l", 1)
    assert "CUDA out of memory" in capsys.readouterr().err


@pytest.mark.parametrize("error", ["OSError: [Errno 28] No space", "SafetensorError: I/O error: full (os error 122)"])
def test_a_full_disk_is_named_in_place_of_the_trainers_last_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: str
) -> None:
    with refused("disk-full"):
        run(trainer(f"print({error!r}); raise SystemExit(1)"), tmp_path / "l", 1)
    assert error not in capsys.readouterr().err and error in (tmp_path / "l").read_text()


def test_a_trainer_that_says_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_progress, "QUIET_SECONDS", 1.0)
    monkeypatch.setattr(trainer_process, "WATCH_SECONDS", 0.2)
    with refused("training-hung", step=0):
        run(trainer("import time; time.sleep(600)"), tmp_path / "l", 1)


def test_a_trainer_does_not_wait_for_a_server_that_has_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_process, "WATCH_SECONDS", 0.2)
    server = Command([sys.executable, "-c", "raise SystemExit(7)"])
    waiting = Command([sys.executable, "-c", "import time; time.sleep(600)"], servers=[server])
    with refused("server-lost", status=7):
        run(waiting, tmp_path / "l", 1)


def test_a_servers_life_ends_with_the_trainer(tmp_path: Path) -> None:
    server = Command([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"])
    command = Command([sys.executable, "-c", "import time; time.sleep(1)"], servers=[server])
    run(command, tmp_path / "l", 1)
    pid = int(next(line for line in (tmp_path / "l").read_text().split("\n") if line.startswith("[server]")).split()[1])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("blocked", [set(), {signal.SIGTERM.value}], ids=["", "not woken"])
def test_sigterm_reaches_the_trainer_and_its_children(tmp_path: Path, blocked: set[int]) -> None:
    """Also where the signal does not wake the main thread, as just before it waits for a line."""
    script = (
        "import signal, sys; from pathlib import Path; from frameworks import trainer_process;"
        "from frameworks.adapter import Command;"
        "inner = 'import os, time; print(os.getpid(), flush=True); time.sleep(600)';"
        "monitor = trainer_process.Monitor('r', 1, lambda _: None);"
        f"monitor.read = lambda *_: signal.pthread_sigmask(signal.SIG_BLOCK, {blocked});"
        f"trainer_process.run(Command([sys.executable, '-c', inner]), Path({str(tmp_path / 'l')!r}), monitor)"
    )
    outer = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    lines = wait_until(lambda: [x for x in _read(tmp_path / "l").splitlines() if x.isdigit()])
    outer.send_signal(signal.SIGTERM)
    assert outer.wait(LIMIT) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(lines[0]), 0)


def _read(file: Path) -> str:
    return file.read_text() if file.is_file() else ""


def test_a_training_without_any_signal_is_an_error_and_a_weak_one_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from recipes.runs import load_run

    run = load_run("openr1/qwen2.5-math-7b", "demo")

    def rows(zero_signal: list[float | None]) -> list[dict[str, float | None]]:
        return [{"step": i, "zero_signal_rate": rate, "truncated_rate": 0.9} for i, rate in enumerate(zero_signal, 1)]

    check_log(rows([1.0, 1.0, 0.5, 1.0]), run)
    said = capsys.readouterr().out
    assert "no group had a signal in 3 of 4 steps" in said and "90% of the completions were cut" in said
    with refused("no-learning-signal", steps=4):
        check_log(rows([1.0] * 4), run)
    check_log(rows([None] * 4), run)  # what is unknown is no failure
    # A sweep has settings that teach nothing.
    check_log(rows([1.0] * 4), load_run("crosscheck/reward-accuracy@9", "demo"))
    assert "no group had a signal in 4 of 4 steps" in capsys.readouterr().out


def test_training_resumes_only_if_its_inputs_are_the_same(tmp_path: Path) -> None:
    def checkpoint() -> Path:
        (tmp_path / "native" / "checkpoint-20").mkdir(parents=True, exist_ok=True)
        return tmp_path / "native" / "checkpoint-20"

    discard_if_changed(tmp_path, {"problems_sha256": "a", "model_sha256": "b"})
    kept = checkpoint()
    discard_if_changed(tmp_path, {"problems_sha256": "a", "model_sha256": "b"})
    assert kept.is_dir()
    discard_if_changed(tmp_path, {"problems_sha256": "a", "model_sha256": "c"})
    assert not kept.exists()


DETACHED = (
    "import subprocess, sys, time; child = subprocess.Popen(['sleep', '600'], start_new_session=True);"
    "print(child.pid, flush=True);"
)


@needs.linux
def test_what_a_trainer_has_detached_ends_with_it(tmp_path: Path) -> None:
    run(trainer(DETACHED), tmp_path / "l", 1)
    wait_until(lambda: not Path("/proc", _read(tmp_path / "l").splitlines()[-1]).exists())


@needs.linux
def test_what_a_trainer_has_detached_ends_when_the_launcher_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from frameworks import trainer_process;"
        "from frameworks.adapter import Command;"
        f"inner = {DETACHED + 'time.sleep(600)'!r};"
        f"trainer_process.run(Command([sys.executable, '-c', inner]), Path({str(tmp_path / 'l')!r}),"
        "trainer_process.Monitor('r', 1, lambda _: None))"
    )
    outer = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    lines = wait_until(lambda: [x for x in _read(tmp_path / "l").splitlines() if x.isdigit()])
    outer.kill()
    outer.wait()
    wait_until(lambda: not Path("/proc", lines[0]).exists())


def test_a_trainer_that_makes_no_more_steps_is_ended_though_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_progress, "STEP_SECONDS", 1.0)
    monkeypatch.setattr(trainer_process, "WATCH_SECONDS", 0.2)
    step = "print({'loss': '0.1', 'reward': '0.5'}, flush=True);"
    script = f"import time\n{step}{step}{step}\nwhile True: time.sleep(0.1); print('waiting', flush=True)"
    with refused("training-hung", step=3):
        run(trainer(script), tmp_path / "l", 9)


def test_lines_of_a_step_s_further_updates_are_part_of_it(tmp_path: Path) -> None:
    first, further = "print({'reward': '0.5', 'step_time': '1'})", "print({'loss': '0.1', 'step_time': '1'})"
    others = "print({'train_runtime': '9', 'train_loss': '0.1'}); print('step_time')"
    updates, steps = list[int](), list[int]()
    run(
        trainer("; ".join([further, others, first, further, others, further, first, further, others])),
        tmp_path / "l", 2, on_step=lambda step, row: steps.append(step),
        is_further_update=adapter.load("trl").is_further_update, on_update=updates.append,
    )  # fmt: skip
    assert (steps, updates) == ([1, 2], [1, 1, 2])


DROPPED = "Error in _run_prompt for uid=1"  # verl's line about it, which ends a training, too


def failing_reward(folder: Path, error: str, then: str) -> Command:
    """A trainer whose reward function raises an error, and what it does then."""
    script = f"""
import os, time
from frameworks.reward_hook import failures_noted
try:
    with failures_noted():
        raise {error}
except Exception:
    {then}
"""
    return Command([sys.executable, "-c", script], {rollout_log.VARIABLE: str(folder), "PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("then", ["raise", "time.sleep(600)", "os._exit(1)", "pass", f"print({DROPPED!r}, flush=True)"])
def test_a_failed_reward_is_the_reason_whatever_its_trainer_does(
    tmp_path: Path, then: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trainer_process, "WATCH_SECONDS", 0.2)
    command = failing_reward(tmp_path, "ValueError('no\\nway\\udc80')", then)
    with refused("reward-failed", reason="ValueError: no way?"):
        run(command, tmp_path / "l", 1, "verl")
    for text in (capsys.readouterr().err, (tmp_path / "l").read_text()):
        assert "Traceback" in text and "ValueError: no\nway" in text
    (tmp_path / FAILURE).unlink()
    if "sleep" not in then:  # nobody watches
        with refused("reward-failed"):
            trainer_process.run_unwatched(command, tmp_path / "l")


@pytest.mark.parametrize("then", ["raise", "time.sleep(600)", "os._exit(1)", "pass"])
def test_a_reward_that_finds_the_disk_full(tmp_path: Path, then: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_process, "WATCH_SECONDS", 0.2)
    command = failing_reward(tmp_path, "OSError(28, 'No space left on device')", then)
    with refused("disk-full"):
        run(command, tmp_path / "l", 1)
    unwritable = replace(command, environment=command.environment | {rollout_log.VARIABLE: str(tmp_path / "l" / "x")})
    if then in ("raise", "os._exit(1)"):  # as far as the trainer itself says so
        with refused("disk-full"):
            run(unwritable, tmp_path / "l", 1)


def test_what_was_recorded_of_a_step_is_watched_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "\n".join(["print({'reward': '0.5'})"] * 12)
    wrong_form = {step: float(step > 5) for step in range(1, 13)}
    run(trainer(script), tmp_path / "l", 12, recorded_columns=lambda step: {"format_error_rate": wrong_form[step]})
    assert "WARNING: r/x: format errors at step " in capsys.readouterr().out

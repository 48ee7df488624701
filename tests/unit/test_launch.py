"""Launching a trainer: here small real processes that behave as trainers do when something goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts.errors import UserError
from contracts.run_file import ROOT
from frameworks import launch
from frameworks.__main__ import check_log, start_anew_if_changed
from frameworks.adapter import Command
from frameworks.trl.adapter import _step_metrics

pytestmark = pytest.mark.slow


def trainer(script: str) -> Command:
    return Command([sys.executable, "-c", script], progress=_step_metrics)


def test_progress_is_one_line_a_step_and_the_output_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "print({'loss': '0.1', 'reward': '0.5', 'completions/mean_length': '31'}); print('saved')"
    launch.run(trainer(script), log=tmp_path / "train.log", steps=1, name="r/x")
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
    launch.run(trainer(COLLAPSING.replace("STOPPED", "0")), log=tmp_path / "l", steps=30, name="r/x")
    warnings = [line for line in capsys.readouterr().out.splitlines() if "WARNING" in line]
    assert warnings == [
        "WARNING: r/x: length at the cap at step 19: 60% of the completions are cut off at the limit, after 0% at best"
        "; the mean response has 31 tokens"
    ]


def test_a_collapse_ends_the_run_where_that_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is collapsing .length at the cap at step 19: .* and was ended"):
        command = trainer(COLLAPSING.replace("STOPPED", "1"))
        launch.run(command, log=tmp_path / "l", steps=30, name="r/x", stop_on_collapse=True)


@pytest.mark.parametrize("key", ["loss", "reward"])
def test_a_loss_or_reward_that_is_not_a_number_ends_the_run(tmp_path: Path, key: str) -> None:
    values = {"loss": "0.1", "reward": "0.5", key: "nan"}
    script = f"import time; print({values!r}, flush=True); time.sleep(600)"
    started = time.monotonic()
    with pytest.raises(UserError, match=rf"reported {key} that is not a number at step 1"):
        launch.run(trainer(script), log=tmp_path / "train.log", steps=5, name="r/x")
    assert time.monotonic() - started < 60


def test_another_status_than_zero_is_an_error_with_the_last_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"ended with status 3.*same command goes on"):
        launch.run(trainer("print('CUDA out of memory'); raise SystemExit(3)"), log=tmp_path / "l", steps=1, name="r")
    assert "CUDA out of memory" in capsys.readouterr().err


def test_a_trainer_that_says_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "QUIET_SECONDS", 1.0)
    monkeypatch.setattr(launch, "WATCH_SECONDS", 0.2)
    with pytest.raises(UserError, match="printed nothing"):
        launch.run(trainer("import time; time.sleep(600)"), log=tmp_path / "l", steps=1, name="r")


def test_a_trainer_does_not_wait_for_a_server_that_has_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "WATCH_SECONDS", 0.2)
    server = Command([sys.executable, "-c", "raise SystemExit(7)"])
    waiting = Command([sys.executable, "-c", "import time; time.sleep(600)"], servers=[server])
    with pytest.raises(UserError, match="lost a server that it needs, which ended with status 7"):
        launch.run(waiting, log=tmp_path / "l", steps=1, name="r")


def test_a_servers_life_ends_with_the_trainer(tmp_path: Path) -> None:
    server = Command([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"])
    command = Command([sys.executable, "-c", "import time; time.sleep(1)"], servers=[server])
    launch.run(command, log=tmp_path / "l", steps=1, name="r")
    pid = int(
        next(line for line in (tmp_path / "l").read_text().splitlines() if line.startswith("[server]")).split()[1]
    )
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_sigterm_reaches_the_trainer_and_its_children(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from frameworks import launch;"
        "from frameworks.adapter import Command;"
        "inner = 'import os, time; print(os.getpid(), flush=True); time.sleep(600)';"
        f"launch.run(Command([sys.executable, '-c', inner]), log=Path({str(tmp_path / 'l')!r}), steps=1, name='r')"
    )
    outer = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    deadline = time.monotonic() + 30
    while not (lines := [x for x in _read(tmp_path / "l").splitlines() if x.isdigit()]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    outer.send_signal(signal.SIGTERM)
    assert outer.wait(30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(lines[0]), 0)


def _read(file: Path) -> str:
    return file.read_text() if file.is_file() else ""


def test_a_training_without_any_signal_is_an_error_and_a_weak_one_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from recipes.runs import load_run

    run = load_run("openr1/qwen2.5-math-7b", "demo")

    def rows(zero_signal: list[float], reward: float = 0.5) -> list[dict[str, float | None]]:
        return [
            {"step": i, "reward_mean": reward, "zero_signal_rate": rate, "truncated_rate": 0.9}
            for i, rate in enumerate(zero_signal, start=1)
        ]

    check_log(rows([1.0, 1.0, 0.5, 1.0]), run, 4)
    said = capsys.readouterr().out
    assert "no group had a signal in 3 of 4 steps" in said and "90% of the completions were cut" in said
    with pytest.raises(UserError, match="nothing was learned"):
        check_log(rows([1.0] * 4), run, 4)
    with pytest.raises(UserError, match="not a number at step 1"):
        check_log(rows([0.5] * 4, float("nan")), run, 4)
    with pytest.raises(UserError, match="logged 5 steps, found 4"):
        check_log(rows([0.5] * 4), run, 5)


def test_native_files_are_gone_on_from_only_if_their_inputs_are_the_same(tmp_path: Path) -> None:
    def checkpoint() -> Path:
        (tmp_path / "native" / "checkpoint-20").mkdir(parents=True, exist_ok=True)
        return tmp_path / "native" / "checkpoint-20"

    start_anew_if_changed(tmp_path, {"problems_sha256": "a", "model_sha256": "b"})
    kept = checkpoint()
    start_anew_if_changed(tmp_path, {"problems_sha256": "a", "model_sha256": "b"})
    assert kept.is_dir()
    start_anew_if_changed(tmp_path, {"problems_sha256": "a", "model_sha256": "c"})
    assert not kept.exists()


DETACHED = (
    "import subprocess, sys, time; child = subprocess.Popen(['sleep', '600'], start_new_session=True);"
    "print(child.pid, flush=True);"
)


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")
def test_what_a_trainer_has_detached_ends_with_it(tmp_path: Path) -> None:
    launch.run(trainer(DETACHED), log=tmp_path / "l", steps=1, name="r")
    assert gone(int(_read(tmp_path / "l").splitlines()[-1]))


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")
def test_what_a_trainer_has_detached_ends_when_the_launcher_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from frameworks import launch;"
        "from frameworks.adapter import Command;"
        f"inner = {DETACHED + 'time.sleep(600)'!r};"
        f"launch.run(Command([sys.executable, '-c', inner]), log=Path({str(tmp_path / 'l')!r}), steps=1, name='r')"
    )
    outer = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    deadline = time.monotonic() + 30
    while not (lines := [x for x in _read(tmp_path / "l").splitlines() if x.isdigit()]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    outer.kill()
    outer.wait()
    assert gone(int(lines[0]))


def test_a_trainer_that_makes_no_more_steps_is_ended_though_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "STEP_SECONDS", 1.0)
    monkeypatch.setattr(launch, "WATCH_SECONDS", 0.2)
    step = "print({'loss': '0.1', 'reward': '0.5'}, flush=True);"
    script = f"import time\n{step}{step}{step}\nwhile True: time.sleep(0.1); print('waiting', flush=True)"
    with pytest.raises(UserError, match=r"made no step for .* minutes after 3 steps and was ended"):
        launch.run(trainer(script), log=tmp_path / "l", steps=9, name="r")


def test_a_line_that_tells_of_a_failure_ends_the_trainer(tmp_path: Path) -> None:
    from frameworks.verl.adapter import _step_metrics as of_verl

    script = "import time; print('a reward function failed: ValueError: no', flush=True); time.sleep(600)"
    with pytest.raises(UserError, match="training r was ended: a reward function failed: ValueError: no"):
        launch.run(Command([sys.executable, "-c", script], progress=of_verl), log=tmp_path / "l", steps=1, name="r")
    line = (
        "(TaskRunnerV1 pid=1) step:7 - critic/score/mean:0.25 - actor/loss:np.float64(-1e-3) - response_length/mean:9.0"
    )
    assert of_verl(line) == {"reward": 0.25, "loss": -0.001, "length": 9.0}

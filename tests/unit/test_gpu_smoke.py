"""What of `make gpu-smoke` needs no GPU: which rows run, the time that they have, the table, and its errors."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import machine
from cluster.gpu_smoke import __main__ as command_line
from cluster.gpu_smoke import rows, table, watched_command
from cluster.gpu_smoke.rows import EVALUATION, HERE, LOCKED, Failed, SmokeTest, last_json
from contracts.run_file import EVERYWHERE
from recipes.gpu_smoke import reward
from recipes.runs import run_names, smoke_run_names
from system.errors import UserError
from tests.user_errors import refused

RUNS = rows.smoke_runs("full")
MakeTest = Callable[..., SmokeTest]


@pytest.fixture
def smoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTest:
    """The rows on a machine with one GPU."""
    monkeypatch.setattr(machine, "nvidia", lambda: ("580.1", (machine.GPU("GPU", 17.0, 9.0),)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    def make(interpreter: str = HERE, minutes: float = 10.0) -> SmokeTest:
        return SmokeTest(tmp_path, "full", interpreter, minutes)

    return make


def test_a_machine_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, before anything is built or written."""
    monkeypatch.setattr(machine, "nvidia", lambda: ("", ()))
    monkeypatch.setattr(sys, "argv", ["gpu_smoke", "--scale", "full", "--folder", str(tmp_path / "folder")])
    with refused("unsuitable-gpu", problems=["GPUs"]):
        command_line.main()
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    ("gpu", "driver", "problem"),
    [
        (("T4", 16.1, 7.5), "580.1", "GPU type"),
        (("A2", 8.0, 8.6), "580.1", "GPU memory"),
        (("H", 85.0, 9.0), "550.1", "driver"),
    ],
)
def test_a_gpu_or_driver_that_cannot_run_it(
    gpu: tuple[str, float, float], driver: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "nvidia", lambda: (driver, (machine.GPU(*gpu),)))
    with pytest.raises(UserError) as error:
        command_line.check_gpu()
    assert error.value.code == "unsuitable-gpu" and error.value.facts["problems"] == [problem]


def test_a_row_that_does_not_exist() -> None:
    with refused("unknown-name", unknown=["ppo"]):
        command_line.parse_arguments(["--scale", "full", "--rows", "device,ppo"])
    assert command_line.parse_arguments(["--scale", "full"]).rows == ["device", EVALUATION, *RUNS]


def test_what_is_not_installed_is_left_out_and_named(smoke: MakeTest) -> None:
    assert smoke().missing("any", ["json", "not_here_at_all.part"]) == "not installed: not_here_at_all"
    assert smoke().missing("any", ["json", "pathlib"]) == ""


def test_a_whole_call_with_this_interpreter_names_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing runs, nothing is built, and it is no error."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    arguments = ["gpu_smoke", "--interpreter", "here", "--scale", "demo", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    command_line.main()
    lines = [line for line in (tmp_path / "table.md").read_text().split("\n") if line.startswith("| ")][2:]
    assert len(lines) == 2 + len(RUNS)
    assert all(f"| {table.LEFT_OUT} |" in line for line in lines)
    assert sum("not installed: vllm" in line for line in lines) == len(lines) - len(rows.rows_with_server())
    assert [path.name for path in tmp_path.iterdir()] == ["table.md"]


def test_a_row_whose_environment_cannot_be_built_is_left_out(
    smoke: MakeTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("envs.build.TARGET", tmp_path)
    ended = watched_command.Ended(1, "Error: no network", 0.0, False, False)
    monkeypatch.setattr(watched_command, "run", lambda *_: ended)
    row = smoke(LOCKED).run_row(EVALUATION)
    assert row.result == table.LEFT_OUT and "no network" in row.remarks[0]


def test_a_row_with_more_gpus_than_are_here_is_left_out(smoke: MakeTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL refuses two ranks on one GPU, so a server has a GPU of its own."""
    several_gpus = {name for name, run in RUNS.items() if run.hardware["gpus"] > 1}
    assert several_gpus
    monkeypatch.setattr(SmokeTest, "missing", lambda *_: "missing")
    assert {name for name in RUNS if "GPUs" in smoke().run_row(name).remarks[0]} == several_gpus


def test_without_gpus_a_row_with_a_server_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU its run at demo scale samples with transformers, as another row does, and no server would be tried."""
    monkeypatch.setattr(SmokeTest, "missing", lambda *_: "")
    smoke = SmokeTest(tmp_path, "demo", HERE, 10.0)
    assert {name for name in RUNS if "server" in smoke.obstacle(name)} == rows.rows_with_server()
    assert 0 < len(rows.rows_with_server()) < len(RUNS)


def test_what_the_time_does_not_allow_is_named_with_its_command(
    smoke: MakeTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SmokeTest, "missing", lambda *_: "")
    row = smoke(minutes=0.0).run_row(EVALUATION)
    assert row.result == table.LEFT_OUT and f'SMOKE="rows={EVALUATION}"' in row.remarks[0]


def test_a_command_that_fails_is_its_row_s_error(smoke: MakeTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first error, with what to do; the row ends there."""
    script = "import sys; print('ValueError: the cause', flush=True); sys.exit('RuntimeError: what followed')"
    run_command = SmokeTest.run_command
    monkeypatch.setattr(SmokeTest, "missing", lambda *_: "")
    failing = [sys.executable, "-c", script]
    monkeypatch.setattr(SmokeTest, "run_workflow", lambda smoke, row, *_: run_command(smoke, row, failing))
    row = smoke().run_row(EVALUATION)
    assert row.result == table.WRONG and row.remarks[0] == "ValueError: the cause" and str(row.name) in row.remarks[1]


@pytest.mark.slow
def test_a_command_that_is_too_slow_is_ended(tmp_path: Path) -> None:
    """With the processes that it started."""
    mark = tmp_path / "alive"
    child = f"import time, pathlib\nwhile True: pathlib.Path({str(mark)!r}).touch(); time.sleep(0.05)"
    script = f"import subprocess, sys; print('started', flush=True); subprocess.run([sys.executable, '-c', {child!r}])"
    log = tmp_path / "logs" / "row.log"
    ended = watched_command.run([sys.executable, "-c", script], log, 1e9, until=mark.exists)
    assert ended.stopped and not ended.late and ended.status and ended.output == "started\n"
    mark.unlink(missing_ok=True)

    def interrupt() -> bool:
        if mark.exists():
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        watched_command.run([sys.executable, "-c", script], log, 1e9, until=interrupt)
    ended = watched_command.run([sys.executable, "-c", "import time; time.sleep(1e6)"], log, 0.1)
    assert ended.late and ended.status
    mark.unlink(missing_ok=True)
    time.sleep(0.5)
    assert not mark.exists()
    assert watched_command.run([sys.executable, "-c", "print('fine')"], log, 1e9)[:2] == (0, "fine\n")


@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "(EngineCore pid=7) ValueError: Free memory on device cuda:0 is less than desired GPU memory utilization",
        "ModuleNotFoundError: No module named 'flash_attn'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "RuntimeError: The NVIDIA driver on your system is too old",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:94, unhandled system error",
        "OSError: [Errno 28] No space left on device",
        "TimeoutError: ended after 288 s, its limit",
    ],
)
def test_the_first_error_of_a_log_and_what_to_do(line: str) -> None:
    text = f"INFO 0 errors so far\nWARNING: something\n  {line}\nRuntimeError: Engine core initialization failed\n"
    error = table.first_error("nothing here\n", text)
    assert error in line and error.partition(":")[0].endswith("Error")
    assert "please report" not in table.advice(error, "log") and "please report" in table.advice("KeyError: 'x'", "log")


def test_a_log_without_an_error_gives_its_last_line() -> None:
    assert table.first_error("", "one\nKilled\n\n") == "Killed"
    assert table.first_error("") == "it printed nothing"
    with pytest.raises(Failed, match="no JSON"):
        last_json("Error: no JSON\n")
    assert last_json('a line\n{"a": 1}\n') == {"a": 1}


def test_the_table() -> None:
    good = table.Row("good", seconds=61.2, peak_gb=6.54, estimated_gb=8.0, remarks=["resumed"])
    good.figures = {"reward": [0.1, 0.25], "tokens_per_second": 1234.4, "sampler_distance": 0.0021}
    bad = table.Row("bad", seconds=2.0).wrong("ValueError: a | b", "do this")
    absent = table.Row("absent").left_out("not installed: x")
    cells = [dict(zip(table.COLUMNS, table.cells(row), strict=True)) for row in (good, bad, absent)]
    assert [cell["result"] for cell in cells] == [table.OK, table.WRONG, table.LEFT_OUT]
    assert cells[0]["GB, estimated"] == "6.5, 8.0" and cells[0]["tokens/s"] == "1,234"
    assert cells[0]["reward"] == "0.100 → 0.250" and cells[0]["sampler − trainer"] == "2.1e-03"
    lines = table.page([good, bad, absent], "A GPU").split("\n")
    assert len([line for line in lines if line.startswith("| ")]) == 5  # head, rule, three rows


def test_each_training_has_a_signal_and_a_distance() -> None:
    """The reward differs between random texts, and the trainer logs how far the sampler is from it."""
    rewards = reward.digits(["12", "a1", "", "four"], [])
    assert [one.value for one in rewards] == [1.0, 0.5, 0.0, 0.0]
    assert all(run.stages[0].objective.get("sampler_correction") == "token" for run in RUNS.values())


def test_every_framework_is_killed_and_resumed_once() -> None:
    for scale in EVERYWHERE:
        killed = {run.framework for run in rows.smoke_runs(scale).values() if len(run.stages[0].checkpoints) > 1}
        assert killed == {run.framework for run in rows.smoke_runs(scale).values()} and len(killed) > 1


def test_its_runs_are_left_out_of_all_runs() -> None:
    assert smoke_run_names() and not set(smoke_run_names()) & set(run_names())

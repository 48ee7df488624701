"""Two trainings on one node: none takes a port that another has."""

from __future__ import annotations

import argparse
import contextlib
import socket
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import Run
from frameworks import adapter, ray_cluster, slurm_nodes, trainer_environment
from frameworks.adapter import Command, Paths
from tests import loaded_runs

TRL = adapter.load("trl")
WITH_SERVER = [
    run
    for run in loaded_runs.runs("full")
    if run.framework == "trl" and run.stages[0].rollout["engine"] == "vllm-server"
]


def option(command: Command, name: str) -> str:
    return command.arguments[command.arguments.index(name) + 1]


def prepared(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr(type(TRL), "write_data", lambda *_: None)
    monkeypatch.setattr(
        trainer_environment, "take_gpus", lambda run: [str(number) for number in range(run.hardware["gpus"])]
    )
    return TRL.prepare(run, run.stages[0], 0, Paths(problems=work, model=work, work=work))


@pytest.mark.parametrize("run", WITH_SERVER, ids=lambda run: str(run.name))
def test_each_training_has_ports_of_its_own(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepared(run, tmp_path / "first", monkeypatch)
    names = ("--vllm_server_port", "--vllm_group_port")
    ports = [int(option(first, name)) for name in names]
    with contextlib.ExitStack() as stack:
        for port in ports:  # the first training listens
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        second = prepared(run, tmp_path / "second", monkeypatch)
    assert len({*ports, *(int(option(second, name)) for name in names)}) == 4
    for command in (first, second):
        (server,) = command.servers
        assert option(server, "--port") == option(command, "--vllm_server_port")
        assert option(server, "--host") == option(command, "--vllm_server_host") == "127.0.0.1"
        assert option(command, "--main_process_port") == "0"  # accelerate takes a free one


def test_every_port_of_a_cluster_of_ray_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    class Ended:
        def __init__(self, command: list[str], **_: object) -> None:
            started.append(command)

        def wait(self, timeout: float) -> int:
            return 0

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(slurm_nodes, "this_node", lambda: (0, [slurm_nodes.Node("one", "127.0.0.1")]))
    monkeypatch.setattr(slurm_nodes, "end_on_signals", lambda: None)
    monkeypatch.setattr(slurm_nodes, "end_process", lambda process: None)
    monkeypatch.setattr(ray_cluster.subprocess, "Popen", Ended)
    with pytest.raises(SystemExit):
        ray_cluster.start_node(argparse.Namespace(gpus=1, cpus=0, port=slurm_nodes.free_port(), scratch=tmp_path / "s"))
    ports = dict(word.split("=") for word in started[0] if "port=" in word)
    assert {"--port", "--dashboard-agent-listen-port", "--metrics-export-port"} <= {*ports}
    assert len(set(ports.values())) == len(ports)


NOISY_RAY = """
import atexit
def init(**_): print("[1]")
def nodes(): return [{"Alive": True, "Resources": {"GPU": 2.0}}, {"Alive": False, "Resources": {"GPU": 2.0}}]
atexit.register(print, "    another line of Ray's")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("end", "nodes"), [("", [{"GPU": 2.0}]), ("def nodes(): raise SystemExit(0)", [])])
def test_what_ray_prints_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, nodes: object) -> None:
    (tmp_path / "ray.py").write_text(NOISY_RAY + end)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with subprocess.Popen(["sleep", "600"], text=True) as step:
        try:
            assert ray_cluster.node_resources("127.0.0.1:1", step) == nodes
        finally:
            step.kill()

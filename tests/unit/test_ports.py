"""Two trainings on one node: none takes a port that another has."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from contracts.run_file import Run
from frameworks import adapter, ray_cluster, ray_patience, trainer_environment
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


class Node:
    """A node of Ray's, as far as ray_patience.py changes it."""

    _session_dir, _node_id, gcs_address = "", "1", "address"

    def __init__(self) -> None:
        self._ray_params = SimpleNamespace()
        self.all_processes: dict[str, list[SimpleNamespace]] = {}

    def start_raylet(self) -> None:
        self.all_processes["raylet"] = [SimpleNamespace(process=SimpleNamespace(poll=lambda: None))]


def test_every_agent_of_ray_has_a_port_of_its_own(tmp_path: Path) -> None:
    def persist_port(folder: str, node_id: str, name: str, port: int) -> None:
        assert (folder, node_id, name) == ("", "1", "dashboard_agent_listen_port")
        told.append(port)

    told: list[int] = []
    (tmp_path / "port").touch()
    internal = SimpleNamespace(persist_port=persist_port, get_port_filename=lambda *_: tmp_path / "port")
    services = SimpleNamespace(get_node=lambda *_: None)
    ray = SimpleNamespace(_private=SimpleNamespace(services=services), exceptions=SimpleNamespace(), _raylet=internal)
    changed = type("Changed", (Node,), {})
    ray_patience.wait_in_start_raylet(SimpleNamespace(Node=changed, ray=ray))  # type: ignore[arg-type]
    nodes = [changed(), changed()]
    with contextlib.ExitStack() as stack:
        for node in nodes:
            node.start_raylet()
            for name in ray_patience.PORTS:  # the node listens
                stack.enter_context(socket.create_server(("", getattr(node._ray_params, name))))
    assert told == [node._ray_params.dashboard_agent_listen_port for node in nodes]


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

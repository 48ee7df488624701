"""What `snakemake doctor` says of machines: this one, and described ones that lack something."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster import doctor, machine, probe
from cluster.doctor import DEMO, FULL, GPU, OK, WARNING, WRONG
from contracts.run_file import ROOT
from envs.build import WITHOUT_KERNELS
from recipes.runs import load_run
from tasks import sandbox

H100 = machine.GPU("NVIDIA H100", 85.5, 9.0)
NODE = machine.Machine(
    architecture="x86_64", libc=(2, 36), python="3.11.9", headers=True, compiler="g++ 12.2.0", cores=64, memory=1000.0,
    disk=5000.0, shared_memory=500.0, open_files=65536, processes=65536, driver="580.95.05", gpus=(H100,) * 8,
    cuda="13.0", toolkits={"verl": True}, reachable={"huggingface.co": True}, hub_cache=Path("/hub"),
    hub_cache_writable=True, hub_disk=100.0, slurm="",
)  # fmt: skip
RUNS = [load_run(name, "full") for name in ("tinyzero/ppo-3b", "openr1/qwen2.5-math-7b", "simplerl/qwen2.5-math-7b")]


def findings(**changed: Any) -> dict[str, doctor.Finding]:
    return {finding.what: finding for finding in doctor.all_findings(dataclasses.replace(NODE, **changed), RUNS)}


@pytest.mark.parametrize(
    ("configured", "hosts"),
    [
        ({}, {"pypi.org", "huggingface.co"}),
        ({"PIP_INDEX_URL": "https://pip.example/simple"}, {"pip.example", "huggingface.co"}),
        (
            {"PIP_INDEX_URL": "https://pip.example/simple", "UV_DEFAULT_INDEX": "https://uv.example/simple"},
            {"uv.example", "huggingface.co"},
        ),
        ({"UV_DEFAULT_INDEX": "", "HF_ENDPOINT": "https://hub.example"}, {"pypi.org", "hub.example"}),
    ],
)
def test_the_index_and_the_hub_that_are_used_are_asked(
    monkeypatch: pytest.MonkeyPatch, configured: dict[str, str], hosts: set[str]
) -> None:
    for name in (*machine.INDEX_VARIABLES, "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in configured.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(machine, "_answers", lambda address: True)
    assert set(machine.inspect_machine(ROOT).reachable) == hosts


def test_a_node_with_eight_gpus() -> None:
    by_name = findings()
    assert {one.state for one in by_name.values()} == {OK, WARNING}
    wanting = {what: one.text for what, one in by_name.items() if one.state != OK}
    assert wanting == {"simplerl/qwen2.5-math-7b": "needs 4 nodes (snakemake --profile slurm)"}
    last = doctor.what_runs([*by_name.values()], RUNS)
    assert last[:2] == ["demo: runs here", "one GPU: runs here"]
    assert last[2] == "full scale: 2 of 3 runs: tinyzero/ppo-3b, openr1/qwen2.5-math-7b"


@pytest.mark.parametrize(
    ("changed", "what", "state", "stops"),
    [
        ({"architecture": "aarch64"}, "system", WRONG, (DEMO, GPU, FULL)),
        ({"libc": (2, 17)}, "system", WRONG, (DEMO, GPU, FULL)),
        ({"libc": ()}, "system", WRONG, (DEMO, GPU, FULL)),
        ({"python": "3.12.3"}, "python", WRONG, (DEMO, GPU, FULL)),
        ({"headers": False}, "headers", WRONG, (GPU, FULL)),
        ({"compiler": ""}, "compiler", WRONG, (GPU, FULL)),
        ({"cores": 1}, "cores", WRONG, (DEMO, GPU, FULL)),
        ({"memory": 8.0}, "memory", WRONG, (DEMO, GPU, FULL)),
        ({"disk": 5.0}, "disk", WRONG, (DEMO, GPU, FULL)),
        ({"disk": 20.0}, "disk", WRONG, (GPU, FULL)),
        ({"shared_memory": 0.067}, "shared memory", WRONG, (GPU, FULL)),
        ({"open_files": 1024}, "open files", WARNING, ()),
        ({"sandbox": "bubblewrap is not installed"}, "sandbox", WARNING, ()),
        ({"processes": 512}, "processes", WARNING, ()),
        ({"driver": "", "gpus": ()}, "GPUs", WARNING, (GPU, FULL)),
        ({"driver": "550.54"}, "driver", WRONG, (GPU, FULL)),
        ({"gpus": (machine.GPU("T4", 16.1, 7.5),)}, "GPU type", WRONG, (GPU, FULL)),
        ({"gpus": (machine.GPU("B200", 192.0, 10.0),)}, "GPU type", WARNING, ()),
        ({"gpus": (machine.GPU("A2000", 6.4, 8.6),)}, "GPU memory", WRONG, (GPU, FULL)),
        ({"toolkits": {"eval": False}}, "eval on GPUs", WRONG, (GPU, FULL)),
        ({"reachable": {"huggingface.co": False}}, "network", WARNING, ()),
        ({"hub_cache_writable": False}, "hub cache", WRONG, (GPU, FULL)),
        ({"gpus": (H100,) * 2}, "openr1/qwen2.5-math-7b", WARNING, ()),
        ({"gpus": (machine.GPU("A100", 42.9, 8.0),) * 8}, "tinyzero/ppo-3b", WARNING, ()),
        ({"memory": 100.0}, "openr1/qwen2.5-math-7b", WARNING, ()),
        ({"disk": 300.0}, "openr1/qwen2.5-math-7b", WARNING, ()),
    ],
)
def test_what_is_missing_is_named_with_what_it_stops(
    changed: dict[str, Any], what: str, state: str, stops: tuple[str, ...]
) -> None:
    by_name = findings(**changed)
    assert (by_name[what].state, by_name[what].stops) == (state, stops)
    before = findings().get(what)
    assert before is None or before.state == OK
    for goal, line in zip((DEMO, GPU, FULL), doctor.what_runs([*by_name.values()], RUNS), strict=True):
        assert (f"{goal}: no" in line) == (goal in stops)


def test_a_slurm_that_is_here_is_named() -> None:
    assert "preflight" in findings(slurm="slurm 22.05.8")["Slurm"].text


def test_gpus_as_nvidia_smi_lists_them() -> None:
    listing = "NVIDIA H100 80GB HBM3, 81559, 9.0, 580.95.05\nNVIDIA H100 80GB HBM3, 81559, 9.0, 580.95.05\n"
    driver, gpus = machine.read_gpus(listing)
    assert driver == "580.95.05" and len(gpus) == 2
    assert gpus[0].capability == 9.0 and gpus[0].memory_gb == pytest.approx(85.52, abs=0.01)
    assert machine.read_gpus("NVIDIA-SMI has failed\n") == ("", ())


def test_the_locks_cuda_and_an_environment_without_a_compiler(tmp_path: Path) -> None:
    assert machine.inspect_machine(ROOT).cuda == "13.0"
    stamp = tmp_path / ".envs" / "verl-cuda-0123" / ".stamp"
    stamp.parent.mkdir(parents=True)
    stamp.touch()
    assert machine.inspect_machine(tmp_path).toolkits == {"verl": False}
    stamp.parent.rename(stamp.parent.with_name(f"verl-cuda-0123{WITHOUT_KERNELS}"))
    assert machine.inspect_machine(tmp_path).toolkits == {}  # that of a rehearsal, which no run uses


def test_environments_that_are_built_need_no_more_disk() -> None:
    built = dict.fromkeys(("eval", "openrlhf", "trl", "verl"), True)
    assert findings(disk=15.0)["disk"].state == WRONG
    assert findings(disk=15.0, toolkits=built)["disk"].state == OK


@pytest.mark.slow
def test_it_says_what_this_machine_has(tmp_path: Path) -> None:
    """With a pretended nvidia-smi: a GPU whose driver is too old."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA A100, 81920, 8.0, 535.129.03'\n")
    program.chmod(0o755)
    command = [sys.executable, "-m", "cluster.doctor", "--run", "tinyzero/ppo-3b"]
    nowhere = dict.fromkeys(("HF_ENDPOINT", "PIP_INDEX_URL"), "http://127.0.0.1:9")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), **nowhere}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = [line.split(maxsplit=1) for line in done.stdout.split("\n\n")[0].split("\n")]
    assert {line[0] for line in lines} <= {OK, WARNING, WRONG}
    assert [line[0] for line in lines if line[1].startswith("driver") and "580" in line[1]] == ["wrong"]
    assert [line[0] for line in lines if "127.0.0.1 does not answer" in line[1]] == ["warning"]
    assert "Traceback" not in done.stdout + done.stderr
    assert (done.returncode == 0) == ("demo: runs here" in done.stdout)


def test_a_node_without_a_sandbox_stops_no_job() -> None:
    stops, text = probe.explain_status(probe.NO_SANDBOX, "", ROOT, Path(sys.executable))
    assert not stops and "bubblewrap" in text
    stops, text = probe.explain_status(sandbox.NOT_WARM, "", ROOT, Path(sys.executable))
    assert not stops and "keeps none warm" in text


def test_a_node_with_a_sandbox_is_told_too() -> None:
    assert probe.explain_status(0, "", ROOT, Path(sys.executable)) == (
        False, "a node starts sandboxes for answers that are programs, and keeps them warm"
    )  # fmt: skip
    assert findings()["sandbox"].text == "starts, and is kept warm"
    assert "none kept warm, unshare" in findings(cold_sandbox="unshare: no")["sandbox"].text

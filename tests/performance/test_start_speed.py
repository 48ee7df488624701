"""What starts: each environment's packages beside a fork that has them, the graph of all runs, a hundred checkpoints.

Run with `pytest tests/performance/test_start_speed.py --benchmark-only`; some minutes. Ratios are in `extra_info`.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from test_report_speed import RUN, make

from analysis.load_results import load_results
from contracts import paths, run_file
from envs.build import python
from eval import vllm_settings
from frameworks import adapter

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow

START = """
import importlib, json, os, sys, time
started = time.perf_counter()
for name in sys.argv[1:]:
    importlib.import_module(name)
imported = time.perf_counter()
if (pid := os.fork()) == 0:
    os._exit(0)
os.waitpid(pid, 0)
print(json.dumps({"import": imported - started, "fork": time.perf_counter() - imported}))
"""


def packages() -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """What each environment's jobs import, and the settings that the packages read then."""
    loaded = {name: adapter.load(name) for name in run_file.framework_names()}
    preloads = {name: (tuple(one.preloaded), dict(one.preload_environment)) for name, one in loaded.items()}
    return preloads | {"eval": (vllm_settings.PRELOADED, vllm_settings.environment("cpu"))}


@pytest.mark.parametrize("environment", sorted(packages()))
def test_packages_of_an_environment(benchmark, environment: str) -> None:
    """Imported once, and forked: what a job of a workflow saves."""
    program = python(environment)
    if not program.exists():
        pytest.skip(f"the {environment} environment is not built (envs/build.py {environment})")
    modules, settings = packages()[environment]
    command_line = [str(program), "-c", START, *modules]

    def once() -> dict[str, float]:
        more = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
        done = subprocess.run(command_line, capture_output=True, text=True, check=True, cwd=ROOT, env=more)
        return json.loads(done.stdout.strip().rpartition("\n")[2])

    seconds = benchmark.pedantic(once, rounds=1)
    benchmark.extra_info |= {name: round(value, 3) for name, value in seconds.items()}
    benchmark.extra_info["import / fork"] = round(seconds["import"] / seconds["fork"])


@pytest.mark.parametrize("seeds", [1, 10])
def test_graph_of_all_runs(benchmark, seeds: int) -> None:
    """The graph of every run, beside a list of its jobs, and beside `snakemake help`, which reads the same files."""
    every = ["--config", "reproduce=all", f"seeds={list(range(seeds))}", "--", "reproduce_all"]

    def dry(*more: str) -> float:
        started = time.perf_counter()
        command_line = [sys.executable, "-m", "snakemake", "--nolock", "--dry-run", *more]
        subprocess.run(command_line, check=True, capture_output=True, cwd=ROOT)
        return time.perf_counter() - started

    dry("--quiet", "--", "help")  # bytecode
    graph = benchmark.pedantic(dry, ("--quiet", *every), rounds=1)
    benchmark.extra_info["graph / help"] = round(graph / dry("--quiet", "--", "help"), 1)
    benchmark.extra_info["each job listed / graph"] = round(dry(*every) / graph, 1)


def test_a_hundred_checkpoints(benchmark, tmp_path: Path) -> None:
    """The samples of a hundred checkpoints on two benchmarks, checked, beside reading the same files and no more."""
    make(tmp_path, 200_000, steps=range(0, 1000, 10))
    started = time.perf_counter()
    files = paths.tables(tmp_path / "runs" / RUN / "graded")
    rows = sum(pq.read_table(file).to_pandas().shape[0] for file in files)
    bare = time.perf_counter() - started
    run = benchmark.pedantic(load_results, (tmp_path, RUN), rounds=1)
    assert len(run.steps) == 100 and len(run.graded) == rows
    benchmark.extra_info["loading / reading the files"] = round(benchmark.stats["mean"] / bare, 2)

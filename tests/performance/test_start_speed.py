"""What starts: each environment's packages beside a fork that has them.

Run with `pytest tests/performance/test_start_speed.py --benchmark-only`; some minutes. The ratio is in `extra_info`.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from contracts import run_file
from envs.build import python
from eval import vllm_settings
from frameworks import adapter
from tests import needs

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
    needs.skip_without(environment)
    modules, settings = packages()[environment]
    command_line = [str(program), "-c", START, *modules]

    def once() -> dict[str, float]:
        more = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
        done = subprocess.run(command_line, capture_output=True, text=True, check=True, cwd=ROOT, env=more)
        return json.loads(done.stdout.strip().rpartition("\n")[2])

    seconds = benchmark.pedantic(once, rounds=1)
    benchmark.extra_info |= {name: round(value, 3) for name, value in seconds.items()}
    benchmark.extra_info["import / fork"] = round(seconds["import"] / seconds["fork"])

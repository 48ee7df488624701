"""What the log of a training says, as one line of JSON; with the Python of its framework."""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from contracts import tables
from frameworks import adapter
from frameworks.adapter import Paths
from recipes.runs import load_run
from system.errors import run_command


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m cluster.gpu_smoke.figures", description=__doc__)
    parser.add_argument("--run", required=True)
    parser.add_argument("--scale", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    run = load_run(arguments.run, arguments.scale)
    framework, stage = adapter.load(run.framework), run.stages[0]
    rows = tables.read(arguments.log, tables.TRAINING_LOG).to_pylist()
    logged = framework.logged(run, stage, Paths(Path(), Path(), arguments.work))
    distances = [
        abs(step[framework.sampler_distance]) for step in logged.values() if framework.sampler_distance in step
    ]
    speeds = [
        row["tokens_per_second"] for row in rows[1:] if row["tokens_per_second"] is not None
    ]  # the first starts up
    found = {
        "reward": [rows[0]["reward_mean"], rows[-1]["reward_mean"]],
        "tokens_per_second": statistics.median(speeds) if speeds else None,
        "sampler_distance": distances[-1] if distances else None,
        "largest_distance": max(distances, default=None),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    run_command(main)

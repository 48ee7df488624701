"""Train a short run through OpenRLHF as the command line does, and print what came of it; in OpenRLHF's environment.

python openrlhf_project.py RUN_FILE PROBLEMS MODEL WORK
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from contracts.run_file import parse_run, read_yaml
from frameworks import adapter, stage_training_log
from frameworks.adapter import Paths
from frameworks.train_stage import launch_stage
from system.errors import UserError


def main() -> None:
    file, problems, model, work = map(Path, sys.argv[1:])
    run = parse_run(read_yaml(file), "test/short", file, "demo")
    stage, paths = run.stages[0], Paths(problems=problems, model=model, work=work)
    openrlhf = adapter.load(run.framework)
    openrlhf.fork_processes(run)
    try:
        openrlhf.check(run)
        launch_stage(openrlhf, run, stage, paths, seed=0, stop_on_collapse=False)
        (work / "export").mkdir()
        openrlhf.export(run, stage, stage.steps, paths, work / "export")
        log, rollouts = stage_training_log.read(openrlhf, run, stage, paths, "test/short/seed-0")
        print(json.dumps({"log": log, "rollouts": rollouts, "logged": openrlhf.metrics_of_training(run, stage, paths)}))
    except UserError as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()

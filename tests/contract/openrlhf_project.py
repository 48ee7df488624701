"""Train a short run through OpenRLHF as the command line does, and print what came of it; in OpenRLHF's environment.

python openrlhf_project.py RUN_FILE PROBLEMS MODEL WORK
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from contracts.errors import UserError
from contracts.run_file import parse_run, read_yaml
from frameworks import launch
from frameworks.adapter import Paths
from frameworks.openrlhf import adapter as openrlhf


def main() -> None:
    file, problems, model, work = map(Path, sys.argv[1:])
    run = parse_run(read_yaml(file), "test/short", file, "demo")
    stage, paths = run.stages[0], Paths(problems=problems, model=model, work=work)
    try:
        openrlhf.check(run)
        command = openrlhf.prepare(run, stage, 0, paths)
        print(f"resumed from {command.resumed_from}", flush=True)
        launch.run(command, log=work / "train.log", steps=stage.steps, name=run.name)
        (work / "export").mkdir()
        openrlhf.export(run, stage, stage.steps, paths, work / "export")
        log = openrlhf.read_log(run, stage, paths, "test/short/seed-0")
        rollouts = openrlhf.read_rollouts(run, stage, paths, "test/short/seed-0")
        logged = {step: values for step, (_, values) in openrlhf._logged(work / "native").items()}
        print(json.dumps({"log": log, "rollouts": rollouts, "logged": logged}))
    except UserError as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()

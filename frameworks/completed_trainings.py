"""Which trainings reached their last step: all but those that were ended at a sign of collapse.

python -m frameworks.completed_trainings openr1/trial@1/seed-0 … --results results/demo --output trained.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from contracts import provenance
from contracts.paths import ResultsFolder, RunFolder
from contracts.steps import stage_folder
from system import durable
from system.errors import run_command


def ended(run: RunFolder) -> str:
    """Why a stored training was ended before its last step; empty if it was not."""
    logs = sorted(run.path.glob(f"{stage_folder('*')}/training_log.parquet"))
    return next((str(found["ended"]) for log in logs if "ended" in (found := provenance.read(log))), "")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RECIPE/RUN/SEED", help="trainings whose logs are stored")
    parser.add_argument("--results", type=Path, required=True, help="of one scale, such as results/demo")
    parser.add_argument("--output", type=Path, required=True, help="gets a JSON list of those that reached their end")
    arguments = parser.parse_args()
    folder = ResultsFolder(arguments.results)
    found = [name for name in arguments.runs if not ended(folder.run(name))]
    durable.write_text(arguments.output, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    run_command(main)

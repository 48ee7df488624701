"""Joins the training logs of a run's stages into one.

python -m frameworks.join_stage_logs STAGE_LOG … --output training_log.parquet
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from contracts import provenance, tables
from system.command_line import argument_parser
from system.errors import UserError, run_command


def join(logs: list[pa.Table]) -> pa.Table:
    """The rows of all stages in order; raises UserError unless their steps are 1, 2, 3, …"""
    joined = pa.concat_tables(logs)
    steps = joined["step"].to_pylist()
    if steps != list(range(1, len(steps) + 1)):
        raise UserError(
            f"the stages should have the steps 1 to {len(steps)} once each, but have {steps[0]} to {steps[-1]}; "
            "train the stage again whose log is not whole",
            code="steps-not-consecutive",
            first=steps[0],
            last=steps[-1],
        )
    return joined


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="one for each stage, in order")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    tables.write(
        join([tables.read(log, tables.TRAINING_LOG) for log in arguments.logs]), tables.TRAINING_LOG, arguments.output
    )
    provenance.write(arguments.output, stages=[str(log) for log in arguments.logs])


if __name__ == "__main__":
    run_command(main)

# What Snakemake would answer with its own stack: a configuration that it cannot read, records of jobs that it cannot write.

import os
from pathlib import Path

from snakemake.exceptions import WorkflowError

from system.errors import ROOT, UserError
from system.yaml_files import read_yaml

try:
    read_yaml(ROOT / "config" / "config.yaml")
except UserError as error:
    raise WorkflowError(error.message) from None

RECORDS = Path(".snakemake")
for folder in [RECORDS, *RECORDS.glob("*/")] if RECORDS.exists() else [Path()]:
    if not os.access(folder, os.W_OK):
        raise WorkflowError(
            f"Snakemake keeps its records of jobs in {RECORDS.resolve()}, and {folder.resolve()} cannot be written: make "
            "it writable, or work in a copy of the project"
        )

# What is looked at before anything else is read: Snakemake's release, the configuration's file, and whether Snakemake can
# write its records. Snakemake itself would answer with its own stack.

import os
from pathlib import Path

from cluster import interrupt
from cluster.snakemake_release import check_version, refusal
from system.errors import ROOT, UserError, check_memory_limit
from system.yaml_files import read_yaml

INTERRUPT = None
if (
    workflow.is_main_process
):  # before the other modules are imported, which takes seconds
    INTERRUPT = interrupt.Interrupt(lambda: workflow.scheduler is not None)


def check_records(folder):
    """Raise UserError unless Snakemake can write its records of jobs, in `.snakemake` of a folder."""
    records = folder / ".snakemake"
    for kept in [records, *records.glob("*/")] if records.exists() else [folder]:
        if not os.access(kept, os.W_OK):
            raise UserError(
                f"Snakemake keeps its records of jobs in {records.resolve()}, and {kept.resolve()} cannot be written: "
                "make it writable, or work in a copy of the project",
                code="unwritable-folder",
                path=str(kept.resolve()),
            )


try:
    check_memory_limit()
    check_version()
    from cluster.snakemake_internals import show_sentences_alone

    show_sentences_alone()
    read_yaml(ROOT / "config" / "config.yaml")
    check_records(Path())
except UserError as error:
    raise refusal(error) from None

"""A training that was ended at a sign of collapse has a log, and no checkpoints; here is what stands in their place.

Snakemake plans the whole line before a training runs. So each stage of the line that gets nothing makes nothing: its
output is an empty folder or table whose record says why the training was ended.
"""

from __future__ import annotations

from pathlib import Path

from contracts import provenance
from system import durable


def reason(*artefacts: Path) -> str:
    """Why the training behind these was ended, from the first of their records that says so; empty if it was not."""
    return next((str(facts["ended"]) for facts in map(provenance.read, artefacts) if "ended" in facts), "")


def write_absence(folder: Path, why: str) -> None:
    """Write the empty folder in place of checkpoints or samples; `why` is for its record."""
    with durable.new(folder) as absent:
        absent.mkdir()
        provenance.write(absent, ended=why)

"""Which Snakemake the workflow is tested with, and how its files refuse what a user can fix."""

from __future__ import annotations

import snakemake
from snakemake.exceptions import WorkflowError

from system.errors import UserError
from system.text_safety import visible

TESTED = "9.27"  # envs/base/requirements.in pins a release of it


def check_version(version: str = snakemake.__version__) -> None:
    """Raise UserError for a Snakemake whose private parts were not tested (cluster/snakemake_internals.py)."""
    if not version.startswith(f"{TESTED}."):
        raise UserError(
            f"the workflow is tested with Snakemake {TESTED}, and this is {version}: use that of the base environment "
            "(python3.11 envs/build.py base && source .envs/base-*/bin/activate)",
            code="untested-snakemake",
            version=version,
            tested=TESTED,
        )


def refusal(error: UserError) -> WorkflowError:
    """A user's mistake as an error that Snakemake prints without a traceback: the sentence and its code."""
    return WorkflowError(visible(error.message))

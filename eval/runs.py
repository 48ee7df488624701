"""The evaluation of a run file: whether its protocol, the fields it overrides, and its benchmarks exist."""

from __future__ import annotations

from contracts.errors import UserError
from contracts.run_file import Run, shown
from eval import benchmark, protocols


def check_names(run: Run) -> None:
    """Raise UserError, with the file and the key, for a benchmark, protocol or override that does not exist."""
    where = f"{shown(run.file)}: {run.scale}.evaluation"
    for name in run.evaluation["benchmarks"]:
        if name not in benchmark.names():
            known = ", ".join(benchmark.names())
            raise UserError(f"{where}.benchmarks: '{name}' is not in eval/benchmarks; there are: {known}")
    protocol = protocols.canonical(run.evaluation["protocol"])
    if protocol not in protocols.names():
        known = ", ".join(protocols.names())
        raise UserError(f"{where}.protocol: '{protocol}' is not in eval/protocols.yaml; there are: {known}")
    try:
        protocols.load(protocol, run.evaluation.get("override"))
    except UserError as error:
        raise UserError(f"{where}.override: {error}") from None

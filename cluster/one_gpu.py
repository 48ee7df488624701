"""Which runs fit one GPU of a given size, by the formula of cluster.gpu_memory, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cluster import gpu_memory
from cluster.gpu_memory import TIGHT
from contracts.run_file import Run
from frameworks import one_gpu_variant
from system import markdown
from system.errors import UserError

COLUMNS = ("run", "model", "GPUs of the run file", "fits", "completions of a pass", "peak GB", "why not")
NOTES = """
A run that fits is trained with the batch of its run file, in as many forward passes as it takes. One that would be
"tight" by the formula counts as one that does not fit.
"""


class Fit(NamedTuple):
    """Whether a run fits."""

    run: Run  # as it would be trained
    samples_per_device: int | None  # None: it does not fit
    peak_gb: float | None
    reason: str  # why it does not


def fit_run(run: Run, gpu_gb: float) -> Fit:
    """The largest forward passes, up to the run file's, with which a run fits one GPU.

    Args:
        run: at full scale.
        gpu_gb: size of the GPU in GB.
    """
    if not run.hardware["gpus"]:
        return Fit(run, None, None, "uses no GPU")
    need: gpu_memory.Estimate | None = None
    verdict = ""
    for size in one_gpu_variant.pass_sizes(run):
        tried = one_gpu_variant.on_one_gpu(run, size)
        if need := gpu_memory.fullest_stage(tried, gpu_gb):
            verdict = gpu_memory.fit_verdict(need, gpu_gb, run.hardware["memory_gb"])
        if need and verdict == "yes":
            return Fit(tried, size, need.peak, "")
    if need is None:
        return Fit(run, None, None, "the model's shape is not known (cluster/models.yaml)")
    if need.peak <= TIGHT * gpu_gb:
        return Fit(run, None, need.peak, verdict.partition(": ")[2])
    state = "weights and adapter" if run.stages[0].lora else "weights, gradients and optimiser"
    return Fit(run, None, need.peak, f"{need.state:.0f} GB of {state}, {need.peak:.0f} GB in all with passes of 1")


def fitting_runs(runs: Mapping[str, Run], gpu_gb: float, scale: str) -> dict[str, Fit]:
    """The runs that fit, by name.

    Args:
        runs: by name.
        gpu_gb: size of the GPU in GB.
        scale: of the runs.

    Raises:
        UserError: the runs use no GPU at this scale, or none fits.
    """
    if scale != "full":
        sentence = f"config: gpu_memory_gb is for GPUs, which runs at scale {scale} do not use; add scale=full"
        raise UserError(sentence, code="no-gpu-at-scale", scale=scale)
    fits = {name: fit_run(run, gpu_gb) for name, run in runs.items()}
    fitting = {name: one for name, one in fits.items() if one.samples_per_device}
    if not fitting:
        least = min(one.peak_gb for one in fits.values() if one.peak_gb)
        sentence = f"config: gpu_memory_gb: no run fits {gpu_gb:g} GB; the smallest needs about {least:.0f} GB"
        raise UserError(sentence, code="no-run-fits", gpu_gb=gpu_gb)
    return fitting


def fits_page(runs: list[Run], gpu_gb: float) -> str:
    """The page of capacity for one GPU: what fits, then why the rest does not.

    Args:
        runs: at full scale.
        gpu_gb: size of the GPU in GB.
    """
    rows = sorted(((run, fit_run(run, gpu_gb)) for run in runs), key=lambda row: not row[1].samples_per_device)
    count = sum(bool(run_fit.samples_per_device) for _, run_fit in rows)
    cells: list[list[Any]] = [
        [
            run.name, run.model, str(run.hardware["gpus"]), "yes" if run_fit.samples_per_device else "no",
            str(run_fit.samples_per_device or "–"), "–" if run_fit.peak_gb is None else f"{run_fit.peak_gb:.0f}",
            run_fit.reason or "–",
        ]
        for run, run_fit in rows
    ]  # fmt: skip
    return f"# {count} of {len(rows)} runs fit one GPU of {gpu_gb:g} GB\n\n{markdown.table(COLUMNS, cells)}{NOTES}"

"""What runs cost and whether they fit, before anything runs: GPU-hours, disk, memory, as a Markdown page.

snakemake capacity --profile slurm
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster import gpu_memory, one_gpu
from cluster.gpu_memory import fit_verdict, fullest_stage
from contracts import tables
from contracts.run_file import Run, Stage
from contracts.seeds import run_id
from contracts.steps import stage_folder
from frameworks import adapter
from frameworks.run_settings import save_interval
from recipes.runs import load_run
from system import durable, markdown
from system.command_line import argument_parser
from system.errors import run_command
from system.text_safety import Markdown

HOURS = ("training, published", "training, measured", "training, at most", "generation, at most")
DISK = ("work/ GB", "results/ GB")
COST_NOTES = """
**GPU-hours.** Published: GPUs × the hours of the run file, which its authors published or which follow from theirs.
Measured: GPUs × steps × the mean time of a step, where a stage of the run is trained. At most: GPUs × the time limits.

**Disk.** `work/` holds native checkpoints with optimiser states, needed until the run is finished; `results/` holds
each checkpoint in 16 bits. Decimal gigabytes.
"""
MEMORY = ("peak GB", "weights, gradients, optimiser", "completions in vLLM's cache", "host GB", "fits")
MEMORY_NOTES = """
Peak: of the fullest GPU, of {gpu_gb}, by formula (`cluster/gpu_memory.py` gives the sources). Weights, gradients,
optimiser: the part of it that does not depend on lengths. Completions in vLLM's cache: how many of full length a GPU
generates at a time. Host: of a node's own memory, while all its processes load their weights, with what is offloaded
to it; the run file states what a node has. This is an estimate: within a tenth of the GPU's size it is uncertain, and
says "tight". It is checked against this rule of thumb: 7B on 80 GB, 3B on 40 GB.
"""


def measured_hours(run: Run, results: Path) -> float | None:
    """Hours of all steps at the mean of the trained stages of any seed, with start-up and end; None without any."""
    seconds, steps = 0.0, 0
    for file in results.glob(f"runs/{run_id(run.name, '*')}/{stage_folder('*')}/training_log.parquet"):
        times = tables.read(file, tables.TRAINING_LOG)["wall_time"].drop_null().to_pylist()
        seconds, steps = seconds + max(times, default=0.0), steps + len(times)
    return sum(stage.steps for stage in run.stages) * seconds / steps / 3600 if steps else None


def native_checkpoints(run: Run, stage: Stage) -> int:
    """How many native checkpoints are kept: those at equal intervals with the run file's, and two to resume from.

    See run_settings.save_interval.
    """
    every = math.gcd(*stage.checkpoints)
    return stage.steps // every + 2 * (save_interval(run, stage) < every)


def disk_gb(run: Run) -> tuple[float, float]:
    """Gigabytes of native checkpoints, and of exported ones, of one training."""
    model, size = gpu_memory.model_shape(run.model), adapter.load(run.framework).checkpoint_size
    parameters = model["parameters"] / 1e9 if model else 0.0
    states = weights = 0
    for stage in run.stages:
        saved = native_checkpoints(run, stage)
        states += min(saved, size.states_kept or saved) * (1 + (run.algorithm == "ppo"))
        weights += saved
    lora = run.stages[0].lora
    trained = gpu_memory.adapter_parameters(model, lora) / 1e9 if model and lora else parameters
    native = (states * size.state + weights * size.weights) * trained + states * size.frozen * parameters * bool(lora)
    return native, len(run.checkpoint_steps) * 2 * parameters


def run_costs(run: Run, seeds: int, gpu_gb: float | None, results: Path, generating: int) -> dict[str, Any]:
    """One run's line of the page.

    Args:
        run: the run.
        seeds: how many trainings of it.
        gpu_gb: size of the cluster's GPUs in GB; None for the size that the run file names.
        results: folder of the scale, for measured times.
        generating: GPUs that generate samples after training.
    """
    gpus, hardware = run.hardware["gpus"], run.hardware
    size = gpu_gb or hardware.get("gpu_memory_gb", 80)
    measured, expected = measured_hours(run, results), hardware.get("expected_hours")
    native, exported = disk_gb(run)
    need = fullest_stage(run, size)
    at_most = sum(hardware["hours"] for _ in run.stages)
    return {
        "run": run.name,
        "model": run.model,
        "nodes × GPUs": f"{hardware.get('nodes', 1)} × {gpus // hardware.get('nodes', 1)}",
        "training, published": seeds * gpus * expected if expected else None,
        "training, measured": seeds * gpus * measured if measured is not None else None,
        "training, at most": seeds * gpus * at_most,
        "generation, at most": seeds * generating * run.evaluation.get("hours", 4),
        "work/ GB": seeds * native,
        "results/ GB": seeds * exported,
        "peak GB": need.peak if need else None,
        "weights, gradients, optimiser": need.state if need else None,
        "completions in vLLM's cache": need.sequences if need else None,
        "host GB": need.host if need else None,
        "fits": fit_verdict(need, size, hardware["memory_gb"]) if need else "no GPU" if not gpus else "unknown",
    }


def costs_page(rows: list[dict[str, Any]], scale: str, seeds: int, gpu_gb: float | None) -> str:
    """The Markdown page: what the runs cost, and whether they fit the GPUs.

    Args:
        rows: as `row` gives them.
        scale: of the runs.
        seeds: how many trainings of each.
        gpu_gb: size of the GPUs in GB; None for the sizes that the run files name.
    """
    sums = {column: sum(one[column] or 0 for one in rows) for column in (*HOURS, *DISK) if column != HOURS[1]}
    title = f"# What {len(rows)} runs need, at {scale} scale, with {seeds} seed{'s' * (seeds > 1)}"
    cost = _costs_table(("run", "nodes × GPUs", *HOURS, *DISK), [*rows, {"run": Markdown("**sum**"), **sums}])
    notes = MEMORY_NOTES.format(gpu_gb=f"{gpu_gb:.0f} GB" if gpu_gb else "the size that its run file names")
    fit = _costs_table(("run", "model", *MEMORY), rows)
    return f"{title}\n\n## GPU-hours and disk\n\n{cost}{COST_NOTES}\n## GPU memory\n\n{fit}{notes}"


def _costs_table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    def cell(value: Any) -> str:
        if value is None:
            return "–"
        return value if isinstance(value, str) else f"{value:,.0f}"

    return markdown.table(columns, [[cell(row.get(column)) for column in columns] for row in rows])


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--run", nargs="+", required=True, metavar="RUN=GPUS", help="a run and how many GPUs generate its samples"
    )
    parser.add_argument("--scale", required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--gpu-memory-gb", type=float, help="of the cluster's GPUs; default: what each run file names")
    parser.add_argument("--one-gpu-gb", type=float, help="size of the one GPU that runs are to fit")
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale, for what was measured")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    rows, runs = [], []
    for word in arguments.run:
        name, _, generating = word.rpartition("=")
        runs.append(run := load_run(name, arguments.scale))
        rows.append(run_costs(run, arguments.seeds, arguments.gpu_memory_gb, arguments.results, int(generating)))
    if arguments.one_gpu_gb:
        text = one_gpu.fits_page(runs, arguments.one_gpu_gb)
    else:
        text = costs_page(rows, arguments.scale, arguments.seeds, arguments.gpu_memory_gb)
    durable.write_text(arguments.output, text)
    print(f"{text}\nWritten to {arguments.output}")


if __name__ == "__main__":
    run_command(main)

# What one machine can bear: jobs side by side up to half of its memory (a job that needs more runs alone), and one
# Snakemake at a time in a work folder, by a kernel lock that ends with its process: unlike lock files, which the default
# profile turns off, it does not stand in the way of starting again what was killed.

import fcntl
import os

from contracts import gpu_locks

if (
    not CLUSTER
    and workflow.local_exec
    and config["scale"] == "demo"
    and "mem_mb" not in workflow.global_resources
):
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 10**6
    workflow.register_resource("mem_mb", memory // 2)

# Snakemake counts GPUs and gives no job its own: which ones a job takes is for contracts/gpu_locks.py.
if (
    not CLUSTER
    and workflow.local_exec
    and "gpu" not in workflow.global_resources
    and (here := gpu_locks.visible())
):
    workflow.register_resource("gpu", len(here))


onstart:
    if workflow.is_main_process:
        Path(WORK).mkdir(parents=True, exist_ok=True)
        lock_file = open(f"{WORK}/.lock", "w")
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkflowError(
                f"another snakemake is at work in {WORK}: wait for it, or set `work` and `results` to other folders"
            )
        submits = any(not job.is_local for job in workflow.dag.needrun_jobs())
        if CLUSTER and submits and (found := orphans.cancel(Path(WORK))):
            print(
                f"Cancelled {', '.join(found)}: jobs of a snakemake that was killed; their work is gone on from."
            )

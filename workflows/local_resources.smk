# Limits of this machine: jobs run side by side in up to half of its memory (a job that needs more runs alone), each GPU
# belongs to one job, and one Snakemake at a time writes to a work folder. That lock is the kernel's and ends with its
# process; Snakemake's own locks, which the default profile turns off, would block the restart of a run that was killed.

import filelock
import psutil

from contracts import gpu_locks

LOCAL = not CLUSTER and workflow.local_exec
WORK_LOCK = filelock.FileLock(f"{WORK}/.lock", blocking=False)

if LOCAL and config["scale"] == "demo" and "mem_mb" not in workflow.global_resources:
    workflow.register_resource("mem_mb", psutil.virtual_memory().total // 2 // 10**6)

# Snakemake only counts GPUs; contracts/gpu_locks.py assigns them to jobs.
if LOCAL and "gpu" not in workflow.global_resources and (gpus := gpu_locks.visible()):
    workflow.register_resource("gpu", len(gpus))


onstart:
    jobs = list(workflow.dag.needrun_jobs())
    # `snakemake help` and the like write nothing and may run beside another Snakemake.
    if workflow.is_main_process and any(job.output for job in jobs):
        Path(WORK).mkdir(parents=True, exist_ok=True)
        try:
            WORK_LOCK.acquire()
        except filelock.Timeout:
            raise WorkflowError(
                f"another snakemake uses the folder {WORK}: wait until it ends, or set `work` and `results` to other"
                " folders"
            )
        submits = any(not job.is_local for job in jobs)
        if CLUSTER and submits and (found := orphaned_jobs.cancel(Path(WORK))):
            print(
                f"Cancelled {', '.join(found)}: jobs of a snakemake that was killed; new jobs resume their work."
            )

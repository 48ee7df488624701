# Limits of this machine: jobs run side by side in up to two thirds of its memory (a job that needs more runs alone), each GPU
# belongs to one job, and one Snakemake at a time writes to the folders `work` and `results`. Their locks are the kernel's
# and end with their process; Snakemake's own locks, which the default profile turns off, would block the restart of a
# run that was killed.

import signal

import psutil

from system import errors
from system import gpu_locks
from system import work_lock

LOCAL = not CLUSTER and workflow.local_exec
WRITTEN = work_lock.Folders([Path(WORK), Path(RESULTS)])

without_gpus = all(run.device == "cpu" for run in RUNS.values())
if LOCAL and without_gpus and "mem_mb" not in workflow.global_resources:
    workflow.register_resource(
        "mem_mb", psutil.virtual_memory().total * 2 // 3 // 10**6
    )

# Snakemake only counts GPUs; system/gpu_locks.py assigns them to jobs.
if LOCAL and "gpu" not in workflow.global_resources and (gpus := gpu_locks.visible()):
    workflow.register_resource("gpu", len(gpus))


def keep_finished(jobs):
    """Stop before finished results are made again for no other reason than that their environment is built."""
    environments = [job for job in jobs if job.rule.name == "environment"]
    built = {str(job.output[0]) for job in environments}
    again = []
    for job in jobs:
        reason = workflow.dag.reason(job)
        updated = {str(file) for file in reason.updated_input_run}
        own = reason.params_changed or reason.input_changed or reason.updated_input
        finished = all(Path(file).exists() for file in job.output)
        if finished and updated and updated <= built and not (own or reason.forced):
            again += [job for file in job.output[:1] if file.startswith(RESULTS)]
    if again:
        commands = " && ".join(
            f"python3.11 envs/build.py {job.wildcards.env} --device {job.wildcards.device}"
            for job in environments
        )
        sentence = (
            f"{len(again)} finished results would be made again because their environment is not built here, the first "
            f"is {again[0].output[0]}: build it first ({commands}), then give the same command"
        )
        raise refusal(
            UserError(sentence, code="environment-not-built", results=len(again))
        )


def say_cost(jobs):
    """Say what is trained on GPUs before it is; refuse to train all runs without having been told so."""
    plans = run_plan.run_plans(jobs, RUNS)
    of_all = {"reproduce_all", "report", "evaluate", "grade", "contamination"}
    chosen = (
        config["reproduce"] != "all"
        or "reproduce" in workflow.config_settings.config
        or not of_all & {job.rule.name for job in workflow.dag.targetjobs}
    )
    if error := run_plan.refusal_of_all(plans, chosen):
        raise refusal(error)
    if any(plan.hours_at_most for plan in plans):
        print(f"To be trained: {run_plan.cost_text(plans)}.", file=sys.stderr)


def check_gpu(jobs):
    """Refuse jobs for a GPU on a machine without one before gigabytes are installed for them."""
    named = {job.rule.name for job in jobs}
    installed = [
        job
        for job in jobs
        if job.rule.name == "environment" and job.wildcards.device == "cuda"
    ]
    wanted = installed and named - {"environment", "environments"}
    if LOCAL and wanted and not gpu_locks.visible():
        sentence = (
            "these jobs need a GPU, and nvidia-smi lists none here: add --profile slurm to send them to a cluster, or ask "
            "for the CPU (scale=demo; device=cpu to evaluate a model); `snakemake environments` installs without one"
        )
        raise refusal(UserError(sentence, code="missing-gpu"))


onstart:
    jobs = list(workflow.dag.needrun_jobs())
    if [job.rule.name for job in jobs] == ["watch"]:
        # Ctrl-C ends the page's server alone; Snakemake would call it a failure.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # `snakemake help` and the like write nothing and may run beside another Snakemake.
    if workflow.is_main_process and any(job.output for job in jobs):
        keep_finished(jobs)
        check_gpu(jobs)
        say_cost(jobs)
        try:
            WRITTEN.acquire()
        except (UserError, OSError) as error:
            raise refusal(
                errors.as_user_error(error)
                or UserError(str(error), code="unusable-path")
            ) from None
        if CLUSTER:
            for line in SUBMISSIONS.settle(workflow.dag):
                print(line)

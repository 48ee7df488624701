# Resources of the jobs: sbatch options where the configuration names a cluster (profiles/slurm/cluster.yaml), else what
# Snakemake counts on this machine.

import os

from cluster import ended_jobs
from cluster import interrupt
from cluster import orphaned_jobs
from cluster import retry_interrupted
from cluster import slurm
from cluster import submission
from cluster.job_resources import Need, resources_for_attempt

CLUSTER = config["cluster"]
IN_JOB = not workflow.is_main_process and "SLURM_JOB_ID" in os.environ

if CLUSTER and workflow.is_main_process:
    import snakemake.executors.local
    import snakemake_executor_plugin_slurm

    for module in (snakemake_executor_plugin_slurm, snakemake.executors.local):
        retry_interrupted.retry_only_interrupted(module.Executor, Path(WORK))
    executor = snakemake_executor_plugin_slurm.Executor
    orphaned_jobs.name_jobs(executor, Path(WORK))
    SUBMISSIONS = orphaned_jobs.pick_up(executor, Path(WORK))
    ended_jobs.notice_ended(executor, Path(WORK), logger.warning)
    submission.be_patient(snakemake_executor_plugin_slurm, logger.warning)
    INTERRUPT.texts = interrupt.ON_A_CLUSTER
    if not (workflow.local_exec or workflow.dryrun):
        # More would be refused, and wait for one another.
        limit = slurm.submit_limit(
            CLUSTER["account"], CLUSTER["qos"], slurm.partitions_of(CLUSTER)
        )
        if limit and limit < workflow.nodes:
            workflow.register_resource("_nodes", limit)

if CLUSTER and workflow.remote_exec:
    # Compute nodes may have no network. Local rules on the login node have downloaded everything.
    os.environ.update(HF_HUB_OFFLINE="1")

if CLUSTER:
    # A login shell defines `module`, also where jobs start with an empty environment.
    modules = " ".join(CLUSTER["modules"])
    load = (
        f"type module > /dev/null 2>&1 || source /etc/profile; module load {modules}; "
    )
    shell.prefix(
        (load if modules else "")
        + "set -euo pipefail; "  # Snakemake's own prefix, which this one replaces
        + (retry_interrupted.record_exit_status(Path(WORK)) if IN_JOB else "")
    )


def resources_for(need):
    """The `resources` of a rule, from a Need or a function from wildcards to a Need."""

    def resource(key):
        def value(wildcards, attempt):
            job_need = need if isinstance(need, Need) else need(wildcards)
            return resources_for_attempt(job_need, CLUSTER, attempt).get(key)

        return value

    # Snakemake calls each several times per job, so there is none for what this machine does not ask.
    keys = resources_for_attempt(Need(memory_mb=0, minutes=0), CLUSTER)
    return {key: resource(key) for key in keys}


def training_need(run):
    hardware = run.hardware
    return Need(
        memory_mb=int(hardware["memory_gb"] * 1000),
        minutes=int(hardware["hours"] * 60),
        gpus=hardware["gpus"],
        nodes=hardware.get("nodes", 1),
        cpus=hardware["cpus"],
    )


def warm_up_need(device):
    """2.9 GB were measured for 135 million weights on a CPU; models of billions are for a GPU."""
    on_gpu = device == "cuda"
    return Need(memory_mb=64000 if on_gpu else 6000, minutes=240, gpus=int(on_gpu))


def generation_need(run):
    gpus = generation_gpus(run)
    return Need(
        memory_mb=max(64000, 16000 * gpus) if gpus else 4000,
        minutes=int(run.evaluation.get("hours", 4) * 60),
        gpus=gpus,
        cpus=min(8 * gpus, run.hardware["cpus"]) or 1,
    )


def export_need(run):
    return Need(memory_mb=64000 if run.hardware["gpus"] else 1000, minutes=60)


def job_kinds():
    """Name and Need of every kind of job of the configured runs."""
    jobs = {"grading and tables": Need(memory_mb=4000, minutes=60)}
    for run in (RUNS[name] for name in CHOSEN):
        jobs[f"training {run.name}"] = training_need(run)
        jobs[f"exporting {run.name}"] = export_need(run)
        jobs[f"generating {run.name}"] = generation_need(run)
    return [{"name": name, **asdict(need)} for name, need in jobs.items()]

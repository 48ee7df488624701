# What is asked of a cluster before anything is queued, and of what it has done.


localrules:
    jobs_asked_for,
    preflight,
    capacity,
    efficiency,


rule jobs_asked_for:
    output:
        f"{WORK}/cluster/jobs.json",
    log:
        f"logs/{config['scale']}/jobs_asked_for.log",
    params:
        cluster=CLUSTER,
        jobs=jobs_asked_for(),
    run:
        asked = {"cluster": params.cluster, "jobs": params.jobs}
        Path(output[0]).write_text(json.dumps(asked, indent=1))


rule preflight:
    input:
        f"{WORK}/cluster/jobs.json",
    log:
        f"logs/{config['scale']}/preflight.log",
    params:
        base=BASE,
        first_look=lambda wildcards: getattr(
            workflow.executor_settings, "init_seconds_before_status_checks", 40
        ),
    shell:
        "{params.base} -m cluster.preflight {input} --first-look {params.first_look} 2>&1 | tee {log}"


# These two have no output for Snakemake: asked again, they look again.
rule capacity:
    log:
        f"logs/{config['scale']}/capacity.log",
    params:
        base=BASE,
        page=f"{RESULTS}/capacity.md",
        runs=" ".join(f"{name}={generation_gpus(RUNS[name])}" for name in ASKED),
        size=f"--gpu-memory-gb {CLUSTER['gpu_memory_gb']}" if CLUSTER else "",
        seeds=len(config["seeds"]),
    shell:
        f"{{params.base}} -m cluster.capacity --run {{params.runs}} --scale {config['scale']} --results {RESULTS}"
        " --seeds {params.seeds} {params.size} --output {params.page} 2>&1 | tee {log}"


rule efficiency:
    log:
        f"logs/{config['scale']}/efficiency.log",
    params:
        base=BASE,
        page=f"{RESULTS}/efficiency.md",
    shell:
        "{params.base} -m cluster.efficiency --output {params.page} 2>&1 | tee {log}"

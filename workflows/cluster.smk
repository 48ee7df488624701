# Checks and estimates before jobs are queued, and a report of what they used.


localrules:
    job_kinds,
    preflight,
    capacity,
    efficiency,
    doctor,
    gpu_smoke,


rule job_kinds:
    output:
        f"{WORK}/cluster/jobs.json",
    log:
        f"logs/{config['scale']}/job_kinds.log",
    params:
        kinds=json.dumps({"cluster": CLUSTER, "jobs": job_kinds()}, indent=1),
    shell:
        "printf %s {params.kinds:q} > {output:q} 2> {log:q}"


rule preflight:
    input:
        f"{WORK}/cluster/jobs.json",
    log:
        f"logs/{config['scale']}/preflight.log",
    params:
        base=BASE,
    shell:
        "{params.base:q} -m cluster.preflight {input:q} 2>&1 | tee {log:q}"


# These declare no output, so that each request runs them again.
rule capacity:
    log:
        f"logs/{config['scale']}/capacity.log",
    params:
        scale=SCALE,
        results=RESULTS,
        base=BASE,
        page=f"{RESULTS}/capacity.md",
        runs=[
            f"{name}={generation_gpus(RUNS[name])}"
            for name in (RUNS if ON_ONE_GPU else CHOSEN)
        ],
        size=["--gpu-memory-gb", CLUSTER["gpu_memory_gb"]] if CLUSTER else [],
        seeds=len(config["seeds"]),
        one_gpu=(
            ["--one-gpu-gb", config["gpu_memory_gb"]]
            if "gpu_memory_gb" in config
            else []
        ),
    shell:
        "{params.base:q} -m cluster.capacity --run {params.runs:q} --scale {params.scale:q} --results {params.results:q}"
        " --seeds {params.seeds:q} {params.size:q} {params.one_gpu:q} --output {params.page:q} 2>&1 | tee {log:q}"


rule efficiency:
    log:
        f"logs/{config['scale']}/efficiency.log",
    params:
        base=BASE,
        page=f"{RESULTS}/efficiency.md",
    shell:
        "{params.base:q} -m cluster.efficiency --output {params.page:q} 2>&1 | tee {log:q}"


rule doctor:
    log:
        f"logs/{config['scale']}/doctor.log",
    params:
        base=BASE,
        runs=CHOSEN,
        mirror=["--mirror"] if config["data_mirror"] else [],
    shell:
        "{params.base:q} -m cluster.doctor --run {params.runs:q} {params.mirror:q} 2>&1 | tee {log:q}"


# Each row asks this workflow for its jobs, in a folder of its own (cluster/gpu_smoke/rows.py).
rule gpu_smoke:
    log:
        f"logs/{config['scale']}/gpu_smoke.log",
    params:
        base=BASE,
        scale=SCALE,
        options=[
            f"--{key}={config[key]}"
            for key in ("rows", "minutes", "interpreter")
            if key in config
        ],
    shell:
        "{params.base:q} -m cluster.gpu_smoke --scale {params.scale:q} {params.options:q} 2>&1 | tee {log:q}"

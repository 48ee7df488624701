# Native training, one job per stage, and its checkpoints in Hugging Face format.

import hashlib


def native_work(run, stage, seed):
    """Folder of a stage's native files: another setting means another folder, so that nothing resumes from it."""
    settings = [asdict(stage), run.rewards, run.prompt, run.model, run.framework, run.hardware["gpus"]]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return f"{WORK}/runs/{run.name}/seed-{seed}/stage-{stage.number}-{digest}"


def stage_work(wildcards):
    return native_work(run_of(wildcards), stage_of(wildcards), wildcards.seed)


def checkpoint_work(wildcards):
    """The native files that a checkpoint is taken from; the base model (step 0) needs none, any stage's will do."""
    run = run_of(wildcards)
    return native_work(run, run.stage_of(max(int(wildcards.step), 1)), wildcards.seed)


def stage_start(wildcards):
    """The checkpoint that a stage starts from: the last one of the stage before it, or the base model."""
    return f"{R}/runs/{run_of(wildcards).name}/seed-{wildcards.seed}/checkpoints/step-{stage_of(wildcards).first_step}"


def checkpoint_source(wildcards):
    """What a checkpoint is exported from: the base model, or the stage that made it."""
    run = run_of(wildcards)
    if int(wildcards.step) == 0:
        return f"{R}/models/{run.model}"
    return f"{R}/runs/{run.name}/seed-{wildcards.seed}/stage-{run.stage_of(int(wildcards.step)).number}/training_log.parquet"


rule train:
    input:
        lambda wildcards: stamp(run_of(wildcards).framework, run_of(wildcards).device),
        ancient(lambda wildcards: f"{WORK}/checked/{run_of(wildcards).framework}.txt"),
        problems=lambda wildcards: f"{R}/data/train/{stage_of(wildcards).dataset}.parquet",
        model=stage_start,
    output:
        log_table=f"{R}/runs/{{recipe}}/{{run}}/seed-{{seed}}/stage-{{stage}}/training_log.parquet",
    log:
        f"logs/{config['scale']}/train/{{recipe}}/{{run}}/seed-{{seed}}/stage-{{stage}}.log",
    params:
        python=lambda wildcards: python(run_of(wildcards).framework, run_of(wildcards).device),
        work=stage_work,
    threads: lambda wildcards: run_of(wildcards).hardware["cpus"]
    resources:
        gpu=lambda wildcards: run_of(wildcards).hardware["gpus"],
        nodes=lambda wildcards: run_of(wildcards).hardware.get("nodes", 1),
        mem_mb=lambda wildcards: int(run_of(wildcards).hardware["memory_gb"] * 1000),
        runtime=lambda wildcards: int(run_of(wildcards).hardware["hours"] * 60),
    shell:
        "{params.python} -m recipes.frameworks train --run {wildcards.recipe}/{wildcards.run}"
        f" --scale {config['scale']}"
        " --seed {wildcards.seed} --stage {wildcards.stage} --problems {input.problems} --model {input.model}"
        " --work {params.work} --output {output.log_table} 2>&1 | tee -a {log}"


rule export:
    input:
        lambda wildcards: stamp(run_of(wildcards).framework, run_of(wildcards).device),
        source=checkpoint_source,
        model=lambda wildcards: f"{R}/models/{run_of(wildcards).model}",
    output:
        directory(f"{R}/runs/{{recipe}}/{{run}}/seed-{{seed}}/checkpoints/step-{{step}}"),
    log:
        f"logs/{config['scale']}/export/{{recipe}}/{{run}}/seed-{{seed}}/step-{{step}}.log",
    params:
        python=lambda wildcards: python(run_of(wildcards).framework, run_of(wildcards).device),
        work=checkpoint_work,
    resources:
        mem_mb=lambda wildcards: 64000 if run_of(wildcards).hardware["gpus"] else 1000,
        runtime=60,
    shell:
        "{params.python} -m recipes.frameworks export --run {wildcards.recipe}/{wildcards.run}"
        f" --scale {config['scale']}"
        " --seed {wildcards.seed} --step {wildcards.step} --model {input.model} --work {params.work}"
        " --output {output} > {log} 2>&1"


rule training_log:
    input:
        lambda wildcards: [
            f"{R}/runs/{run_of(wildcards).name}/seed-{wildcards.seed}/stage-{stage.number}/training_log.parquet"
            for stage in run_of(wildcards).stages
        ],
    output:
        f"{R}/runs/{{recipe}}/{{run}}/seed-{{seed}}/training_log.parquet",
    log:
        f"logs/{config['scale']}/training_log/{{recipe}}/{{run}}/seed-{{seed}}.log",
    params:
        base=BASE,
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{params.base} -m recipes.training_log {input} --output {output} > {log} 2>&1"

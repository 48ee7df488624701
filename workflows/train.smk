# Native training, one job per stage, and export of its checkpoints in Hugging Face format.


rule train:
    input:
        lambda wildcards: environment_stamp(
            run_of(wildcards).framework, run_of(wildcards).device
        ),
        problems=lambda wildcards: FOLDER.problems("train", stage_of(wildcards).dataset),
        model=stage_start,
    output:
        log_table=RUN_FOLDER.stage("{stage}") / "training_log.parquet",
        rollouts=RUN_FOLDER.stage("{stage}") / "rollouts.parquet",
    log:
        f"logs/{config['scale']}/train/{{recipe}}/{{run}}/seed-{{seed}}/stage-{{stage}}.log",
    threads: training_threads
    resources:
        **resources_for(lambda wildcards: training_need(run_of(wildcards))),
    params:
        scale=SCALE,
        python=lambda wildcards: python(
            run_of(wildcards).framework, run_of(wildcards).device
        ),
        work=unrecorded(stage_work),
        collapse=unrecorded(collapse_options),
        one_gpu=unrecorded(one_gpu_options),
        settings=lambda wildcards: training_hash(
            run_of(wildcards).name, int(wildcards.stage)
        ),
    shell:
        "{params.python:q} -m frameworks train --run {wildcards.recipe:q}/{wildcards.run:q}"
        " --scale {params.scale:q}"
        " --seed {wildcards.seed:q} --stage {wildcards.stage:q} --problems {input.problems:q} --model {input.model:q}"
        " --work {params.work:q} --output {output.log_table:q} --rollouts {output.rollouts:q}"
        " {params.collapse:q} {params.one_gpu:q} 2>&1 | tee -a {log:q}"


# The framework's own command on the same data, timed: `crosszero benchmark --bare` asks for it.
rule bare_training:
    input:
        lambda wildcards: environment_stamp(
            run_of(wildcards).framework, run_of(wildcards).device
        ),
        problems=lambda wildcards: FOLDER.problems("train", stage_of(wildcards).dataset),
        model=stage_start,
    output:
        RUN_FOLDER.bare_training("{stage}"),
    log:
        f"logs/{config['scale']}/bare_training/{{recipe}}/{{run}}/seed-{{seed}}/stage-{{stage}}.log",
    threads: training_threads
    resources:
        **resources_for(lambda wildcards: training_need(run_of(wildcards))),
    params:
        scale=SCALE,
        python=lambda wildcards: python(
            run_of(wildcards).framework, run_of(wildcards).device
        ),
        work=unrecorded(lambda wildcards: f"{stage_work(wildcards)}-bare"),
        one_gpu=unrecorded(one_gpu_options),
        settings=lambda wildcards: training_hash(
            run_of(wildcards).name, int(wildcards.stage)
        ),
    shell:
        "{params.python:q} -m frameworks bare --run {wildcards.recipe:q}/{wildcards.run:q}"
        " --scale {params.scale:q}"
        " --seed {wildcards.seed:q} --stage {wildcards.stage:q} --problems {input.problems:q} --model {input.model:q}"
        " --work {params.work:q} --output {output:q} {params.one_gpu:q} > {log:q} 2>&1"


rule export:
    input:
        lambda wildcards: environment_stamp(
            run_of(wildcards).framework, run_of(wildcards).device
        ),
        source=checkpoint_source,
        model=lambda wildcards: FOLDER.model(run_of(wildcards).model),
    output:
        directory(RUN_FOLDER.checkpoint("{step}")),
    log:
        f"logs/{config['scale']}/export/{{recipe}}/{{run}}/seed-{{seed}}/step-{{step}}.log",
    resources:
        **resources_for(lambda wildcards: export_need(run_of(wildcards))),
    params:
        scale=SCALE,
        python=lambda wildcards: python(
            run_of(wildcards).framework, run_of(wildcards).device
        ),
        work=unrecorded(checkpoint_work),
    shell:
        "{params.python:q} -m frameworks export --run {wildcards.recipe:q}/{wildcards.run:q}"
        " --scale {params.scale:q}"
        " --seed {wildcards.seed:q} --step {wildcards.step:q} --model {input.model:q} --work {params.work:q}"
        " --source {input.source:q} --output {output:q} > {log:q} 2>&1"


rule training_log:
    input:
        lambda wildcards: [
            folder_of(wildcards).stage(stage.number) / "training_log.parquet"
            for stage in run_of(wildcards).stages
        ],
    output:
        RUN_FOLDER.training_log,
    log:
        f"logs/{config['scale']}/training_log/{{recipe}}/{{run}}/seed-{{seed}}.log",
    resources:
        **resources_for(Need(memory_mb=1000, minutes=10)),
    params:
        base=BASE,
    shell:
        "{params.base:q} -m frameworks.join_stage_logs {input:q} --output {output:q} > {log:q} 2>&1"

# Problem tables of training sets and benchmarks, their overlap, and base models.


localrules:
    problems,
    base_model,


MIRROR = ["--mirror", config["data_mirror"]] if config["data_mirror"] else []


MODEL_MIRROR = ["--mirror", config["model_mirror"]] if config["model_mirror"] else []


rule problems:
    output:
        table=FOLDER.problems("{kind}", "{dataset}"),
        record=paths.record(FOLDER.problems("{kind}", "{dataset}")),
    log:
        f"logs/{config['scale']}/data/{{kind}}/{{dataset}}.log",
    wildcard_constraints:
        kind="train|benchmarks",
        dataset="[a-z0-9_]+",
    params:
        mirror=unrecorded(MIRROR),
        settings=lambda wildcards: fingerprint(
            DATA[wildcards.dataset].settings(bool(MIRROR))
        ),
        base=BASE,
    shell:
        "{params.base:q} -m tasks.load_problems {wildcards.dataset:q} --output {output.table:q} {params.mirror:q}"
        " > {log:q} 2>&1"


rule overlap:
    input:
        train=lambda wildcards: sorted(
            {
                FOLDER.problems("train", stage.dataset)
                for name in runs_of(wildcards.which)
                for stage in RUNS[name].stages
            }
        ),
        benchmarks=lambda wildcards: sorted(
            {
                FOLDER.problems("benchmarks", name)
                for run in runs_of(wildcards.which)
                for name in RUNS[run].evaluation["benchmarks"]
            }
        ),
    output:
        table=FOLDER.overlap("{which}"),
        page=FOLDER.overlap("{which}").with_suffix(".md"),
        pairs=FOLDER.overlap("{which}").with_suffix(".pairs.csv"),
    log:
        f"logs/{config['scale']}/data/overlap/{{which}}.log",
    wildcard_constraints:
        which=r"[^/]+(?<!\.pairs)",
    resources:
        **resources_for(Need(memory_mb=4000, minutes=30)),
    params:
        base=BASE,
    shell:
        "{params.base:q} -m tasks.overlap --train {input.train:q} --benchmark {input.benchmarks:q}"
        " --output {output.table:q} > {log:q} 2>&1"


ruleorder: warm_up > base_model


rule base_model:
    input:
        lambda wildcards: (
            environment_stamp(
                MODELS[wildcards.model]["environment"], maker_device(wildcards.model)
            )
            if "environment" in MODELS[wildcards.model]
            else []
        ),
        gguf=lambda wildcards: models.own_file(MODELS[wildcards.model]),
    output:
        directory(FOLDER.model("{model}")),
    log:
        f"logs/{config['scale']}/models/{{model}}.log",
    priority: 1  # trainings wait for it
    threads: 1
    resources:
        **resources_for(Need(memory_mb=4000, minutes=240)),
    params:
        python=lambda wildcards: (
            python(
                MODELS[wildcards.model].get("environment", "base"),
                maker_device(wildcards.model),
            )
        ),
        settings=lambda wildcards: fingerprint(model_settings_of(wildcards.model)),
        source=unrecorded(lambda wildcards: model_source(wildcards.model)),
    shell:
        "OMP_NUM_THREADS={threads:q} OMP_WAIT_POLICY=passive {params.python:q} -m recipes.models {wildcards.model:q}"
        " --output {output:q} {params.source:q} 2>&1 | tee {log:q}"


# A base model that is another one after supervised training.
rule warm_up:
    input:
        lambda wildcards: environment_stamp(
            MODELS[wildcards.model]["environment"], maker_device(wildcards.model)
        ),
        base=lambda wildcards: FOLDER.model(MODELS[wildcards.model]["warm_up"]["model"]),
    output:
        directory(FOLDER.model("{model}")),
    log:
        f"logs/{config['scale']}/models/{{model}}.log",
    wildcard_constraints:
        model="|".join(map(re.escape, WARMED_UP)) or "(?!)",
    priority: 1  # trainings wait for it
    threads: 1
    resources:
        **resources_for(lambda wildcards: warm_up_need(maker_device(wildcards.model))),
    params:
        python=lambda wildcards: (
            python(
                MODELS[wildcards.model]["environment"], maker_device(wildcards.model)
            )
        ),
        device=unrecorded(lambda wildcards: maker_device(wildcards.model)),
        settings=lambda wildcards: fingerprint(model_settings_of(wildcards.model)),
    shell:
        "OMP_NUM_THREADS={threads:q} OMP_WAIT_POLICY=passive {params.python:q} -m frameworks.warm_up"
        " {wildcards.model:q} --model {input.base:q} --device {params.device:q} --output {output:q} 2>&1 | tee {log:q}"

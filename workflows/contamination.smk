# snakemake contamination: has the base model of a run read its benchmarks? It continues the beginnings of their questions.


localrules:
    contamination,
    beginnings,


PROBE = probe_folder(seeds.run_id("{recipe}/{run}", "{seed}"))


rule beginnings:
    input:
        FOLDER.problems("benchmarks", "{benchmark}"),
    output:
        FOLDER.beginnings("{benchmark}"),
    log:
        f"logs/{config['scale']}/data/contamination/{{benchmark}}.log",
    wildcard_constraints:
        benchmark="[a-z0-9_]+",
    params:
        base=BASE,
        data=DATA_FOLDER,
    shell:
        "{params.base:q} -m eval.contamination problems {wildcards.benchmark:q} --data {params.data:q} --output {output:q}"
        " > {log:q} 2>&1"


rule complete_beginnings:
    input:
        lambda wildcards: stamp("eval", run_of(wildcards).device),
        model=lambda wildcards: folder_of(wildcards).checkpoint(0),
        problems=lambda wildcards: [
            FOLDER.beginnings(name) for name in benchmarks_of(wildcards)
        ],
    output:
        directory(PROBE / "samples"),
    log:
        f"logs/{config['scale']}/contamination/{{recipe}}/{{run}}/seed-{{seed}}.log",
    threads: 1
    resources:
        **asks(lambda wildcards: generation_need(run_of(wildcards))),
    params:
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        run=lambda wildcards: seeds.run_id(run_of(wildcards).name, wildcards.seed),
        data=unrecorded(str(FOLDER.beginnings("x").parent)),
        work=unrecorded(
            lambda wildcards: f"{WORK}/contamination/{wildcards.recipe}/{wildcards.run}/seed-{wildcards.seed}"
        ),
        benchmarks=lambda wildcards: list(benchmarks_of(wildcards)),
        # Short models have a shorter limit than the protocol's.
        limit=lambda wildcards: [
            word
            for key, value in run_of(wildcards).evaluation.get("override", {}).items()
            if key == "max_tokens"
            for word in ("--set", f"max_tokens={value}")
        ],
        device=unrecorded(lambda wildcards: run_of(wildcards).device),
        processes=unrecorded(
            lambda wildcards: max(generation_gpus(run_of(wildcards)), 1)
        ),
    shell:
        "{params.python:q} -m eval.generate --run {params.run:q} --checkpoint 0={input.model:q}"
        " --benchmark {params.benchmarks:q} --protocol partial-question {params.limit:q} --seed 0 --data {params.data:q}"
        " --work {params.work:q} --output {output:q} --device {params.device:q} --data-parallel {params.processes:q}"
        " 2>&1 | tee -a {log:q}"


rule measure_contamination:
    input:
        lambda wildcards: stamp("eval", run_of(wildcards).device),
        samples=PROBE / "samples",
        problems=lambda wildcards: [
            FOLDER.beginnings(name) for name in benchmarks_of(wildcards)
        ],
    output:
        graded=directory(PROBE / "graded"),
        table=PROBE / "contamination.csv",
    log:
        f"logs/{config['scale']}/contamination/{{recipe}}/{{run}}/seed-{{seed}}-measured.log",
    resources:
        **asks(Need(memory_mb=4000, minutes=60)),
    params:
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        data=unrecorded(str(FOLDER.beginnings("x").parent)),
        settings=lambda wildcards: grading_hash(benchmarks_of(wildcards)),
    shell:
        "{{ {params.python:q} -m eval.grade --samples {input.samples:q} --data {params.data:q} --output {output.graded:q}"
        " && {params.python:q} -m eval.contamination measure --graded {output.graded:q} --data {params.data:q}"
        " --output {output.table:q}; }} > {log:q} 2>&1"


rule contamination:
    input:
        lambda wildcards: [FOLDER.contamination(run_id) for run_id in RUN_IDS],

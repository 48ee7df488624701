# snakemake contamination: has the base model of a run read its benchmarks? It continues the beginnings of their questions.


localrules:
    contamination,
    beginnings,


PROBE = probe_folder(seeds.run_id("{recipe}/{run}", "{seed}"))
BEGINNINGS = str(FOLDER.beginnings("x").parent)


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
        lambda wildcards: environment_stamp("eval", run_of(wildcards).device),
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
        **resources_for(lambda wildcards: generation_need(run_of(wildcards))),
    params:
        command=lambda wildcards, input, output: commands.generate(
            python("eval", run_of(wildcards).device),
            run=seeds.run_id(run_of(wildcards).name, wildcards.seed),
            checkpoints={0: input.model},
            benchmarks=benchmarks_of(wildcards),
            data=BEGINNINGS,
            work=f"{WORK}/contamination/{wildcards.recipe}/{wildcards.run}/seed-{wildcards.seed}",
            output=output[0],
            sampling=commands.sampling_options(
                "partial-question",
                completion_limit(wildcards),
                run_of(wildcards).device,
                processes=max(generation_gpus(run_of(wildcards)), 1),
            ),
        ),
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        run=lambda wildcards: seeds.run_id(run_of(wildcards).name, wildcards.seed),
        benchmarks=lambda wildcards: list(benchmarks_of(wildcards)),
        limit=lambda wildcards: commands.set_options(completion_limit(wildcards)),
    shell:
        "{params.command:q} 2>&1 | tee -a {log:q}"


rule measure_contamination:
    input:
        lambda wildcards: environment_stamp("eval", run_of(wildcards).device),
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
        **resources_for(Need(memory_mb=4000, minutes=60)),
    params:
        grade=lambda wildcards, input, output: commands.grade(
            python("eval", run_of(wildcards).device),
            samples=input.samples,
            data=BEGINNINGS,
            output=output.graded,
        ),
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        data=unrecorded(BEGINNINGS),
        settings=lambda wildcards: grading_hash(benchmarks_of(wildcards)),
    shell:
        "{{ {params.grade:q}"
        " && {params.python:q} -m eval.contamination measure --graded {output.graded:q} --data {params.data:q}"
        " --output {output.table:q}; }} > {log:q} 2>&1"


rule contamination:
    input:
        contamination_tables,

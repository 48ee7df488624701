# Samples of every checkpoint with vLLM, their verdicts, and scores. One job generates for all checkpoints and benchmarks
# of a run, because importing vLLM takes longer than a small evaluation. Unfinished samples are kept in the work folder.

REGRADED = RUN_FOLDER.regraded("{grader}", "{extraction}")


rule generate_samples:
    input:
        lambda wildcards: stamp("eval", run_of(wildcards).device),
        checkpoints=checkpoints_of,
        problems=benchmark_tables,
    output:
        directory(RUN_FOLDER.samples),
    log:
        f"logs/{config['scale']}/generate/{{recipe}}/{{run}}/seed-{{seed}}.log",
    threads: 1
    resources:
        **asks(lambda wildcards: generation_need(run_of(wildcards))),
    params:
        data=DATA_FOLDER,
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        run=lambda wildcards: seeds.run_id(run_of(wildcards).name, wildcards.seed),
        work=unrecorded(lambda wildcards: str(work_of(wildcards).samples)),
        checkpoints=lambda wildcards, input: [
            word
            for path in input.checkpoints
            for word in ("--checkpoint", f"{steps.parse(Path(path).name)}={path}")
        ],
        benchmarks=unrecorded(lambda wildcards: benchmarks_of(wildcards)),
        protocol=unrecorded(lambda wildcards: run_of(wildcards).evaluation["protocol"]),
        overrides=unrecorded(overrides),
        device=unrecorded(lambda wildcards: run_of(wildcards).device),
        processes=unrecorded(
            lambda wildcards: max(generation_gpus(run_of(wildcards)), 1)
        ),
        settings=lambda wildcards: sampling_hash(
            run_of(wildcards).name, benchmarks_of(wildcards)
        ),
    shell:
        "{params.python:q} -m eval.generate --run {params.run:q}"
        " {params.checkpoints:q} --benchmark {params.benchmarks:q} --protocol {params.protocol:q} {params.overrides:q}"
        " --seed {wildcards.seed:q} --data {params.data:q}"
        " --work {params.work:q} --output {output:q} --device {params.device:q} --data-parallel {params.processes:q}"
        " 2>&1 | tee -a {log:q}"


rule grade_samples:
    input:
        lambda wildcards: stamp("eval", run_of(wildcards).device),
        samples=RUN_FOLDER.samples,
        problems=benchmark_tables,
    output:
        directory(RUN_FOLDER.graded),
    log:
        f"logs/{config['scale']}/grade/{{recipe}}/{{run}}/seed-{{seed}}.log",
    threads: 1
    resources:
        **asks(Need(memory_mb=4000, minutes=60)),
    params:
        data=DATA_FOLDER,
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        extraction=lambda wildcards: extraction_of(run_of(wildcards).name),
        settings=lambda wildcards: grading_hash(benchmarks_of(wildcards)),
    shell:
        "{params.python:q} -m eval.grade --samples {input.samples:q}"
        " --data {params.data:q}"
        " --extraction {params.extraction:q} --output {output:q} > {log:q} 2>&1"


rule score_run:
    input:
        graded=RUN_FOLDER.graded,
        problems=benchmark_tables,
    output:
        RUN_FOLDER.scores,
    log:
        f"logs/{config['scale']}/score/{{recipe}}/{{run}}/seed-{{seed}}.log",
    resources:
        **asks(Need(memory_mb=2000, minutes=30)),
    params:
        data=DATA_FOLDER,
        base=BASE,
    shell:
        "{params.base:q} -m eval.score --graded {input.graded:q}"
        " --problems {params.data:q}"
        " --output {output:q} > {log:q} 2>&1"


# Grade with another grader or extraction rule, into a folder of its own: never over the verdicts that reports use.
rule regrade_samples:
    input:
        lambda wildcards: stamp("eval", run_of(wildcards).device),
        samples=RUN_FOLDER.samples,
        problems=benchmark_tables,
    output:
        directory(REGRADED.graded),
    log:
        f"logs/{config['scale']}/grade/{{recipe}}/{{run}}/seed-{{seed}}.{{grader}}+{{extraction}}.log",
    threads: 1
    resources:
        **asks(Need(memory_mb=4000, minutes=60)),
    params:
        data=DATA_FOLDER,
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        extraction=lambda wildcards: (
            extraction_of(run_of(wildcards).name)
            if wildcards.extraction == "protocol"
            else wildcards.extraction
        ),
        settings=lambda wildcards: grading_hash(benchmarks_of(wildcards)),
    shell:
        "{params.python:q} -m eval.grade --samples {input.samples:q}"
        " --data {params.data:q}"
        " --grader {wildcards.grader:q} --extraction {params.extraction:q} --output {output:q} > {log:q} 2>&1"


use rule score_run as score_regraded with:
    input:
        graded=REGRADED.graded,
        problems=benchmark_tables,
    output:
        REGRADED.scores,
    log:
        f"logs/{config['scale']}/score/{{recipe}}/{{run}}/seed-{{seed}}.{{grader}}+{{extraction}}.log",


# For check_recipes; the runs of the configured scale are checked whenever the workflow starts.
rule validate_evaluations:
    input:
        [str(run.file) for run in RUNS.values()],
        "eval/protocols.yaml",
    output:
        f"{WORK}/checked_evaluations.txt",
    log:
        f"logs/{config['scale']}/check/evaluations.log",
    resources:
        **asks(Need(memory_mb=1000, minutes=10)),
    params:
        base=BASE,
    shell:
        "{params.base:q} -m eval.runs > {output:q} 2> {log:q}"

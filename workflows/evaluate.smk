# Samples of every checkpoint with vLLM, their verdicts, and scores. One job generates for all checkpoints and benchmarks
# of a run, because importing vLLM takes longer than a small evaluation. Unfinished samples are kept in the work folder.
# A `command` is not recorded, as it names inputs and outputs: the other params say when a result is made again.

# `--config limit=50`: beside the whole, never in its place.
EVALUATED = RUN_FOLDER.limited(SUBSET.folder) if SUBSET else RUN_FOLDER
REGRADED = EVALUATED.regraded("{grader}", "{extraction}")


rule generate_samples:
    input:
        lambda wildcards: environment_stamp("eval", run_of(wildcards).device),
        checkpoints=checkpoints_of,
        problems=benchmark_tables,
    output:
        directory(EVALUATED.samples),
    log:
        f"logs/{config['scale']}/generate/{{recipe}}/{{run}}/seed-{{seed}}.log",
    threads: 1
    resources:
        **resources_for(lambda wildcards: generation_need(run_of(wildcards))),
    params:
        command=lambda wildcards, input, output: commands.generate(
            python("eval", run_of(wildcards).device),
            run=seeds.run_id(run_of(wildcards).name, wildcards.seed),
            checkpoints=checkpoint_folders(input.checkpoints),
            benchmarks=benchmarks_of(wildcards),
            data=FOLDER.benchmarks,
            work=work_of(wildcards).samples,
            output=output[0],
            sampling=commands.run_sampling_options(
                run_of(wildcards), seed=wildcards.seed, subset=SUBSET
            ),
        ),
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        run=lambda wildcards: seeds.run_id(run_of(wildcards).name, wildcards.seed),
        settings=lambda wildcards: sampling_hash(
            run_of(wildcards).name, benchmarks_of(wildcards)
        ),
    shell:
        "{params.command:q} 2>&1 | tee -a {log:q}"


rule grade_samples:
    input:
        lambda wildcards: environment_stamp("eval", run_of(wildcards).device),
        samples=EVALUATED.samples,
        problems=benchmark_tables,
    output:
        directory(EVALUATED.graded),
    log:
        f"logs/{config['scale']}/grade/{{recipe}}/{{run}}/seed-{{seed}}.log",
    threads: 1
    resources:
        **resources_for(Need(memory_mb=4000, minutes=60)),
    params:
        command=lambda wildcards, input, output: commands.grade(
            python("eval", run_of(wildcards).device),
            samples=input.samples,
            data=FOLDER.benchmarks,
            output=output[0],
            extraction=extraction_of(run_of(wildcards).name),
        ),
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        extraction=lambda wildcards: extraction_of(run_of(wildcards).name),
        settings=lambda wildcards: grading_hash(benchmarks_of(wildcards)),
    shell:
        "{params.command:q} > {log:q} 2>&1"


rule score_run:
    input:
        graded=EVALUATED.graded,
        problems=benchmark_tables,
    output:
        EVALUATED.scores,
    log:
        f"logs/{config['scale']}/score/{{recipe}}/{{run}}/seed-{{seed}}.log",
    resources:
        **resources_for(Need(memory_mb=2000, minutes=30)),
    params:
        command=lambda wildcards, input, output: commands.score(
            python("base", "cpu"),
            graded=input.graded,
            data=FOLDER.benchmarks,
            output=output[0],
        ),
    shell:
        "{params.command:q} > {log:q} 2>&1"


# Grade with another grader or extraction rule, into a folder of its own: never over the verdicts that reports use.
use rule grade_samples as regrade_samples with:
    output:
        directory(REGRADED.graded),
    log:
        f"logs/{config['scale']}/grade/{{recipe}}/{{run}}/seed-{{seed}}.{{grader}}+{{extraction}}.log",
    params:
        command=lambda wildcards, input, output: commands.grade(
            python("eval", run_of(wildcards).device),
            samples=input.samples,
            data=FOLDER.benchmarks,
            output=output[0],
            extraction=regrading_extraction(wildcards),
            grader=wildcards.grader,
        ),
        extraction=lambda wildcards: regrading_extraction(wildcards),


use rule score_run as score_regraded with:
    input:
        graded=REGRADED.graded,
        problems=benchmark_tables,
    output:
        REGRADED.scores,
    log:
        f"logs/{config['scale']}/score/{{recipe}}/{{run}}/seed-{{seed}}.{{grader}}+{{extraction}}.log",


# For parse_runs; the runs of the configured scale are checked whenever the workflow starts.
rule validate_evaluations:
    input:
        [str(run.file) for run in RUNS.values()],
        "eval/protocols.yaml",
    output:
        f"{WORK}/parsed_runs/evaluations.txt",
    log:
        f"logs/{config['scale']}/parse_runs/evaluations.log",
    resources:
        **resources_for(Need(memory_mb=1000, minutes=10)),
    params:
        base=BASE,
    shell:
        "{params.base:q} -m eval.run_settings > {output:q} 2> {log:q}"

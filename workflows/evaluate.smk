# Samples of every checkpoint with vLLM, graded by replay, scored. One job generates for all checkpoints and benchmarks of
# a run, because importing vLLM costs more than a small evaluation; finished samples stay in the work folder.


rule generate_samples:
    input:
        lambda wildcards: stamp("eval", run_of(wildcards).device),
        checkpoints=checkpoints_of,
        problems=benchmark_tables,
    output:
        directory(f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/samples"),
    log:
        f"logs/{config['scale']}/generate/{{recipe}}/{{run}}/seed-{{seed}}.log",
    threads: 1
    resources:
        **asks(lambda wildcards: generation_need(run_of(wildcards))),
    params:
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        work=lambda wildcards: f"{WORK}/runs/{run_of(wildcards).name}/seed-{wildcards.seed}/samples",
        checkpoints=lambda wildcards, input: " ".join(
            f"--checkpoint {path.rpartition('-')[2]}={path}"
            for path in input.checkpoints
        ),
        benchmarks=lambda wildcards: " ".join(
            run_of(wildcards).evaluation["benchmarks"]
        ),
        protocol=lambda wildcards: run_of(wildcards).evaluation["protocol"],
        overrides=overrides,
        device=lambda wildcards: run_of(wildcards).device,
        processes=lambda wildcards: max(generation_gpus(run_of(wildcards)), 1),
    shell:
        "{params.python} -m eval.generate --run {wildcards.recipe}/{wildcards.run}/seed-{wildcards.seed}"
        " {params.checkpoints} --benchmark {params.benchmarks} --protocol {params.protocol} {params.overrides}"
        f" --seed {{wildcards.seed}} --data {RESULTS}/data/benchmarks"
        " --work {params.work} --output {output} --device {params.device} --data-parallel {params.processes}"
        " 2>&1 | tee -a {log}"


rule grade_samples:
    input:
        lambda wildcards: stamp("eval", run_of(wildcards).device),
        samples=f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/samples",
        problems=benchmark_tables,
    output:
        directory(f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/graded"),
    log:
        f"logs/{config['scale']}/grade/{{recipe}}/{{run}}/seed-{{seed}}.log",
    threads: 1
    resources:
        **asks(Need(memory_mb=4000, minutes=60)),
    params:
        python=lambda wildcards: python("eval", run_of(wildcards).device),
    shell:
        "{params.python} -m eval.grade --samples {input.samples}"
        f" --data {RESULTS}/data/benchmarks"
        " --output {output} > {log} 2>&1"


rule score_run:
    input:
        graded=f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/graded",
        problems=benchmark_tables,
    output:
        f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/scores.parquet",
    log:
        f"logs/{config['scale']}/score/{{recipe}}/{{run}}/seed-{{seed}}.log",
    resources:
        **asks(Need(memory_mb=2000, minutes=30)),
    params:
        base=BASE,
    shell:
        "{params.base} -m eval.score --graded {input.graded}"
        f" --problems {RESULTS}/data/benchmarks"
        " --output {output} > {log} 2>&1"


# Grading again, with another grader or another place for answers without a box: never over the verdicts that reports use.
rule regrade_samples:
    input:
        lambda wildcards: stamp("eval", run_of(wildcards).device),
        samples=f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/samples",
        problems=benchmark_tables,
    output:
        directory(
            f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/regraded/{{grader}}+{{extraction}}/graded"
        ),
    log:
        f"logs/{config['scale']}/grade/{{recipe}}/{{run}}/seed-{{seed}}.{{grader}}+{{extraction}}.log",
    threads: 1
    resources:
        **asks(Need(memory_mb=4000, minutes=60)),
    params:
        python=lambda wildcards: python("eval", run_of(wildcards).device),
        fallback=lambda wildcards: (
            ""
            if wildcards.extraction == "protocol"
            else f"--fallback {wildcards.extraction}"
        ),
    shell:
        "{params.python} -m eval.grade --samples {input.samples}"
        f" --data {RESULTS}/data/benchmarks"
        " --grader {wildcards.grader} {params.fallback} --output {output} > {log} 2>&1"


use rule score_run as score_regraded with:
    input:
        graded=f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/regraded/{{grader}}+{{extraction}}/graded",
        problems=benchmark_tables,
    output:
        f"{RESULTS}/runs/{{recipe}}/{{run}}/seed-{{seed}}/regraded/{{grader}}+{{extraction}}/scores.parquet",
    log:
        f"logs/{config['scale']}/score/{{recipe}}/{{run}}/seed-{{seed}}.{{grader}}+{{extraction}}.log",

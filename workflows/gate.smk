# snakemake check --config checkpoint=… baseline=…: what is missing is evaluated as the run that either names (else the
# first of the configuration) is evaluated, then both are compared. Snakemake itself ends with 0 or 1 and no other status;
# which of better, worse, cannot tell and not comparable it is stands in check.json (python -m analysis.gate show).


localrules:
    check,
    check_model,
    compare,


rule check_model:
    output:
        directory(f"{RESULTS}/check/models/{{model}}"),
    log:
        f"logs/{config['scale']}/check/models/{{model}}.log",
    params:
        base=BASE,
        repository=lambda wildcards: next(
            s.name
            for s in (side("checkpoint"), side("baseline"))
            if s.slug == wildcards.model
        ),
    shell:
        "{params.base} -m recipes.models {params.repository} --output {output} > {log} 2>&1"


rule check_generate:
    input:
        lambda wildcards: stamp("eval", check_run().device),
        model=model_folder,
        problems=lambda wildcards: [
            f"{RESULTS}/data/benchmarks/{name}.parquet" for name in check_benchmarks()
        ],
    output:
        directory(f"{RESULTS}/check/samples/{{model}}-{{settings}}/samples"),
    log:
        f"logs/{config['scale']}/check/generate/{{model}}-{{settings}}.log",
    wildcard_constraints:
        settings="[0-9a-f]{8}",
    threads: 1
    resources:
        **asks(lambda wildcards: generation_need(check_run())),
    params:
        python=lambda wildcards: python("eval", check_run().device),
        work=f"{WORK}/check/{{model}}-{{settings}}",
        benchmarks=lambda wildcards: " ".join(check_benchmarks()),
        protocol=lambda wildcards: check_run().evaluation["protocol"],
        overrides=lambda wildcards: overrides_of(check_run()),
        device=lambda wildcards: check_run().device,
        processes=lambda wildcards: max(generation_gpus(check_run()), 1),
    shell:
        "{params.python} -m eval.generate --run check/{wildcards.model}/seed-0 --checkpoint 0={input.model}"
        " --benchmark {params.benchmarks} --protocol {params.protocol} {params.overrides} --seed 0"
        f" --data {RESULTS}/data/benchmarks"
        " --work {params.work} --output {output} --device {params.device} --data-parallel {params.processes}"
        " 2>&1 | tee -a {log}"


rule check_grade:
    input:
        lambda wildcards: stamp("eval", check_run().device),
        samples=f"{RESULTS}/check/samples/{{model}}-{{settings}}/samples",
    output:
        directory(f"{RESULTS}/check/samples/{{model}}-{{settings}}/graded"),
    log:
        f"logs/{config['scale']}/check/grade/{{model}}-{{settings}}.log",
    wildcard_constraints:
        settings="[0-9a-f]{8}",
    resources:
        **asks(Need(memory_mb=4000, minutes=60)),
    params:
        python=lambda wildcards: python("eval", check_run().device),
    shell:
        "{params.python} -m eval.grade --samples {input.samples}"
        f" --data {RESULTS}/data/benchmarks"
        " --output {output} > {log} 2>&1"


rule compare:
    input:
        lambda wildcards: [
            graded_of(key)
            for key in ("checkpoint", "baseline")
            if side(key).kind != "published"
        ],
    output:
        directory(f"{RESULTS}/check/{{pair}}-against-{{other}}"),
    log:
        f"logs/{config['scale']}/check/{{pair}}-against-{{other}}.log",
    wildcard_constraints:
        pair="[^/]+",
        other="[^/]+",
    params:
        base=BASE,
        checkpoint=lambda wildcards: compared_side("checkpoint"),
        checkpoint_name=config.get("checkpoint"),
        baseline=lambda wildcards: compared_side("baseline"),
        baseline_name=config.get("baseline"),
        benchmarks=(
            f"--benchmark {' '.join(config['benchmarks'])}"
            if config.get("benchmarks")
            else ""
        ),
        margin=config.get("margin", 0),
    shell:
        # Worse (1) and not comparable (2) are results like any other; only a comparison that failed (3) fails here.
        "{params.base} -m analysis.gate compare --checkpoint {params.checkpoint:q} --baseline {params.baseline:q}"
        " --checkpoint-name {params.checkpoint_name:q} --baseline-name {params.baseline_name:q} {params.benchmarks}"
        " --margin {params.margin} --output {output} > {log} 2>&1 || [ $? -le 2 ]"


rule check:
    input:
        lambda wildcards: f"{RESULTS}/check/{side('checkpoint').slug}-against-{side('baseline').slug}",
    log:
        f"logs/{config['scale']}/check/verdict.log",
    params:
        base=BASE,
    shell:
        # The status of `show` fails the rule where the checkpoint is worse or could not be compared.
        "{params.base} -m analysis.gate show {input}/check.json 2>&1 | tee {log}"

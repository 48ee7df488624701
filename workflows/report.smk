# One page with tables and figures, for all runs or for those of a recipe.


rule report_page:
    input:
        scores=lambda wildcards: [
            f"{R}/runs/{run_id}/scores.parquet" for run_id in ids_of(wildcards.which)
        ],
        logs=lambda wildcards: [
            f"{R}/runs/{run_id}/training_log.parquet"
            for run_id in ids_of(wildcards.which)
        ],
        overlap=f"{R}/data/overlap.csv",
    output:
        f"{R}/report/{{which}}/index.html",
        directory(f"{R}/report/{{which}}/tables"),
        directory(f"{R}/report/{{which}}/figures"),
    log:
        f"logs/{config['scale']}/report/{{which}}.log",
    wildcard_constraints:
        which="[^/]+",
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        base=BASE,
        runs=lambda wildcards: " ".join(ids_of(wildcards.which)),
        output=lambda wildcards: f"{R}/report/{wildcards.which}",
    shell:
        f"{{params.base}} -m analysis.report --results {R}"
        " --run {params.runs} --output {params.output} > {log} 2>&1 && tail -n 1 {log}"

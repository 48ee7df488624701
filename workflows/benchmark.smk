# snakemake benchmark --config reproduce='[crosscheck]' seeds='[0,1,2]': what the same run costs through each framework.
# On this machine a training runs alone then (training_threads). `crosszero benchmark` draws the order of the trainings.


rule benchmark:
    input:
        benchmarked_results,
    log:
        f"logs/{config['scale']}/benchmark.log",
    params:
        base=BASE,
        scale=SCALE,
        results=RESULTS,
        runs=lambda wildcards: benchmarked_runs(),
        seeds=config["seeds"],
        output=lambda wildcards: request.page_folder(
            Path(RESULTS), benchmarked_runs(), config["scale"]
        ),
        options=command_options(config, "with", "accuracy", "price"),
    shell:
        "{params.base:q} -m analysis.benchmark --run {params.runs:q} --seeds {params.seeds:q} --scale {params.scale:q}"
        " --results {params.results:q} --output {params.output:q} {params.options:q} 2>&1 | tee {log:q}"

# snakemake benchmark --config reproduce='[crosscheck]' seeds='[0,1,2]': what the same run costs through each framework.
# On this machine a training runs alone then (training_threads). `crosszero benchmark` draws the order of the trainings.

from analysis.benchmark import request


def benchmarked_runs():
    """The runs of `--config reproduce`; without it those of the recipe that is the same through all frameworks."""
    named = "reproduce" in workflow.config_settings.config
    return CHOSEN if named else request.run_names(request.RUNS, config["scale"])


def benchmarked_results(wildcards):
    """Scores and logs of every seed, with `bare` also the times of the frameworks' own commands."""
    check_whole()
    try:
        request.check(benchmarked_runs(), config["scale"], config.get("with", []))
    except UserError as error:
        raise refusal(error) from None
    files = []
    for name in benchmarked_runs():
        for folder in (
            results_of(seeds.run_id(name, seed)) for seed in config["seeds"]
        ):
            files += [folder.scores, folder.training_log]
            if config.get("bare"):
                files += [
                    folder.bare_training(stage.number) for stage in RUNS[name].stages
                ]
    return files


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
        output=lambda wildcards: (
            f"{RESULTS}/benchmark/{request.folder_name(benchmarked_runs(), config['scale'])}"
        ),
        options=command_options(config, "with", "accuracy", "price"),
    shell:
        "{params.base:q} -m analysis.benchmark --run {params.runs:q} --seeds {params.seeds:q} --scale {params.scale:q}"
        " --results {params.results:q} --output {params.output:q} {params.options:q} 2>&1 | tee {log:q}"

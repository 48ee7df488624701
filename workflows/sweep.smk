# Sweeps: every setting is trained with every seed (config: sweep, seeds), then one page shows them.


def trainings_of_sweep(wildcards):
    """The ids of the trainings of a sweep, of all settings and seeds."""
    sweep = f"{wildcards.recipe}/{wildcards.sweep}"
    names = [name for name in SWEPT if name.partition("@")[0] == sweep]
    return [seeds.run_id(name, seed) for name in names for seed in config["seeds"]]


def logs_of_sweep(wildcards):
    return [FOLDER.run(name).training_log for name in trainings_of_sweep(wildcards)]


def evaluated_of_sweep(wildcards):
    """The scores of a sweep's trainings; of those that were ended at a sign of collapse there are none."""
    names = trainings_of_sweep(wildcards)
    if config["stop_on_collapse"]:
        trained = checkpoints.trained_of_sweep.get(**wildcards).output[0]
        names = json.loads(Path(trained).read_text())
    return scored(names)


def sweep_pages(wildcards):
    """The pages of the configured sweeps."""
    if not config.get("sweep"):
        raise WorkflowError(
            "snakemake sweep needs the sweeps to make: add --config sweep='[openr1/group-size]', or one of "
            + ", ".join(sweeps.names())
        )
    return [f"{RESULTS}/report/sweeps/{name}/index.html" for name in config["sweep"]]


checkpoint trained_of_sweep:
    input:
        logs_of_sweep,
    output:
        f"{RESULTS}/report/sweeps/{{recipe}}/{{sweep}}/trained.json",
    log:
        f"logs/{config['scale']}/sweeps/{{recipe}}/{{sweep}}-trained.log",
    wildcard_constraints:
        sweep="[^/@]+",
    localrule: True
    params:
        base=BASE,
        results=unrecorded(RESULTS),
        runs=trainings_of_sweep,
    shell:
        "{params.base:q} -m frameworks.trained {params.runs:q} --results {params.results:q} --output {output:q} > {log:q} 2>&1"


rule sweep_page:
    input:
        scored=evaluated_of_sweep,
        logs=logs_of_sweep,
    output:
        f"{RESULTS}/report/sweeps/{{recipe}}/{{sweep}}/index.html",
    log:
        f"logs/{config['scale']}/sweeps/{{recipe}}/{{sweep}}.log",
    wildcard_constraints:
        sweep="[^/@]+",
    resources:
        **asks(Need(memory_mb=4000, minutes=30)),
    params:
        base=BASE,
        scale=SCALE,
        results=unrecorded(RESULTS),
        seeds=config["seeds"],
        output=lambda wildcards, output: Path(output[0]).parent,
    shell:
        "{params.base:q} -m analysis.sweep {wildcards.recipe:q}/{wildcards.sweep:q} --scale {params.scale:q}"
        " --seeds {params.seeds:q} --results {params.results:q} --output {params.output:q} > {log:q} 2>&1 && tail -n 1 {log:q}"

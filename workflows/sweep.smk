# Sweeps: every setting is trained with every seed (config: sweep, seeds), then one page shows them.


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
        "{params.base:q} -m frameworks.completed_trainings {params.runs:q} --results {params.results:q} --output {output:q} > {log:q} 2>&1"


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

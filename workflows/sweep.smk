# Sweeps: every setting is trained with every seed (config: sweep, seeds), then one page shows them. A training
# that was ended at a sign of collapse has empty scores, whose record says so (contracts/ended_training.py).


rule sweep_page:
    input:
        scored=scores_of_sweep,
        logs=logs_of_sweep,
    output:
        f"{RESULTS}/report/sweeps/{{recipe}}/{{sweep}}/index.html",
    log:
        f"logs/{config['scale']}/sweeps/{{recipe}}/{{sweep}}.log",
    wildcard_constraints:
        sweep="[^/@]+",
    resources:
        **resources_for(Need(memory_mb=4000, minutes=30)),
    params:
        base=BASE,
        scale=SCALE,
        results=unrecorded(RESULTS),
        seeds=config["seeds"],
        output=lambda wildcards, output: Path(output[0]).parent,
    shell:
        "{params.base:q} -m analysis.sweep {wildcards.recipe:q}/{wildcards.sweep:q} --scale {params.scale:q}"
        " --seeds {params.seeds:q} --results {params.results:q} --output {params.output:q} > {log:q} 2>&1"

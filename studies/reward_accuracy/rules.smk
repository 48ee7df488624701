# snakemake study_reward_accuracy: trains what is missing of its sweeps, with the configured seeds; then the rewards judge
# the stored completions again.


include: "inputs.smk"


rule study_reward_accuracy:
    input:
        trained=trained_for_accuracy,
        registered="results/reference/claims.yaml",
        study="studies/reward_accuracy/reward_accuracy.yaml",
    output:
        f"{RESULTS}/studies/reward_accuracy/index.html",
    log:
        f"logs/{config['scale']}/study_reward_accuracy.log",
    resources:
        **resources_for(Need(memory_mb=4000, minutes=120)),
    params:
        base=BASE,
        scale=SCALE,
        results=unrecorded(RESULTS),
        seeds=config["seeds"],
        tasks=["--tasks", *config["tasks"]] if "tasks" in config else [],
    shell:
        "{params.base:q} -m studies.reward_accuracy.study --results {params.results:q} --scale {params.scale:q}"
        " --seeds {params.seeds:q} {params.tasks:q} --output {params.results:q}/studies/reward_accuracy > {log:q} 2>&1"

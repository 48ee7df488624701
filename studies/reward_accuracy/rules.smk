# snakemake study_reward_accuracy: trains what is missing of its sweeps, with the configured seeds; then the rewards judge
# the stored completions again.

from studies.reward_accuracy import runs as reward_accuracy_runs


def trained_for_accuracy(wildcards):
    """What study_reward_accuracy reads: the trainings of each task's settings with the seeds that the task has."""
    if len(config["seeds"]) < reward_accuracy_runs.FEWEST:
        sentence = (
            f"snakemake study_reward_accuracy needs {reward_accuracy_runs.FEWEST} training seeds or more, but seeds has "
            f"{len(config['seeds'])}: add --config seeds='[0,1,2,3,4,5,6,7]'"
        )
        raise refusal(
            UserError(sentence, code="too-few-seeds", seeds=len(config["seeds"]))
        )
    try:
        tasks = reward_accuracy_runs.chosen(config.get("tasks", []))
    except UserError as error:
        raise refusal(error.within("config")) from None
    return scores_and_logs(
        [
            seeds.run_id(name, seed)
            for task in tasks
            for name in sweeps.run_names(task.sweep, config["scale"])
            for seed in task.seeds(config["seeds"])
        ]
    )


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
        " --seeds {params.seeds:q} {params.tasks:q} --output {params.results:q}/studies/reward_accuracy > {log:q} 2>&1 && cat {log:q}"

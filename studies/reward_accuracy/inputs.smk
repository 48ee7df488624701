# What study_reward_accuracy reads.

from studies.reward_accuracy import runs as reward_accuracy_runs


def trained_for_accuracy(wildcards):
    """What study_reward_accuracy reads: the trainings of each task's settings with the seeds that the task has."""
    check_seeds("study_reward_accuracy", reward_accuracy_runs.FEWEST)
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

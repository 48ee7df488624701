# What study_credit reads.

from studies.credit import runs as credit_runs


def compared_for_credit(wildcards):
    """What study_credit reads: the trainings of its runs with the configured seeds."""
    check_seeds("study_credit", credit_runs.FEWEST)
    return scores_and_logs(
        [
            seeds.run_id(name, seed)
            for name in credit_runs.RUNS.values()
            for seed in config["seeds"]
        ]
    )

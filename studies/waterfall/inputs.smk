# What study_waterfall reads.

from studies.waterfall import stages as waterfall

CROSSCHECK = [
    load_run(name, "demo") for name in run_names() if name.startswith("crosscheck/")
]


def waterfall_recording(wildcards):
    """The training whose recording a stage of the waterfall takes; none for that one itself."""
    recorded = waterfall.RECORDED.name
    if wildcards.stage == recorded:
        return []
    return f"results/studies/waterfall/{recorded}/seed-{wildcards.seed}"


def waterfall_trainings(wildcards):
    """What study_waterfall reads: every stage with every configured seed."""
    check_seeds("study_waterfall", waterfall.FEWEST)
    return [
        f"results/studies/waterfall/{stage.name}/seed-{seed}"
        for stage in waterfall.STAGES
        for seed in config["seeds"]
    ]

# snakemake study_waterfall: a training for each stage and configured seed; all but the first replay its recording.

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
    if len(config["seeds"]) < waterfall.FEWEST:
        sentence = (
            f"snakemake study_waterfall needs {waterfall.FEWEST} training seeds or more, but seeds has "
            f"{len(config['seeds'])}: add --config seeds='[0,1,2,3,4]'"
        )
        raise refusal(
            UserError(sentence, code="too-few-seeds", seeds=len(config["seeds"]))
        )
    return [
        f"results/studies/waterfall/{stage.name}/seed-{seed}"
        for stage in waterfall.STAGES
        for seed in config["seeds"]
    ]


rule waterfall_training:
    input:
        [environment_stamp(run.framework, "cpu") for run in CROSSCHECK],
        waterfall_recording,
        environment_stamp("eval", "cpu"),
        problems=lambda wildcards: FOLDER.problems(
            "train", CROSSCHECK[0].stages[0].dataset
        ),
        benchmarks=lambda wildcards: [
            FOLDER.problems("benchmarks", name)
            for name in CROSSCHECK[0].evaluation["benchmarks"]
        ],
        model=lambda wildcards: FOLDER.model(CROSSCHECK[0].model),
    output:
        directory("results/studies/waterfall/{stage}/seed-{seed}"),
    log:
        "logs/study_waterfall/{stage}-{seed}.log",
    wildcard_constraints:
        stage="[a-z]+",
        seed="[0-9]+",
    threads: 2
    params:
        base=BASE,
        data=lambda wildcards, input: Path(input.benchmarks[0]).parent,
        work=unrecorded(
            lambda wildcards: f"work/studies/waterfall/{wildcards.stage}/seed-{wildcards.seed}"
        ),
    shell:
        "{params.base:q} -m studies.waterfall.study train --stage {wildcards.stage:q} --seed {wildcards.seed:q}"
        " --problems {input.problems:q} --model {input.model:q} --benchmarks {params.data:q} --work {params.work:q}"
        " --output {output:q} > {log:q} 2>&1"


# With the configured seeds, of which there have to be five at least.
rule study_waterfall:
    input:
        waterfall_trainings,
    output:
        "results/studies/waterfall/waterfall.csv",
    log:
        "logs/study_waterfall.log",
    localrule: True
    params:
        base=BASE,
        seeds=config["seeds"],
    shell:
        "{params.base:q} -m studies.waterfall.study page --results results/studies/waterfall"
        " --seeds {params.seeds:q} --output results/studies/waterfall > {log:q} 2>&1 && cat {log:q}"

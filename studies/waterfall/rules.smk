# snakemake study_waterfall: a training for each stage and configured seed; all but the first replay its recording.


include: "inputs.smk"


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
        " --seeds {params.seeds:q} --output results/studies/waterfall > {log:q} 2>&1"

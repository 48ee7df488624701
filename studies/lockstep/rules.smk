# snakemake study_lockstep: it trains at demo scale, whatever the scale is.

CROSSCHECK = [
    load_run(name, "demo") for name in run_names() if name.startswith("crosscheck/")
]


rule study_lockstep:
    input:
        [environment_stamp(run.framework, "cpu") for run in CROSSCHECK],
        # Functions, because a project may have other recipes alone.
        problems=lambda wildcards: FOLDER.problems(
            "train", CROSSCHECK[0].stages[0].dataset
        ),
        model=lambda wildcards: FOLDER.model(CROSSCHECK[0].model),
    output:
        "results/studies/lockstep/lockstep.csv",
    log:
        "logs/study_lockstep.log",
    threads: 2
    params:
        base=BASE,
        work=unrecorded("work/studies/lockstep"),
    shell:
        "{params.base:q} -m studies.lockstep.study --problems {input.problems:q} --model {input.model:q}"
        " --work {params.work:q} --output results/studies/lockstep 2>&1 | tee {log:q}"

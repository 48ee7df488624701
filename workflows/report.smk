# One page with tables and figures, for all runs or for those of a recipe. `snakemake … --report FILE.html` includes it.


rule report_page:
    input:
        scored=lambda wildcards: scored(reported(wildcards.which)),
        logs=lambda wildcards: [
            results_of(run_id).training_log for run_id in ids_of(wildcards.which)
        ],
        overlap=FOLDER.overlap("{which}"),
    output:
        report(
            f"{RESULTS}/report/{{which}}/index.html",
            caption="../analysis/report/captions/page.rst",
            category="Report",
            labels={"part": "page", "of": "{which}"},
        ),
        report(
            directory(f"{RESULTS}/report/{{which}}/tables"),
            patterns=["{name}.html"],
            caption="../analysis/report/captions/tables.rst",
            category="Tables",
            labels={"table": "{name}", "of": "{which}"},
        ),
        report(
            directory(f"{RESULTS}/report/{{which}}/figures"),
            patterns=["{name}.svg"],
            caption="../analysis/report/captions/figures.rst",
            category="Figures",
            labels={"figure": "{name}", "of": "{which}"},
        ),
        # Not in Snakemake's report, which cannot hold a folder of files.
        directory(f"{RESULTS}/report/{{which}}/samples"),
    log:
        f"logs/{config['scale']}/report/{{which}}.log",
    wildcard_constraints:
        which="[^/]+",
    resources:
        **asks(Need(memory_mb=4000, minutes=30)),
    params:
        results=unrecorded(RESULTS),
        base=BASE,
        runs=lambda wildcards: reported(wildcards.which),
        output=lambda wildcards: f"{RESULTS}/report/{wildcards.which}",
        settings=lambda wildcards: report_hash(runs_of(wildcards.which)),
        regraded=lambda wildcards: regraded_hash(reported(wildcards.which)),
    shell:
        "{params.base:q} -m analysis.report --results {params.results:q}"
        " --run {params.runs:q} --overlap {input.overlap:q} --output {params.output:q} > {log:q} 2>&1 && tail -n 1 {log:q}"


# Declares no output: it may run beside another Snakemake, whose runs it shows.
rule watch:
    log:
        f"logs/{config['scale']}/watch.log",
    localrule: True
    params:
        base=BASE,
        results=RESULTS,
        work=WORK,
    shell:
        "{params.base:q} -m analysis.watch --results {params.results:q} --work {params.work:q} 2>&1"
        " | tee {log:q}"


rule fidelity:
    input:
        registered="results/reference/fidelity.yaml",
        models="recipes/models.yaml",
        runs=[f"recipes/{name}.yaml" for name in run_names()],
    output:
        "results/fidelity/fidelity.html",
    log:
        "logs/fidelity.log",
    localrule: True
    params:
        base=BASE,
    shell:
        "{params.base:q} -m analysis.fidelity --output results/fidelity > {log:q} 2>&1 && cat {log:q}"


rule study_kl:
    input:
        "results/reference/claims.yaml",
    output:
        "results/studies/kl/index.html",
    log:
        "logs/study_kl.log",
    localrule: True
    params:
        base=BASE,
        settings=fingerprint(
            [
                path.read_text()
                for path in sorted(Path("analysis/studies").glob("kl*.py"))
            ]
        ),
    shell:
        "{params.base:q} -m analysis.studies.kl --output results/studies/kl > {log:q} 2>&1 && cat {log:q}"


# The runs of the study (analysis/studies/lockstep.py), which trains at demo scale whatever the scale is.
LOCKSTEP = [
    load_run(name, "demo") for name in run_names() if name.startswith("crosscheck/")
]


rule study_lockstep:
    input:
        [stamp(run.framework, "cpu") for run in LOCKSTEP],
        # Functions, because a project may have other recipes alone.
        problems=lambda wildcards: FOLDER.problems(
            "train", LOCKSTEP[0].stages[0].dataset
        ),
        model=lambda wildcards: FOLDER.model(LOCKSTEP[0].model),
    output:
        "results/studies/lockstep/lockstep.csv",
    log:
        "logs/study_lockstep.log",
    threads: 2
    params:
        base=BASE,
        work=unrecorded("work/studies/lockstep"),
    shell:
        "{params.base:q} -m analysis.studies.lockstep --problems {input.problems:q} --model {input.model:q}"
        " --work {params.work:q} --output results/studies/lockstep 2>&1 | tee {log:q}"


# A stage of the waterfall with one seed (analysis/studies/waterfall.py); all but the first take its recording.
rule waterfall_training:
    input:
        [stamp(run.framework, "cpu") for run in LOCKSTEP],
        waterfall_recording,
        stamp("eval", "cpu"),
        problems=lambda wildcards: FOLDER.problems(
            "train", LOCKSTEP[0].stages[0].dataset
        ),
        benchmarks=lambda wildcards: [
            FOLDER.problems("benchmarks", name)
            for name in LOCKSTEP[0].evaluation["benchmarks"]
        ],
        model=lambda wildcards: FOLDER.model(LOCKSTEP[0].model),
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
        "{params.base:q} -m analysis.studies.waterfall train --stage {wildcards.stage:q} --seed {wildcards.seed:q}"
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
        "{params.base:q} -m analysis.studies.waterfall page --results results/studies/waterfall"
        " --seeds {params.seeds:q} --output results/studies/waterfall > {log:q} 2>&1 && cat {log:q}"


# Trains what is missing of its runs, with the configured seeds.
rule study_credit:
    input:
        compared_for_credit,
    output:
        f"{RESULTS}/studies/credit/credit.md",
    log:
        f"logs/{config['scale']}/study_credit.log",
    localrule: True
    params:
        base=BASE,
        results=unrecorded(RESULTS),
        seeds=config["seeds"],
    shell:
        "{params.base:q} -m analysis.studies.credit --results {params.results:q} --seeds {params.seeds:q}"
        " --output {params.results:q}/studies/credit > {log:q} 2>&1 && cat {log:q}"


# Trains what is missing of its sweeps, with the configured seeds; then the rewards judge the stored completions again.
rule study_reward_accuracy:
    input:
        trained=trained_for_accuracy,
        registered="results/reference/claims.yaml",
        study="analysis/studies/reward_accuracy.yaml",
    output:
        f"{RESULTS}/studies/reward_accuracy/index.html",
    log:
        f"logs/{config['scale']}/study_reward_accuracy.log",
    resources:
        **asks(Need(memory_mb=4000, minutes=120)),
    params:
        base=BASE,
        scale=SCALE,
        results=unrecorded(RESULTS),
        seeds=config["seeds"],
        tasks=["--tasks", *config["tasks"]] if "tasks" in config else [],
    shell:
        "{params.base:q} -m analysis.studies.reward_accuracy --results {params.results:q} --scale {params.scale:q}"
        " --seeds {params.seeds:q} {params.tasks:q} --output {params.results:q}/studies/reward_accuracy > {log:q} 2>&1 && cat {log:q}"


# Declares no output, so that each request decides by what is stored then. Trains and samples nothing.
rule claims:
    input:
        "results/reference/claims.yaml",
    log:
        f"logs/{config['scale']}/claims.log",
    localrule: True
    params:
        base=BASE,
        results=RESULTS,
    shell:
        "{params.base:q} -m analysis.claims --results {params.results:q} --output {params.results:q}/claims > {log:q} 2>&1"
        " && cat {log:q}"


# Declares no output: what differs is asked of the frameworks as they are installed now.
rule conformance:
    input:
        "conformance/differences.yaml",
    log:
        "logs/conformance.log",
    localrule: True
    params:
        base=BASE,
        cases=(
            ["--cases", config["conformance_cases"]]
            if "conformance_cases" in config
            else []
        ),
    shell:
        "{params.base:q} -m conformance --output results/conformance {params.cases:q} > {log:q} 2>&1"
        " || {{ cat {log:q}; exit 1; }}; cat {log:q}"

# One page with tables and figures, for all runs or for those of a recipe. `snakemake … --report FILE.html` includes it.


# What Snakemake's own report says of each table and figure: written with every page, from the sections of the report.
CAPTIONS = str(Path(RESULTS).absolute() / "report" / "captions")


rule report_page:
    input:
        scored=lambda wildcards: stored_or_allowed(
            score_files(reported_runs(wildcards.which))
        ),
        logs=lambda wildcards: [
            results_of(run_id).training_log for run_id in training_ids(wildcards.which)
        ],
        overlap=FOLDER.overlap("{which}"),
    output:
        report(
            f"{RESULTS}/report/{{which}}/index.html",
            caption="../analysis/report/page_caption.rst",
            category="Report",
            labels={"part": "page", "of": "{which}"},
        ),
        report(
            directory(f"{RESULTS}/report/{{which}}/tables"),
            patterns=["{name}.html"],
            caption=f"{CAPTIONS}/tables.rst",
            category="Tables",
            labels={"table": "{name}", "of": "{which}"},
        ),
        report(
            directory(f"{RESULTS}/report/{{which}}/figures"),
            patterns=["{name}.svg"],
            caption=f"{CAPTIONS}/figures.rst",
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
        **resources_for(Need(memory_mb=4000, minutes=30)),
    params:
        results=unrecorded(RESULTS),
        base=BASE,
        runs=lambda wildcards: reported_runs(wildcards.which),
        output=lambda wildcards: f"{RESULTS}/report/{wildcards.which}",
        captions=unrecorded(CAPTIONS),
        settings=lambda wildcards: report_hash(runs_of(wildcards.which)),
        regraded=lambda wildcards: regraded_hash(reported_runs(wildcards.which)),
    shell:
        "{params.base:q} -m analysis.report --results {params.results:q}"
        " --run {params.runs:q} --overlap {input.overlap:q} --output {params.output:q}"
        " --captions {params.captions:q} > {log:q} 2>&1"


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
        rewards=expand(
            "results/reference/published_rewards.{suffix}", suffix=["yaml", "jsonl"]
        ),
        models="recipes/models.yaml",
        runs=[f"recipes/{name}.yaml" for name in run_names()],
    output:
        "results/fidelity/fidelity.html",
        "results/fidelity/fidelity_rewards.html",
    log:
        "logs/fidelity.log",
    localrule: True
    params:
        base=BASE,
    shell:
        "{params.base:q} -m analysis.fidelity --output results/fidelity > {log:q} 2>&1"


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

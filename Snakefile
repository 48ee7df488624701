# CrossZero: recipe → data → train → export → generate → grade → score → report.
# Which rule and which Python file do each stage: CONTRIBUTING.md, "Where things go".
#
#   snakemake help                            the targets
#   snakemake reproduce_all                   all runs at demo scale on this machine
#   snakemake --profile slurm reproduce_all   all runs at full scale on a cluster
#   snakemake compare_checkpoints --config checkpoint=… baseline=…   is a checkpoint better than a baseline?


# Rules need only Python 3.11 from the image; packages come from the locks in envs/.
# python:3.11-bookworm of 2026, as public projects pin it for all platforms.
container: "docker://python@sha256:35d3a4a3d5e42e02ab916d44513a050689f12c0533d45598d229672503fe77ca"


include: "workflows/check_start.smk"
include: "workflows/job_lifetime.smk"


configfile: "config/config.yaml"


include: "workflows/help.smk"
include: "workflows/runs.smk"
include: "workflows/rule_inputs.smk"
include: "workflows/progress_and_failures.smk"
include: "workflows/resources.smk"
include: "workflows/local_resources.smk"
include: "workflows/environments.smk"
include: "workflows/data.smk"
include: "workflows/train.smk"
include: "workflows/evaluate.smk"
include: "workflows/report.smk"
include: "workflows/sweep.smk"
include: "workflows/compare.smk"
include: "workflows/benchmark.smk"
include: "workflows/evaluate_model.smk"
include: "workflows/contamination.smk"
include: "workflows/cluster.smk"


# A study brings its own rules; the product knows none of them.
for study_rules in sorted(Path(workflow.basedir, "studies").glob("*/rules.smk")):

    include: str(study_rules)


include: "workflows/graph_speed.smk"


localrules:
    help,
    reproduce_all,
    grade,
    evaluate,
    report,
    benchmark,
    sweep,
    parse_runs,


rule reproduce_all:
    default_target: True
    input:
        # Depend on the runs as well, so that an existing report does not hide missing scores.
        page_and_scores(PAGE),


rule reproduce_one_gpu:
    input:
        one_gpu_results,
    localrule: True


for recipe in RECIPES:

    rule:
        name:
            f"reproduce_{recipe}"
        input:
            page_and_scores(RECIPE_PAGES[recipe]),
        localrule: True


rule report:
    input:
        page_and_scores(PAGE),


rule sweep:
    input:
        sweep_pages,


rule grade:
    input:
        lambda wildcards: [verdict_files(evaluated_part(run_id)) for run_id in RUN_IDS],


rule evaluate:
    input:
        evaluation_targets,
    log:
        f"logs/{config['scale']}/evaluate.log",
    params:
        base=BASE,
        scores=lambda wildcards, input: [
            file for file in input if Path(file).name == "scores.parquet"
        ],
        pages=lambda wildcards, input: [
            file for file in input if Path(file).name == "index.html"
        ],
        notes=evaluation_notes,
    shell:
        "{params.base:q} -m eval.score_table {params.scores:q} --page {params.pages:q} {params.notes:q} > {log:q} 2>&1"


rule parse_runs:
    input:
        [f"{WORK}/parsed_runs/{framework}.txt" for framework in FRAMEWORKS],
        f"{WORK}/parsed_runs/evaluations.txt",

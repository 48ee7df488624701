# snakemake help: the targets, on standard output, with nothing of Snakemake's own messages around them.

from pathlib import Path

from cluster.snakemake_internals import show_warnings_alone

STUDIES = sorted(
    file.parent.name for file in Path(workflow.basedir, "studies").glob("*/rules.smk")
)
HELP = f"""\
CrossZero reproduces R1-Zero style reinforcement learning and evaluates every checkpoint under one protocol.

  snakemake reproduce_all        train, evaluate and report every run of the configuration
  snakemake reproduce_<recipe>   the same for one recipe, such as reproduce_openr1
  snakemake reproduce_one_gpu --config scale=full gpu_memory_gb=24   every run that fits one GPU of that size
  snakemake grade                grade every stored sample; no GPU. With --config grader=strict or
                                 extraction=last-number: grade again, into regraded/ beside graded/
  snakemake evaluate             score every checkpoint, without the report
  snakemake evaluate --config checkpoint=MODEL benchmarks='[leetcode]'   score a model's folder or hub id, with its page
  snakemake report               tables, figures and page, making whatever is missing; with
                                 --allowed-rules report report_page only from existing results (docs/how-to/report.md)
  snakemake watch                serve a page with the runs' curves and newest completions while they go on
  snakemake compare_checkpoints --config checkpoint=… baseline=…   better, worse, cannot tell, or not comparable (docs/explanation/comparisons.md)
  snakemake compare_recipes --config recipe_a='[run]' recipe_b='[run]' seeds='[0,1,2]'   is recipe b better than a? (docs/explanation/comparisons.md)
  snakemake benchmark --config seeds='[0,1,2]'   time, memory and cost to the same accuracy, by framework and phase (docs/how-to/choose-framework.md)
  snakemake contamination        has a run's base model read its benchmarks? the rest of half-told questions (docs/explanation/comparisons.md)
  snakemake parse_runs           check every run file at both scales with each framework's own parser; no GPU
  snakemake fidelity             every value at full scale beside the published one, with where that is from
  snakemake claims               what the stored results say of each claim of the documents (docs/explanation/report.md)
  snakemake conformance          the same tensors through each framework's own functions: where they differ, and by how much
  snakemake sweep --config sweep='[openr1/group-size]' seeds='[0,1,2]'   try settings of a run: one table, one figure
  snakemake study_<name>         answer a question with the product (studies/<name>/README.md):
                                 {", ".join(STUDIES)}
  snakemake environments         install the environments of the configured runs, such as on a login node
  snakemake doctor               what runs on this machine (demo, one GPU, full scale) and what to change
  snakemake preflight --profile slurm   report problems with this cluster before anything is queued (docs/how-to/slurm.md)
  snakemake capacity             estimate GPU-hours, disk and GPU memory of the runs
  snakemake efficiency           report what finished jobs used of what they asked for
  snakemake gpu_smoke            whether the full-scale path runs on this GPU (docs/how-to/first-gpu.md)
  snakemake help                 print this

Add -n for a dry run, and --config to override config/config.yaml:
  snakemake -n reproduce_all --config scale=full
  snakemake reproduce_openr1 --config seeds='[0,1]' data_mirror=../mirror
On a cluster: snakemake --profile slurm reproduce_all --config reproduce='[tinyzero/grpo-3b]'
"""
if workflow.is_main_process:
    show_warnings_alone(
        lambda: workflow.dag_settings and set(workflow.dag_settings.targets) == {"help"}
    )


rule help:
    log:
        "logs/help.log",
    params:
        text=HELP,
    shell:
        "printf %s {params.text:q} | tee {log:q}"

# Which runs are asked for, and what the rules ask about them.

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError

from contracts.errors import UserError
from contracts.run_file import ROOT, load_run, run_names, validate
from envs import build

HELP = """
CrossZero reproduces R1-Zero style reinforcement learning and evaluates every checkpoint under one protocol.

  snakemake reproduce_all        train, evaluate and report every run of the configuration
  snakemake reproduce_<recipe>   the same for one recipe, such as reproduce_openr1
  snakemake grade                the verdict on every stored sample; no GPU. With --config grader=strict or
                                 extraction=last-number: again, into regraded/ beside graded/
  snakemake evaluate             the scores of every checkpoint, without the report
  snakemake report               tables, figures and page from what is there, making what is missing; with
                                 --allowed-rules report report_page nothing else is made (docs/report.md)
  snakemake check --config checkpoint=… baseline=…   better, worse, cannot tell, or not comparable (docs/gate.md)
  snakemake check_recipes        let each framework's own parser read every run at both scales; no GPU
  snakemake preflight --profile slurm   what would go wrong on this cluster, before anything is queued (docs/cluster.md)
  snakemake capacity             GPU-hours, disk and GPU memory of the runs; efficiency: what they took of a cluster
  snakemake help                 this

Add -n to see what would run, and --config to change config/config.yaml:
  snakemake -n reproduce_all --config scale=full
  snakemake reproduce_openr1 --config seeds='[0,1]' data_mirror=../mirror
On a cluster: snakemake --profile slurm reproduce_all
"""


def read_runs():
    """All runs at the configured scale, by name, and which are asked for; a WorkflowError says what is wrong with them."""
    if isinstance(
        config.get("seeds"), list
    ):  # Snakemake reads lists on the command line as lists of words
        config["seeds"] = [
            int(seed) if str(seed).isdecimal() else seed for seed in config["seeds"]
        ]
    try:
        validate(config, "config", ROOT / "config" / "config.yaml")
        known, asked = run_names(), config["reproduce"]
        if asked == "all":
            chosen = known
        else:
            chosen = [
                name for name in known if name in asked or name.split("/")[0] in asked
            ]
            unknown = [
                word
                for word in asked
                if not any(word in (name, name.split("/")[0]) for name in known)
            ]
            if unknown:
                recipes = sorted({name.split("/")[0] for name in known})
                raise UserError(
                    f"config: reproduce names {', '.join(unknown)}, which is no recipe ({', '.join(recipes)}) "
                    f"and no run ({', '.join(known)})"
                )
        return {name: load_run(name, config["scale"]) for name in known}, chosen
    except UserError as error:
        raise WorkflowError(str(error)) from None


RUNS, ASKED = read_runs()
RECIPES = sorted({name.split("/")[0] for name in RUNS})
FRAMEWORKS = sorted({run.framework for run in RUNS.values()})
RESULTS = f"{config['results']}/{config['scale']}"
WORK = f"{config['work']}/{config['scale']}"
# What `snakemake grade` makes: the verdicts that reports use, or those of another grader beside them.
GRADED = "graded"
if config["grader"] or config["extraction"]:
    GRADED = f"regraded/{config['grader'] or 'math-verify'}+{config['extraction'] or 'protocol'}/scores.parquet"
PROMPTS = yaml.safe_load(Path("tasks/prompts.yaml").read_text(encoding="utf-8"))
MODELS = yaml.safe_load(Path("recipes/models.yaml").read_text(encoding="utf-8"))


wildcard_constraints:
    recipe=r"[^/]+",
    run=r"[^/]+",
    seed=r"\d+",
    stage=r"\d+",
    step=r"\d+",
    grader=r"[a-z-]+",
    extraction=r"[a-z-]+",


def run_of(wildcards):
    return RUNS[f"{wildcards.recipe}/{wildcards.run}"]


def stage_of(wildcards):
    return run_of(wildcards).stages[int(wildcards.stage) - 1]


def runs_of(which):
    """The runs of a target: all that the configuration asks for, or of a recipe those, or all of it where it asks for none."""
    if which == "all":
        return ASKED
    of_it = [name for name in RUNS if name.split("/")[0] == which]
    return [name for name in of_it if name in ASKED] or of_it


def ids_of(which):
    return [
        f"{name}/seed-{seed}" for name in runs_of(which) for seed in config["seeds"]
    ]


def reported(which):
    """The runs on a page: of all runs, generations made elsewhere stand on it too."""
    imported = config["imported"] if which == "all" else []
    for run_id in imported:
        if not Path(f"{RESULTS}/runs/{run_id}/scores.parquet").is_file():
            raise WorkflowError(
                f"config: imported names {run_id}, but {RESULTS}/runs/{run_id}/scores.parquet is not there: import, grade and "
                f"score it first, at scale {config['scale']} (docs/report.md), or set another scale"
            )
    return ids_of(which) + imported


def scored(run_ids):
    """What a report reads of every run, training aside: verdicts and scores."""
    return [
        f"{RESULTS}/runs/{run_id}/{part}"
        for run_id in run_ids
        for part in ("graded", "scores.parquet")
    ]


RUN_IDS = ids_of("all")


def stamp(name, device):
    """The stamp of an environment: as an input, it has the environment built first."""
    return str((build.folder(name, device) / ".stamp").relative_to(build.TARGET.parent))


def python(name, device):
    return str(
        (build.folder(name, device) / "bin" / "python").relative_to(build.TARGET.parent)
    )


BASE = python("base", "cpu")


def native_work(run, stage, seed):
    """Folder of a stage's native files: another setting means another folder, so that nothing resumes from it."""
    settings = [
        asdict(stage),
        run.rewards,
        PROMPTS[run.prompt],
        run.model,
        run.framework,
        run.hardware["gpus"],
    ]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[
        :8
    ]
    return f"{WORK}/runs/{run.name}/seed-{seed}/stage-{stage.number}-{digest}"


def stage_work(wildcards):
    return native_work(run_of(wildcards), stage_of(wildcards), wildcards.seed)


def checkpoint_work(wildcards):
    """The native files that a checkpoint is taken from; the base model (step 0) needs none, any stage's will do."""
    run = run_of(wildcards)
    return native_work(run, run.stage_of(max(int(wildcards.step), 1)), wildcards.seed)


def stage_start(wildcards):
    """The checkpoint that a stage starts from: the last one of the stage before it, or the base model."""
    return f"{RESULTS}/runs/{run_of(wildcards).name}/seed-{wildcards.seed}/checkpoints/step-{stage_of(wildcards).first_step}"


def checkpoint_source(wildcards):
    """What a checkpoint is exported from: the base model, or the stage that made it."""
    run = run_of(wildcards)
    if int(wildcards.step) == 0:
        return f"{RESULTS}/models/{run.model}"
    return f"{RESULTS}/runs/{run.name}/seed-{wildcards.seed}/stage-{run.stage_of(int(wildcards.step)).number}/training_log.parquet"


def checkpoints_of(wildcards):
    run = run_of(wildcards)
    return [
        f"{RESULTS}/runs/{run.name}/seed-{wildcards.seed}/checkpoints/step-{step}"
        for step in run.checkpoint_steps
    ]


def benchmark_tables(wildcards):
    return [
        f"{RESULTS}/data/benchmarks/{name}.parquet"
        for name in run_of(wildcards).evaluation["benchmarks"]
    ]


def generation_gpus(run):
    return run.evaluation.get("gpus", min(run.hardware["gpus"], 8))


def overrides(wildcards):
    return overrides_of(run_of(wildcards))


def overrides_of(run):
    return " ".join(
        f"--set {key}={json.dumps(value) if not isinstance(value, str) else value}"
        for key, value in run.evaluation.get("override", {}).items()
    )

# Which runs are asked for, and what the rules need to know of them.

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
  snakemake evaluate             the scores of every checkpoint, without the report
  snakemake report               tables, figures and page from what is there, making what is missing
  snakemake check_recipes        let each framework's own parser read every run at both scales; no GPU
  snakemake help                 this

Add -n to see what would run, and --config to change config/config.yaml:
  snakemake -n reproduce_all --config scale=full
  snakemake reproduce_openr1 --config seeds='[0,1]' data_mirror=../mirror
On a cluster: snakemake --profile slurm reproduce_all
"""


def selected_runs():
    """The configured runs at the configured scale, by name; a WorkflowError says what is wrong with them."""
    try:
        validate(config, "config", ROOT / "config" / "config.yaml")
        known, asked = run_names(), config["reproduce"]
        if asked == "all":
            chosen = known
        else:
            chosen = [name for name in known if name in asked or name.split("/")[0] in asked]
            unknown = [word for word in asked if not any(word in (name, name.split("/")[0]) for name in known)]
            if unknown:
                recipes = sorted({name.split("/")[0] for name in known})
                raise UserError(
                    f"config: reproduce names {', '.join(unknown)}, which is no recipe ({', '.join(recipes)}) "
                    f"and no run ({', '.join(known)})"
                )
        return {name: load_run(name, config["scale"]) for name in chosen}
    except UserError as error:
        raise WorkflowError(str(error)) from None


RUNS = selected_runs()
RECIPES = sorted({name.split("/")[0] for name in RUNS})
FRAMEWORKS = sorted({run.framework for run in RUNS.values()})
RUN_IDS = [f"{name}/seed-{seed}" for name in RUNS for seed in config["seeds"]]
R = f"{config['results']}/{config['scale']}"
WORK = f"{config['work']}/{config['scale']}"
MODELS = yaml.safe_load(Path("recipes/models.yaml").read_text(encoding="utf-8"))


wildcard_constraints:
    recipe=r"[^/]+",
    run=r"[^/]+",
    seed=r"\d+",
    stage=r"\d+",
    step=r"\d+",


def run_of(wildcards):
    return RUNS[f"{wildcards.recipe}/{wildcards.run}"]


def stage_of(wildcards):
    return run_of(wildcards).stages[int(wildcards.stage) - 1]


def ids_of(which):
    """The runs of a report: all, or those of a recipe."""
    return [run_id for run_id in RUN_IDS if which in ("all", run_id.split("/")[0])]


def stamp(name, device):
    """The stamp of an environment: as an input, it has the environment built first."""
    return str((build.folder(name, device) / ".stamp").relative_to(build.TARGET.parent))


def python(name, device):
    return str((build.folder(name, device) / "bin" / "python").relative_to(build.TARGET.parent))


BASE = python("base", "cpu")

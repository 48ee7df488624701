# Which runs are reproduced, and what the rules need to know of them.

import json
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from analysis import reference
from cluster import one_gpu
from contracts import copied_results, model_folder, paths, provenance, seeds, steps
from system import durable
from system.errors import UserError
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from contracts.fingerprint import fingerprint
from contracts.paths import ResultsFolder
from contracts.run_file import ROOT, switches, validate
from envs import build
from eval import commands, subset
from eval.run_settings import (
    check_evaluation,
    check_regrading,
    generation_gpus,
    grading_settings,
    protocol_of,
    sampling_settings,
)
from grading.verdicts import DEFAULT
from recipes.answer_check import check_answer_is_seen
from recipes import models, sweeps, variants
from recipes.run_sets import run_set_name
from recipes.runs import (
    load_run,
    load_sweep,
    run_names,
    smoke_run_names,
    training_settings,
)
from tasks import prompts
from tasks import dataset_specs


class NamedRuns(dict):
    """Runs by name. Those of a sweep that is not configured, which a study may need, are read when they are asked for."""

    def __missing__(self, name):
        if "@" not in name:
            raise KeyError(name)
        return run_of_sweep(name)


@cache
def run_of_sweep(name):
    try:
        run = load_run(name, config["scale"])
        check_evaluation(run)
        return run
    except UserError as error:
        raise refusal(error) from None


def of_scale(reproduce):
    """`reproduce` of the configuration at its scale; raises UserError where it names scales, but not this one."""
    if not isinstance(reproduce, dict):
        return "all" if reproduce == ["all"] else reproduce
    if config["scale"] not in reproduce:
        raise UserError(
            f"config: reproduce should name runs for the scale {config['scale']}, but has only {', '.join(reproduce)}; "
            "add it",
            code="missing-scale",
            scale=config["scale"],
        )
    return reproduce[config["scale"]]


def chosen_runs(reproduce):
    """The names of the runs of `reproduce`, recipes and runs or "all"; raises UserError for one that is neither.

    Of "all" and of a recipe, those that have values for the scale; of a recipe without any, all, which are refused.
    """
    at_scale = run_names(config["scale"])
    if reproduce == "all":
        return at_scale
    named = [name for name in reproduce if variants.is_variant(name)]
    reproduce = [name for name in reproduce if name not in named]
    known = [*run_names(), *smoke_run_names()]
    recipes = {name.split("/")[0] for name in known}
    for name in reproduce:
        if name not in recipes and name not in known:
            choices = sorted(
                {word for run in run_names() for word in (run, run.split("/")[0])}
            )
            raise unknown("recipe or run", name, choices).within("config: reproduce")
    chosen = set()
    for name in reproduce:
        of_recipe = [run for run in known if run.split("/")[0] == name]
        chosen |= {run for run in of_recipe if run in at_scale} or {*of_recipe, name}
    return [*(name for name in known if name in chosen), *named]


def read_runs():
    """All runs at the configured scale by name, and the names of those to reproduce; checked before the graph is built."""
    # Snakemake reads true, false and the parts of a list on the command line as strings.
    for key in switches("config") & config.keys():
        if config[key] in ("true", "false"):
            config[key] = config[key] == "true"
    if isinstance(config.get("seeds"), list):
        config["seeds"] = [
            int(seed) if str(seed).isdecimal() else seed for seed in config["seeds"]
        ]
    try:
        validate(config, "config", ROOT / "config" / "config.yaml")
        config["reproduce"] = of_scale(config["reproduce"])
        build.check_place()
        for key in (
            "results",
            "work",
            "data_mirror",
            "model_mirror",
            "checkpoint",
            "baseline",
        ):
            if config.get(key):
                paths.check_path(f"config: {key}", config[key])
        check_regrading(config["grader"], config["extraction"])
        chosen = chosen_runs(config["reproduce"])
        if config.get("set"):
            chosen = [variants.name(name, config["set"]) for name in chosen]
        names = dict.fromkeys([*run_names(config["scale"]), *chosen])
        runs = {name: load_run(name, config["scale"]) for name in names}
        for sweep in config.get("sweep", []):
            runs |= load_sweep(sweep, config["scale"])
        for run in runs.values():
            check_evaluation(run)
        runs = NamedRuns(runs)
        if config.get("gpu_memory_gb"):
            fits = one_gpu.fitting_runs(runs, config["gpu_memory_gb"], config["scale"])
            runs.update({fit.run.name: fit.run for fit in fits.values()})
            return runs, list(fits), fits
        return runs, chosen, {}
    except UserError as error:
        raise refusal(error) from None
    except build.BuildError as error:
        raise refusal(UserError(str(error), code="unusable-path")) from None


RUNS, CHOSEN, ON_ONE_GPU = read_runs()
# the runs of the configured sweeps
SWEPT = [name for name in RUNS if "@" in name and not variants.is_variant(name)]
RECIPES = sorted({name.split("/")[0] for name in RUNS})
FRAMEWORKS = sorted({run.framework for run in RUNS.values()})
RESULTS = f"{config['results']}/{config['scale']}"
WORK = f"{config['work']}/{config['scale']}"
FOLDER, WORK_FOLDER = ResultsFolder(Path(RESULTS)), ResultsFolder(Path(WORK))
RUN_FOLDER = FOLDER.run(seeds.run_id("{recipe}/{run}", "{seed}"))
ALONE = FOLDER.run(
    paths.MODELS.rstrip("/")
).path  # of models that are evaluated by themselves
try:
    # The part of the benchmarks that is to be evaluated; None: all problems.
    SUBSET = subset.choose(
        config.get("limit"), config.get("sample"), config.get("sample_seed")
    )
except UserError as error:
    raise refusal(error) from None


def check_whole():
    """Refuse limit and sample where results are read that have no place for a part of a benchmark."""
    if SUBSET:
        sentence = (
            "limit and sample are for evaluate, grade and compare_checkpoints, whose results say that they are of a part of "
            "the benchmarks: leave them out for other targets"
        )
        raise refusal(UserError(sentence, code="needless-option"))


def read_library():
    """All models and data sets by name; what the runs to reproduce need of them is checked before the graph is built."""
    try:
        known_models, known_data = models.library(), dataset_specs.entries()
        for name, folder in config.get("models", {}).items():
            if name not in known_models:
                raise unknown("model", name, known_models).within("config: models")
            paths.check_path(f"config: models: {name}", folder)
            model_folder.check_files(Path(folder))
            known_models[name] = {"folder": folder}
        for run in (RUNS[name] for name in CHOSEN + SWEPT):
            if workflow.is_main_process:
                check_answer_is_seen(run)
            if run.model in known_models:  # else a hub id
                models.settings(run.model)
            for name in [stage.dataset for stage in run.stages] + run.evaluation[
                "benchmarks"
            ]:
                if name not in known_data:
                    raise UserError(
                        f"eval/benchmarks/{name}.yaml has no metadata.source, which says where rows are",
                        code="missing-source",
                        benchmark=name,
                    )
                dataset_specs.check(known_data[name])
        return known_models, known_data
    except UserError as error:
        raise refusal(error) from None


MODELS, DATA = read_library()
WARMED_UP = [name for name, entry in MODELS.items() if "warm_up" in entry]

# Snakemake makes a result again when an input is newer, and when the input files or the recorded parameters are others.
# `settings`, a parameter of most rules, is a hash of what a result depends on besides its inputs (docs/explanation/repeatability.md).
if workflow.is_main_process:
    copied_results.restore_times(Path(RESULTS))
    try:
        copied_results.check_unchanged(Path(RESULTS))
    except UserError as error:
        raise refusal(error) from None


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


def runs_of_recipe(recipe, chosen):
    """The chosen runs of a recipe, or all of its runs if none is."""
    own = [name for name in RUNS if name.split("/")[0] == recipe]
    return [name for name in own if name in chosen] or own


def configured_runs():
    """The runs that the configuration's files name, whatever the command line says."""
    files = [ROOT / "config" / "config.yaml", *workflow.config_settings.configfiles]
    try:
        contents = [read_yaml(Path(file)) for file in files]
        named = [
            content["reproduce"] for content in contents if content.get("reproduce")
        ]
        return chosen_runs(of_scale(named[-1]))
    except UserError as error:
        raise refusal(error) from None


# Each set of runs has a page of its own: that of the files' runs is called `all`, that of a recipe's like the recipe.
CONFIGURED = configured_runs()
BY_RECIPE = {recipe: runs_of_recipe(recipe, CONFIGURED) for recipe in RECIPES}
NAMED_SETS = {"all": CONFIGURED, **BY_RECIPE}
if ON_ONE_GPU:
    NAMED_SETS = {f"one-gpu-{config['gpu_memory_gb']}-gb": CHOSEN}
AT_SCALE = run_names(config["scale"])
PAGE = run_set_name(CHOSEN, NAMED_SETS, AT_SCALE)
RECIPE_PAGES = {
    recipe: run_set_name(runs_of_recipe(recipe, CHOSEN), BY_RECIPE, AT_SCALE)
    for recipe in RECIPES
}
RUN_SETS = {
    **NAMED_SETS,
    **{page: runs_of_recipe(recipe, CHOSEN) for recipe, page in RECIPE_PAGES.items()},
    PAGE: CHOSEN,
}


def runs_of(which):
    """The runs of a page."""
    return RUN_SETS.get(which, [])


@cache
def training_ids(which):
    return [
        seeds.run_id(name, seed) for name in runs_of(which) for seed in config["seeds"]
    ]


@cache
def results_of(run_id):
    """Folder of a training's results, by the training's id."""
    return FOLDER.run(run_id)


def evaluated_part(run_id):
    """Folder of its samples, verdicts and scores: the training's own, or that of the configured part of the benchmarks."""
    own = results_of(run_id)
    return (
        own.limited(SUBSET.folder)
        if SUBSET and not own.path.is_relative_to(ALONE)
        else own
    )


def reported_runs(which):
    """The runs on a page; that of the chosen runs also shows generations and training logs made elsewhere."""
    imported = config["imported"] if which == PAGE else []
    for run_id in imported:
        run = results_of(run_id)
        if not (run.scores.is_file() or run.training_log.is_file()):
            sentence = (
                f"config: imported names {run_id}, but {run.path} has neither scores nor a training log: import the log, or "
                f"import, grade and score completions, at scale {config['scale']} (docs/how-to/import.md), or set another scale"
            )
            raise refusal(UserError(sentence, code="missing-results", first=run_id))
    return training_ids(which) + imported


def one_gpu_results(wildcards):
    """What reproduce_one_gpu makes: scores and the page of the runs that fit."""
    if not config.get("gpu_memory_gb"):
        sentence = "reproduce_one_gpu needs the size of the GPU: add --config scale=full gpu_memory_gb=24, or another size"
        raise refusal(UserError(sentence, code="missing-setting", key="gpu_memory_gb"))
    return [*score_files(RUN_IDS), f"{RESULTS}/report/{PAGE}/index.html"]


def verdict_files(run):
    """What `snakemake grade` makes in a run's folder: the verdicts that reports use, or those of another grader."""
    if config["grader"] or config["extraction"]:
        grader = config["grader"] or DEFAULT
        return run.regraded(grader, config["extraction"] or "protocol").scores
    return run.graded


def score_files(run_ids):
    """What a report reads of every run besides its training: verdicts and scores; of an imported log, the log."""
    alone = [
        name
        for name in config["imported"]
        if name in run_ids and not results_of(name).scores.is_file()
    ]
    runs = [evaluated_part(run_id) for run_id in run_ids if run_id not in alone]
    logs = [results_of(run_id).training_log for run_id in alone]
    return [file for run in runs for file in (run.graded, run.scores)] + logs


RUN_IDS = training_ids(PAGE)
reported_runs(PAGE)  # an imported name that does not exist stops every target


# Jobs run with the Python of Snakemake itself, such as a CUDA image's, instead of the locked environments.
THIS_INTERPRETER = config.get("interpreter") == "here"


def environment_stamp(name, device):
    """The stamp of an environment; as an input, it makes Snakemake build the environment first.

    The path has the lock's hash; a stamp that is newer than a result is that of the same environment, built again.
    """
    if THIS_INTERPRETER:
        return ancient(sys.executable)
    return ancient(f"{environment_folder(name, device)}/.stamp")


def python(name, device):
    if THIS_INTERPRETER:
        return sys.executable
    return f"{environment_folder(name, device)}/bin/python"


@cache
def environment_folder(name, device):
    """Folder of an environment, relative to the project's: its lock is read once, not for every job."""
    return str(build.folder(name, device).relative_to(build.TARGET.parent))


@dataclass(frozen=True)
class Unrecorded:
    """A text as a parameter that Snakemake does not record, because it records plain values alone."""

    text: str

    def __str__(self):
        return self.text


def unrecorded(value):
    """A parameter of how and where a job runs: when it changes, nothing is made again.

    Snakemake does not record parameters that are made from the output. `value` may be a function of the wildcards; a
    text needs none, which saves a call for every job.
    """
    if isinstance(value, str):
        return Unrecorded(value)
    return lambda wildcards, output: value(wildcards) if callable(value) else value


BASE = unrecorded(python("base", "cpu"))
SCALE = unrecorded(config["scale"])
DATA_FOLDER = unrecorded(str(FOLDER.benchmarks))

# What rules look up for a run: hashes of its settings, its folders, inputs and words of its commands.

from analysis.benchmark import request
from cluster.snakemake_internals import missing_results


def page_and_scores(which):
    """Input of a target: scores and the page. A function, so that Snakemake takes up the files of the asked target alone."""
    return lambda wildcards: [
        *stored_or_allowed(score_files(reported_runs(which))),
        f"{RESULTS}/report/{which}/index.html",
    ]


def stored_or_allowed(scores):
    """Refuse, before Snakemake lists them all, scores that are missing and that --allowed-rules leaves out."""
    check_whole()
    allowed = workflow.dag_settings.allowed_rules
    if workflow.is_main_process and (
        error := missing_results(scores, "score_run", allowed)
    ):
        raise refusal(error)
    return scores


def native_work(run, stage, seed):
    """Folder of a stage's native files; other settings mean another folder, so that training never resumes across them."""
    folder = WORK_FOLDER.run(seeds.run_id(run.name, seed))
    return f"{folder.stage(stage.number)}-{training_hash(run.name, stage.number)[:8]}"


@cache
def training_hash(name, stage):
    """For `settings`: how a run trains in a stage, by its number."""
    run = RUNS[name]
    return fingerprint(training_settings(run, run.stages[stage - 1]))


@cache
def sampling_hash(name, benchmarks):
    """For `settings`: how the benchmarks (a tuple) are sampled in the evaluation of a run."""
    return fingerprint(sampling_settings(RUNS[name], benchmarks))


@cache
def grading_hash(benchmarks):
    """For `settings`: how the answers to benchmarks (a tuple) are graded."""
    tasks = {DATA[name].spec["task"] for name in benchmarks}
    return fingerprint(grading_settings(tasks))


def regraded_hash(run_ids):
    """For the report: other graders' scores and what was completed of questions, which it shows but does not ask for."""
    found = [
        *(
            other.scores
            for run_id in run_ids
            for other in FOLDER.run(run_id).other_graders.values()
        ),
        *(
            file
            for run_id in run_ids
            if (file := FOLDER.contamination(run_id)).is_file()
        ),
    ]
    return fingerprint({str(file): provenance.sha256(file) for file in found})


def report_hash(names):
    """For `settings`: what a page says of its runs besides their results, the published tables, and the keyword lists."""
    facts = {
        name: [run.framework, run.algorithm, run.model, run.reference]
        for name, run in RUNS.items()
        if name in names
    }
    return fingerprint([facts, reference.page_content()])


def benchmarks_of(wildcards):
    return tuple(run_of(wildcards).evaluation["benchmarks"])


@cache
def extraction_of(name):
    return protocol_of(RUNS[name]).extraction


def stage_work(wildcards):
    return native_work(run_of(wildcards), stage_of(wildcards), wildcards.seed)


def checkpoint_work(wildcards):
    """The native files that a checkpoint is exported from; the base model (step 0) needs none, so any stage's will do."""
    run = run_of(wildcards)
    return native_work(run, run.stage_of(max(int(wildcards.step), 1)), wildcards.seed)


def folder_of(wildcards):
    return results_of(seeds.run_id(run_of(wildcards).name, wildcards.seed))


def work_of(wildcards):
    return WORK_FOLDER.run(seeds.run_id(run_of(wildcards).name, wildcards.seed))


def stage_start(wildcards):
    """The checkpoint that a stage starts from: the last one of the stage before it, or the base model."""
    return folder_of(wildcards).checkpoint(stage_of(wildcards).steps_before)


def checkpoint_source(wildcards):
    """What a checkpoint is exported from: the base model, or the stage that made it."""
    run, step = run_of(wildcards), int(wildcards.step)
    if step == 0:
        return FOLDER.model(run.model)
    return (
        folder_of(wildcards).stage(run.stage_of(step).number) / "training_log.parquet"
    )


def checkpoints_of(wildcards):
    folder = folder_of(wildcards)
    return [folder.checkpoint(step) for step in run_of(wildcards).checkpoint_steps]


def checkpoint_folders(files):
    """Folders of checkpoints by step."""
    return {steps.parse(Path(path).name): path for path in files}


def benchmark_tables(wildcards):
    return tables_of(benchmarks_of(wildcards))


@cache
def tables_of(benchmarks):
    return [FOLDER.problems("benchmarks", name) for name in benchmarks]


def collapse_options(wildcards):
    """How a training ends at a sign of collapse: a sweep goes on with its other settings."""
    if not config["stop_on_collapse"]:
        return []
    sweeping = run_of(wildcards).name in SWEPT
    return ["--end-at-collapse" if sweeping else "--stop-on-collapse"]


def one_gpu_options(wildcards):
    found = ON_ONE_GPU.get(run_of(wildcards).name)
    return ["--one-gpu", found.samples_per_device] if found else []


def graded_samples(side):
    """The graded samples of the training runs of a side of the comparison of recipes: a run stands for all its seeds."""
    check_whole()
    if not config.get(side):
        sentence = f"snakemake compare_recipes needs --config recipe_a='[run,…]' recipe_b='[run,…]', but {side} is missing"
        raise refusal(UserError(sentence, code="missing-setting", key=side))
    names = []
    for name in config[side]:
        run = seeds.run_of(name) if name.count("/") == 2 else name
        if run not in RUNS:
            raise refusal(unknown("run", run, RUNS).within(f"config: {side}"))
        names += (
            [name] if run != name else [f"{name}/seed-{n}" for n in config["seeds"]]
        )
    if len(names) < 2:
        sentence = (
            f"a comparison of recipes needs two training seeds a side or more, but {side} has {len(names)}: add --config "
            "seeds='[0,1,2]', or compare two checkpoints with snakemake compare_checkpoints"
        )
        raise refusal(UserError(sentence, code="too-few-seeds", seeds=len(names)))
    return [str(FOLDER.run(name).graded) for name in names]


def contamination_tables(wildcards):
    """What `snakemake contamination` makes of the configured runs."""
    check_whole()
    return [FOLDER.contamination(run_id) for run_id in RUN_IDS]


def compared_recipes(wildcards):
    """The name of a comparison of recipes, for its folder."""
    sides = (run_set_name(config[side], {}, ()) for side in ("recipe_a", "recipe_b"))
    return "-against-".join(sides)


def probe_folder(run_id):
    """Where the probe for memorised benchmarks of a run's base model is."""
    return FOLDER.contamination(run_id).parent


def training_threads(wildcards):
    """The cores of its run; all of this machine while a benchmark is made here, so that nothing else runs beside it."""
    targets = workflow.dag_settings.targets if workflow.dag_settings else ()
    if LOCAL and "benchmark" in targets:
        return workflow.cores
    return run_of(wildcards).hardware["cpus"]


def benchmarked_runs():
    """The runs of `--config reproduce`; without it those of the recipe that is the same through all frameworks."""
    named = "reproduce" in workflow.config_settings.config
    return CHOSEN if named else request.run_names(request.RUNS, config["scale"])


def benchmarked_results(wildcards):
    """Scores and logs of every seed, with `bare` also the times of the frameworks' own commands."""
    check_whole()
    try:
        request.check(
            benchmarked_runs(),
            config["scale"],
            config.get("with", []),
            str(config.get("price", "")),
            request.page_folder(Path(RESULTS), benchmarked_runs(), config["scale"]),
        )
    except UserError as error:
        raise refusal(error) from None
    bare = bool(config.get("bare"))
    trained = [
        (results_of(seeds.run_id(name, seed)), RUNS[name])
        for name in benchmarked_runs()
        for seed in config["seeds"]
    ]
    return [
        file
        for folder, run in trained
        for file in (folder.scores, *request.timed_files(folder, run, bare))
    ]


def trainings_of_sweep(wildcards):
    """The ids of the trainings of a sweep, of all settings and seeds."""
    sweep = f"{wildcards.recipe}/{wildcards.sweep}"
    names = [name for name in SWEPT if name.partition("@")[0] == sweep]
    return [seeds.run_id(name, seed) for name in names for seed in config["seeds"]]


def logs_of_sweep(wildcards):
    return [results_of(name).training_log for name in trainings_of_sweep(wildcards)]


def scores_of_sweep(wildcards):
    check_whole()
    return score_files(trainings_of_sweep(wildcards))


def sweep_pages(wildcards):
    """The pages of the configured sweeps."""
    if not config.get("sweep"):
        sentence = (
            "snakemake sweep needs the sweeps to make: add --config sweep='[openr1/group-size]', or one of "
            + ", ".join(sweeps.names())
        )
        raise refusal(UserError(sentence, code="missing-setting", key="sweep"))
    return [f"{RESULTS}/report/sweeps/{name}/index.html" for name in config["sweep"]]


def scores_and_logs(names):
    """What `load_results` reads of trainings."""
    return score_files(names) + [results_of(name).training_log for name in names]


def evaluation_targets(wildcards):
    """What `snakemake evaluate` makes: the scores of the configured runs, or those of the named model and its page."""
    if not config.get("checkpoint"):
        if named := [
            key
            for key in ("benchmarks", "protocol", "prompt", "max_tokens", "device")
            if config.get(key)
        ]:
            sentence = f"snakemake evaluate needs checkpoint=… beside {' and '.join(named)}: a model's folder or a hub id"
            raise refusal(UserError(sentence, code="missing-setting", key="checkpoint"))
        return score_files(RUN_IDS)
    try:
        run_id = COMPARISON.evaluation_id("checkpoint")
    except UserError as error:
        raise refusal(error) from None
    return [*score_files([run_id]), f"{RESULTS}/report/{run_id}/index.html"]


def evaluation_notes(wildcards):
    """What `snakemake evaluate` says below the scores of a model: with which settings, and why."""
    if not config.get("checkpoint"):
        return []
    settings = COMPARISON.settings
    return [
        "--note",
        f"settings: {describe(settings.evaluation)} ({settings.source})",
    ]


def model_settings_of(model):
    """For `settings`: what decides a base model; a configured folder is another model, a mirror has the same."""
    settings = (
        MODELS[model] if model in config.get("models", {}) else models.settings(model)
    )
    return settings | ({"code": True} if model in config.get("model_code", []) else {})


def model_source(model):
    """Where recipes.models looks for a base model before it downloads it, and whether with its code."""
    code = ["--code"] if model in config.get("model_code", []) else []
    if folder := config.get("models", {}).get(model):
        return ["--folder", folder, *code]
    return [*MODEL_MIRROR, *code]


def maker_device(model):
    """The device of the environment that makes a model: that of the runs that start from it, which is there anyway."""
    devices = {RUNS[name].device for name in CHOSEN if RUNS[name].model == model}
    has_lock = MODELS[model].get("environment", "base") in build.names("cuda")
    return "cuda" if "cuda" in devices and has_lock else "cpu"


def regrading_extraction(wildcards):
    if wildcards.extraction == "protocol":
        return extraction_of(run_of(wildcards).name)
    return wildcards.extraction


def completion_limit(wildcards):
    """Short models have a shorter limit than the protocol's."""
    limits = run_of(wildcards).evaluation.get("override", {})
    return {key: value for key, value in limits.items() if key == "max_tokens"}


def model_id(wildcards):
    """The run id of a model that is evaluated alone."""
    return MODEL_ID.format(model=wildcards.model, settings=wildcards.settings)


def check_seeds(target, fewest):
    """Refuse a study with fewer training seeds than its test needs."""
    if len(config["seeds"]) < fewest:
        sentence = (
            f"snakemake {target} needs {fewest} training seeds or more, but seeds has {len(config['seeds'])}: add "
            f"--config seeds='{list(range(fewest))}'"
        )
        raise refusal(
            UserError(sentence, code="too-few-seeds", seeds=len(config["seeds"]))
        )

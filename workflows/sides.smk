# What `snakemake check` compares: the two sides that the configuration names, and what the rules ask about them.

from analysis.gate import request


def side(key):
    """The side that the configuration names, or an error that says what it should be."""
    word = config.get(key)
    if not word:
        raise WorkflowError(
            f"snakemake check needs --config checkpoint=… baseline=…, and has no {key}"
        )
    try:
        return request.resolve(str(word), key, RUNS)
    except UserError as error:
        raise WorkflowError(str(error)) from None


# A mistyped name is told at once, not when the rules are put together.
SIDES = {key: side(key) for key in ("checkpoint", "baseline") if config.get(key)}
try:
    request.check_benchmarks(config.get("benchmarks") or [], SIDES.values(), RUNS)
except UserError as error:
    raise WorkflowError(f"config: benchmarks: {error}") from None


def check_run():
    """The run whose protocol, benchmarks and device are taken."""
    for key in ("baseline", "checkpoint"):
        wanted = request.STORED.fullmatch(str(config.get(key)))
        if wanted and wanted["run"] in RUNS:
            return RUNS[wanted["run"]]
    return RUNS[ASKED[0]]


def check_benchmarks(_=None):
    return config.get("benchmarks") or check_run().evaluation["benchmarks"]


def check_settings():
    """Everything that decides the samples of a checked model, so that other settings mean other folders."""
    run = check_run()
    settings = [run.evaluation, check_benchmarks(), run.device]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def model_folder(wildcards):
    wanted = next(
        s for s in (side("checkpoint"), side("baseline")) if s.slug == wildcards.model
    )
    return (
        wanted.name
        if wanted.kind == "folder"
        else f"{RESULTS}/check/models/{wildcards.model}"
    )


def graded_of(key):
    """The folder or file of a side's graded samples; the published name of one that has none."""
    wanted = side(key)
    if wanted.is_model:
        return f"{RESULTS}/check/samples/{wanted.slug}-{check_settings()}/graded"
    if wanted.kind == "stored":
        match = request.STORED.fullmatch(wanted.name)
        return f"{RESULTS}/runs/{match['run']}/seed-{match['seed']}/graded"
    return wanted.name


def compared_side(key):
    """What the comparison is given: one step of a stored run's folder."""
    wanted = side(key)
    if wanted.kind == "stored":
        return f"{graded_of(key)}/step-{wanted.name.rpartition('-')[2]}"
    return f"{graded_of(key)}/step-0" if wanted.is_model else graded_of(key)

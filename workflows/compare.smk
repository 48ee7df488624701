# snakemake check --config checkpoint=… baseline=…: evaluate what is missing, then compare. Missing evaluations use the settings
# of a run (GateRequest.run, evaluate_model.smk). Snakemake itself exits with 0 or 1. The verdict (better, worse, cannot tell,
# not comparable) is in check.json, and `python -m analysis.compare_checkpoints show` exits with its status.

from analysis.compare_checkpoints.check_request import SIDES, GateRequest

try:
    GATE = GateRequest(config, RUNS, ASKED[0], FOLDER)
except UserError as error:
    raise refusal(error) from None


TIES = ["--ties", config["ties"]] if config.get("ties") else []


localrules:
    check,
    compare,
    compare_checkpoints,


rule compare_checkpoints:
    input:
        lambda wildcards: [
            graded for key in SIDES if (graded := GATE.graded(key)) is not None
        ],
    output:
        directory(f"{RESULTS}/check/{{pair}}-against-{{other}}"),
    log:
        f"logs/{config['scale']}/check/{{pair}}-against-{{other}}.log",
    wildcard_constraints:
        pair="[^/]+",
        other="[^/]+",
    params:
        base=BASE,
        checkpoint=lambda wildcards: GATE.compared("checkpoint"),
        checkpoint_name=config.get("checkpoint"),
        baseline=lambda wildcards: GATE.compared("baseline"),
        baseline_name=config.get("baseline"),
        benchmarks=(
            ["--benchmark", *config["benchmarks"]] if config.get("benchmarks") else []
        ),
        accepted=["--accept", *config["accept"]] if config.get("accept") else [],
        problems=config.get("problems", "like"),
        margin=config.get("margin", 0),
        ties=TIES,
        settings=lambda wildcards: fingerprint(GATE.reference()),
    shell:
        # Worse (1) and not comparable (2) are results. Only a comparison that failed (3) fails here.
        "{params.base:q} -m analysis.compare_checkpoints compare --checkpoint {params.checkpoint:q} --baseline {params.baseline:q}"
        " --checkpoint-name {params.checkpoint_name:q} --baseline-name {params.baseline_name:q} {params.benchmarks:q}"
        " {params.accepted:q} --problems {params.problems:q} --margin {params.margin:q} {params.ties:q} --output {output:q}"
        " > {log:q} 2>&1 || [ $? -le 2 ]"


# --config sequential=16: both models are sampled in rounds until the verdict is clear, all in one job.
rule check_in_rounds:
    input:
        lambda wildcards: stamp("eval", GATE.run.device),
        checkpoint=lambda wildcards: GATE.sampled("checkpoint"),
        baseline=lambda wildcards: GATE.sampled("baseline"),
        problems=lambda wildcards: [
            FOLDER.problems("benchmarks", name) for name in GATE.benchmarks
        ],
    output:
        directory(f"{RESULTS}/check/rounds/{{pair}}-against-{{other}}"),
    log:
        f"logs/{config['scale']}/check/rounds/{{pair}}-against-{{other}}.log",
    wildcard_constraints:
        pair="[^/]+",
        other="[^/]+",
    threads: 1
    resources:
        **asks(lambda wildcards: generation_need(GATE.run)),
    params:
        base=BASE,
        data=DATA_FOLDER,
        python=lambda wildcards: python("eval", GATE.run.device),
        work=unrecorded(
            lambda wildcards: f"{WORK}/check/rounds/{wildcards.pair}-against-{wildcards.other}"
        ),
        names=[str(config.get(key)) for key in SIDES],
        benchmarks=lambda wildcards: list(GATE.benchmarks),
        most=lambda wildcards: GATE.rounds(config["sequential"]),
        margin=config.get("margin", 0),
        sampling=unrecorded(lambda wildcards: commands.run_sampling_options(GATE.run)),
        settings=lambda wildcards: [
            fingerprint(sampling_settings(GATE.run, GATE.benchmarks)),
            grading_hash(tuple(GATE.benchmarks)),
        ],
    shell:
        # Worse (1) and not comparable (2) are results, as in compare_checkpoints.
        "{params.base:q} -m analysis.compare_checkpoints sequential --python {params.python:q} --checkpoint {input.checkpoint:q}"
        " --baseline {input.baseline:q} --checkpoint-name {params.names[0]:q} --baseline-name {params.names[1]:q}"
        " --benchmark {params.benchmarks:q} --most {params.most:q} --margin {params.margin:q} --data {params.data:q}"
        " --work {params.work:q} --output {output:q} -- {params.sampling:q} > {log:q} 2>&1 || [ $? -le 2 ]"


rule check:
    input:
        lambda wildcards: (
            f"{RESULTS}/check/{'rounds/' if config.get('sequential') else ''}"
            f"{GATE.side('checkpoint').slug}-against-{GATE.side('baseline').slug}"
        ),
    log:
        f"logs/{config['scale']}/check/verdict.log",
    params:
        base=BASE,
    shell:
        # `show` fails the rule if the checkpoint is worse or could not be compared. Snakemake prints the log of a failed
        # rule, so that the table is not written there as well.
        "echo 'The comparison is in' {input:q} > {log:q}; {params.base:q} -m analysis.compare_checkpoints show {input:q}/check.json"


rule compare:
    input:
        a=lambda wildcards: graded_of("recipe_a"),
        b=lambda wildcards: graded_of("recipe_b"),
    log:
        f"logs/{config['scale']}/check/recipes.log",
    params:
        base=BASE,
        benchmarks=(
            ["--benchmark", *config["benchmarks"]] if config.get("benchmarks") else []
        ),
        rule=config.get("rule", "last"),
        ties=TIES,
        output=f"{RESULTS}/check/recipes",
    shell:
        "{params.base:q} -m analysis.compare_recipes --a {input.a:q} --b {input.b:q} {params.benchmarks:q}"
        " --rule {params.rule:q} {params.ties:q} --output {params.output:q} 2> {log:q}"

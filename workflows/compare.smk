# snakemake check --config checkpoint=… baseline=…: evaluate what is missing, then compare. Missing evaluations use the settings
# of a run (CheckRequest.run, evaluate_model.smk). Snakemake itself exits with 0 or 1. The verdict (better, worse, cannot tell,
# not comparable) is in check.json, and `python -m analysis.compare_checkpoints show` exits with its status.

from analysis.compare_checkpoints.check_request import (
    SIDES,
    CheckRequest,
    command_options,
)

try:
    CHECK = CheckRequest(config, RUNS, CHOSEN[0], FOLDER)
except UserError as error:
    raise refusal(error) from None


localrules:
    check,
    compare,
    compare_checkpoints,


rule compare_checkpoints:
    input:
        lambda wildcards: [
            graded for key in SIDES if (graded := CHECK.graded(key)) is not None
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
        checkpoint=lambda wildcards: CHECK.compared_samples("checkpoint"),
        checkpoint_name=config.get("checkpoint"),
        baseline=lambda wildcards: CHECK.compared_samples("baseline"),
        baseline_name=config.get("baseline"),
        options=command_options(
            config, "benchmarks", "accept", "problems", "margin", "ties"
        ),
        settings=lambda wildcards: fingerprint(CHECK.reference_content()),
    shell:
        # Worse (1) and not comparable (2) are results. Only a comparison that failed (3) fails here.
        "{params.base:q} -m analysis.compare_checkpoints compare --checkpoint {params.checkpoint:q} --baseline {params.baseline:q}"
        " --checkpoint-name {params.checkpoint_name:q} --baseline-name {params.baseline_name:q} {params.options:q}"
        " --output {output:q} > {log:q} 2>&1 || [ $? -le 2 ]"


# --config sequential=16: both models are sampled in rounds until the verdict is clear, all in one job.
rule check_in_rounds:
    input:
        lambda wildcards: environment_stamp("eval", CHECK.run.device),
        checkpoint=lambda wildcards: CHECK.model_to_sample("checkpoint"),
        baseline=lambda wildcards: CHECK.model_to_sample("baseline"),
        problems=lambda wildcards: [
            FOLDER.problems("benchmarks", name) for name in CHECK.benchmarks
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
        **resources_for(lambda wildcards: generation_need(CHECK.run)),
    params:
        base=BASE,
        data=DATA_FOLDER,
        python=lambda wildcards: python("eval", CHECK.run.device),
        work=unrecorded(
            lambda wildcards: f"{WORK}/check/rounds/{wildcards.pair}-against-{wildcards.other}"
        ),
        names=[str(config.get(key)) for key in SIDES],
        benchmarks=lambda wildcards: list(CHECK.benchmarks),
        most=lambda wildcards: CHECK.most_repeats(config["sequential"]),
        options=command_options(config, "margin"),
        sampling=unrecorded(lambda wildcards: commands.run_sampling_options(CHECK.run)),
        settings=lambda wildcards: [
            fingerprint(sampling_settings(CHECK.run, CHECK.benchmarks)),
            grading_hash(tuple(CHECK.benchmarks)),
        ],
    shell:
        # Worse (1) and not comparable (2) are results, as in compare_checkpoints.
        "{params.base:q} -m analysis.compare_checkpoints sequential --python {params.python:q} --checkpoint {input.checkpoint:q}"
        " --baseline {input.baseline:q} --checkpoint-name {params.names[0]:q} --baseline-name {params.names[1]:q}"
        " --benchmark {params.benchmarks:q} --most {params.most:q} {params.options:q} --data {params.data:q}"
        " --work {params.work:q} --output {output:q} -- {params.sampling:q} > {log:q} 2>&1 || [ $? -le 2 ]"


rule check:
    input:
        lambda wildcards: (
            f"{RESULTS}/check/{'rounds/' if config.get('sequential') else ''}"
            f"{CHECK.side('checkpoint').slug}-against-{CHECK.side('baseline').slug}"
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
        a=lambda wildcards: graded_samples("recipe_a"),
        b=lambda wildcards: graded_samples("recipe_b"),
    log:
        f"logs/{config['scale']}/check/recipes.log",
    params:
        base=BASE,
        options=command_options(config, "benchmarks", "rule", "ties"),
        output=f"{RESULTS}/check/recipes",
    shell:
        "{params.base:q} -m analysis.compare_recipes --a {input.a:q} --b {input.b:q} {params.options:q}"
        " --output {params.output:q} 2> {log:q}"

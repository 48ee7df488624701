# snakemake compare_checkpoints --config checkpoint=… baseline=…: evaluate what is missing, then compare. How
# models are asked: eval/model_settings.py. Snakemake itself exits with 0 or 1. The verdict (better, worse,
# cannot tell, not comparable) is in comparison.json, and `crosszero compare-checkpoints show` exits with its status.

from analysis.compare_checkpoints.comparison_request import (
    SIDES,
    ComparisonRequest,
    command_options,
)
from eval.model_settings import describe

try:
    COMPARISON = ComparisonRequest(config, RUNS, FOLDER)
except UserError as error:
    raise refusal(error) from None


localrules:
    compare_pair,
    compare_recipes,
    compare_checkpoints,


rule compare_pair:
    input:
        lambda wildcards: [
            graded for key in SIDES if (graded := COMPARISON.graded(key)) is not None
        ],
    output:
        directory(f"{RESULTS}/compare/checkpoints/{{pair}}-against-{{other}}"),
    log:
        f"logs/{config['scale']}/compare/checkpoints/{{pair}}-against-{{other}}.log",
    wildcard_constraints:
        pair="[^/]+",
        other="[^/]+",
    params:
        base=BASE,
        checkpoint=lambda wildcards: COMPARISON.compared_samples("checkpoint"),
        checkpoint_name=config.get("checkpoint"),
        baseline=lambda wildcards: COMPARISON.compared_samples("baseline"),
        baseline_name=config.get("baseline"),
        options=command_options(
            config,
            "benchmarks",
            "accept",
            "problems",
            "margin",
            "candidates",
            "choose_on_half",
            "looks",
            "posterior",
            "ties",
        ),
        settings=lambda wildcards: fingerprint(COMPARISON.reference_content()),
    shell:
        # Worse (1) and not comparable (2) are results. Only a comparison that failed (3) fails here.
        "{params.base:q} -m analysis.compare_checkpoints compare --checkpoint {params.checkpoint:q} --baseline {params.baseline:q}"
        " --checkpoint-name {params.checkpoint_name:q} --baseline-name {params.baseline_name:q} {params.options:q}"
        " --output {output:q} > {log:q} 2>&1 || [ $? -le 2 ]"


# --config sequential=16: both models are sampled in rounds until the verdict is clear, all in one job.
rule compare_in_rounds:
    input:
        lambda wildcards: environment_stamp("eval", COMPARISON.settings.device),
        checkpoint=lambda wildcards: COMPARISON.model_to_sample("checkpoint"),
        baseline=lambda wildcards: COMPARISON.model_to_sample("baseline"),
        problems=lambda wildcards: [
            FOLDER.problems("benchmarks", name) for name in COMPARISON.benchmarks
        ],
    output:
        directory(f"{RESULTS}/compare/in_rounds/{{pair}}-against-{{other}}"),
    log:
        f"logs/{config['scale']}/compare/in_rounds/{{pair}}-against-{{other}}.log",
    wildcard_constraints:
        pair="[^/]+",
        other="[^/]+",
    threads: 1
    resources:
        **resources_for(lambda wildcards: generation_need(COMPARISON.settings)),
    params:
        base=BASE,
        data=DATA_FOLDER,
        python=lambda wildcards: python("eval", COMPARISON.settings.device),
        work=unrecorded(
            lambda wildcards: f"{WORK}/compare/in_rounds/{wildcards.pair}-against-{wildcards.other}"
        ),
        names=[str(config.get(key)) for key in SIDES],
        benchmarks=lambda wildcards: list(COMPARISON.benchmarks),
        most=lambda wildcards: COMPARISON.most_repeats(config["sequential"]),
        options=command_options(config, "margin"),
        sampling=unrecorded(
            lambda wildcards: commands.run_sampling_options(
                COMPARISON.settings, subset=SUBSET
            )
        ),
        settings=lambda wildcards: [
            fingerprint(sampling_settings(COMPARISON.settings, COMPARISON.benchmarks)),
            grading_hash(tuple(COMPARISON.benchmarks)),
        ],
    shell:
        # Worse (1) and not comparable (2) are results, as in compare_pair.
        "{params.base:q} -m analysis.compare_checkpoints sequential --python {params.python:q} --checkpoint {input.checkpoint:q}"
        " --baseline {input.baseline:q} --checkpoint-name {params.names[0]:q} --baseline-name {params.names[1]:q}"
        " --benchmark {params.benchmarks:q} --most {params.most:q} {params.options:q} --data {params.data:q}"
        " --work {params.work:q} --output {output:q} -- {params.sampling:q} > {log:q} 2>&1 || [ $? -le 2 ]"


rule compare_checkpoints:
    input:
        lambda wildcards: (
            f"{RESULTS}/compare/{'in_rounds' if config.get('sequential') else 'checkpoints'}/"
            f"{COMPARISON.pair}"
        ),
    log:
        f"logs/{config['scale']}/compare/verdict.log",
    params:
        base=BASE,
    shell:
        # `show` fails the rule if the checkpoint is worse or could not be compared. Snakemake prints the log of a failed
        # rule, so that the table is not written there as well.
        "echo {input:q}/index.html > {log:q}; {params.base:q} -m analysis.compare_checkpoints show {input:q}/comparison.json"


rule compare_recipes:
    input:
        a=lambda wildcards: graded_samples("recipe_a"),
        b=lambda wildcards: graded_samples("recipe_b"),
    log:
        f"logs/{config['scale']}/compare/recipes.log",
    params:
        base=BASE,
        options=command_options(
            config, "benchmarks", "accept", "rule", "ties", "paired_seeds"
        ),
        output=lambda wildcards: f"{RESULTS}/compare/recipes/{compared_recipes(wildcards)}",
    shell:
        # Worse (1) and not comparable (2) fail, as in compare_checkpoints.
        "{params.base:q} -m analysis.compare_recipes --a {input.a:q} --b {input.b:q} {params.options:q}"
        " --output {params.output:q} > {log:q} 2>&1"
        " || {{ status=$?; [ $status -ne 1 ] || cat {log:q}; exit $status; }}"

# snakemake study_credit: trains what is missing of its runs, with the configured seeds.

from studies.credit import runs as credit_runs


def compared_for_credit(wildcards):
    """What study_credit reads: the trainings of its runs with the configured seeds."""
    if len(config["seeds"]) < credit_runs.FEWEST:
        sentence = (
            f"snakemake study_credit needs {credit_runs.FEWEST} training seeds or more, but seeds has "
            f"{len(config['seeds'])}: add --config seeds='[0,1,2,3,4]'"
        )
        raise refusal(
            UserError(sentence, code="too-few-seeds", seeds=len(config["seeds"]))
        )
    return scores_and_logs(
        [
            seeds.run_id(name, seed)
            for name in credit_runs.RUNS.values()
            for seed in config["seeds"]
        ]
    )


rule study_credit:
    input:
        compared_for_credit,
    output:
        f"{RESULTS}/studies/credit/credit.md",
    log:
        f"logs/{config['scale']}/study_credit.log",
    localrule: True
    params:
        base=BASE,
        results=unrecorded(RESULTS),
        seeds=config["seeds"],
    shell:
        "{params.base:q} -m studies.credit.study --results {params.results:q} --seeds {params.seeds:q}"
        " --output {params.results:q}/studies/credit > {log:q} 2>&1 && cat {log:q}"

# snakemake study_credit: trains what is missing of its runs, with the configured seeds.


include: "inputs.smk"


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
        " --output {params.results:q}/studies/credit > {log:q} 2>&1"

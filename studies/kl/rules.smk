# snakemake study_kl


rule study_kl:
    input:
        "results/reference/claims.yaml",
    output:
        "results/studies/kl/index.html",
    log:
        "logs/study_kl.log",
    localrule: True
    params:
        base=BASE,
        settings=fingerprint(
            [path.read_text() for path in sorted(Path("studies/kl").glob("*.py"))]
        ),
    shell:
        "{params.base:q} -m studies.kl.study --output results/studies/kl > {log:q} 2>&1"

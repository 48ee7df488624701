# A model folder, a hub id or a run's checkpoint, evaluated by itself: for `snakemake evaluate --config checkpoint=…` and for
# `snakemake compare_checkpoints`. Its results are in runs/models/, where a report finds them. COMPARISON (compare.smk) says with
# which settings.

MODEL_ID = f"{paths.MODELS}{{model}}-{{settings}}"
MODEL_FOLDER = FOLDER.run(MODEL_ID)


wildcard_constraints:
    settings="[0-9a-f]{8}(?:-(?:first|random)-[0-9a-z-]+)?",


localrules:
    download_model,
    model_page,


rule download_model:
    output:
        directory(f"{RESULTS}/compare/models/{{model}}"),
    log:
        f"logs/{config['scale']}/compare/models/{{model}}.log",
    params:
        base=BASE,
        repository=lambda wildcards: COMPARISON.side_with_slug(wildcards.model).name,
        source=unrecorded(MODEL_MIRROR),
    shell:
        "{params.base:q} -m recipes.models {params.repository:q} --output {output:q} {params.source:q} > {log:q} 2>&1"


rule generate_of_model:
    input:
        lambda wildcards: environment_stamp("eval", COMPARISON.settings.device),
        model=lambda wildcards: COMPARISON.model_folder(wildcards.model),
        problems=lambda wildcards: tables_of(tuple(COMPARISON.benchmarks)),
    output:
        directory(MODEL_FOLDER.samples),
    log:
        f"logs/{config['scale']}/{MODEL_ID}/generate.log",
    threads: 1
    resources:
        **resources_for(lambda wildcards: generation_need(COMPARISON.settings)),
    params:
        command=lambda wildcards, input, output: commands.generate(
            python("eval", COMPARISON.settings.device),
            run=model_id(wildcards),
            checkpoints={0: input.model},
            benchmarks=COMPARISON.benchmarks,
            data=FOLDER.benchmarks,
            work=WORK_FOLDER.run(model_id(wildcards)).samples,
            output=output[0],
            sampling=commands.run_sampling_options(COMPARISON.settings, subset=SUBSET),
        ),
        python=lambda wildcards: python("eval", COMPARISON.settings.device),
        run=MODEL_ID,
        settings=lambda wildcards: fingerprint(
            sampling_settings(COMPARISON.settings, COMPARISON.benchmarks)
        ),
    shell:
        "{params.command:q} 2>&1 | tee -a {log:q}"


use rule grade_samples as grade_of_model with:
    input:
        lambda wildcards: environment_stamp("eval", COMPARISON.settings.device),
        samples=MODEL_FOLDER.samples,
        problems=lambda wildcards: tables_of(tuple(COMPARISON.benchmarks)),
    output:
        directory(MODEL_FOLDER.graded),
    log:
        f"logs/{config['scale']}/{MODEL_ID}/grade.log",
    params:
        command=lambda wildcards, input, output: commands.grade(
            python("eval", COMPARISON.settings.device),
            samples=input.samples,
            data=FOLDER.benchmarks,
            output=output[0],
            extraction=protocol_of(COMPARISON.settings).extraction,
        ),
        python=lambda wildcards: python("eval", COMPARISON.settings.device),
        extraction=lambda wildcards: protocol_of(COMPARISON.settings).extraction,
        settings=lambda wildcards: grading_hash(tuple(COMPARISON.benchmarks)),


use rule score_run as score_of_model with:
    input:
        graded=MODEL_FOLDER.graded,
        problems=lambda wildcards: tables_of(tuple(COMPARISON.benchmarks)),
    output:
        MODEL_FOLDER.scores,
    log:
        f"logs/{config['scale']}/{MODEL_ID}/score.log",


rule model_page:
    input:
        graded=MODEL_FOLDER.graded,
        scores=MODEL_FOLDER.scores,
    output:
        f"{RESULTS}/report/{MODEL_ID}/index.html",
    log:
        f"logs/{config['scale']}/{MODEL_ID}/page.log",
    params:
        base=BASE,
        results=unrecorded(RESULTS),
        title=lambda wildcards: COMPARISON.side_with_slug(wildcards.model).name,
        run=MODEL_ID,
        output=f"{RESULTS}/report/{MODEL_ID}",
        settings=lambda wildcards: report_hash([]),
    shell:
        "{params.base:q} -m analysis.report --results {params.results:q} --title {params.title:q}"
        " --run {params.run:q} --output {params.output:q} > {log:q} 2>&1"

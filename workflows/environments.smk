# One Python environment per framework and device, from its lock; its folder carries the lock's hash.

# Packages are compiled when they are first imported; a shell that forbids to keep that would make each import slow.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


localrules:
    environment,
    environments,


rule environment:
    input:
        ancient("envs/{env}/{device}.lock"),
    output:
        ".envs/{env}-{device}-{hash}/.stamp",
    log:
        "logs/environments/{env}-{device}-{hash}.log",
    wildcard_constraints:
        env="[a-z]+",
        device="cpu|cuda",
        hash="[0-9a-f]{12}",
    params:
        base=BASE,
    shell:
        "{params.base:q} envs/build.py {wildcards.env:q} --device {wildcards.device:q} > {log:q} 2>&1"


rule environments:
    input:
        sorted(
            {
                environment_stamp(name, RUNS[run].device)
                for run in CHOSEN
                for name in (RUNS[run].framework, "eval")
            }
        ),


rule parse_run_files:
    input:
        lambda wildcards: environment_stamp(wildcards.framework, "cpu"),
        [str(run.file) for run in RUNS.values()],
        "config/schemas/run.schema.yaml",
        prompts.files(),
    output:
        f"{WORK}/parsed_runs/{{framework}}.txt",
    log:
        f"logs/{config['scale']}/parse_runs/{{framework}}.log",
    resources:
        **resources_for(Need(memory_mb=2000, minutes=10)),
    params:
        python=lambda wildcards: python(wildcards.framework, "cpu"),
    shell:
        "{params.python:q} -m frameworks check --framework {wildcards.framework:q} --output {output:q}"
        " > {log:q} 2>&1"

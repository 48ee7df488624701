"""A workflow of a few jobs, submitted as the project's own are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from contracts.run_file import ROOT
from tests.slurm import daemons

SNAKEFILE = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from cluster import ended_jobs, orphaned_jobs, retry_interrupted, slurm, submission
import snakemake_executor_plugin_slurm
submission.FIRST_PAUSE, ended_jobs.SQUEUE_SECONDS = 0.5, 3
if workflow.is_main_process:
    executor = snakemake_executor_plugin_slurm.Executor
    retry_interrupted.retry_only_interrupted(executor, Path("work"))
    orphaned_jobs.name_jobs(executor, Path("work"))
    SUBMISSIONS = orphaned_jobs.pick_up(executor, Path("work"))
    ended_jobs.notice_ended(executor, Path("work"), logger.warning)
    submission.be_patient(snakemake_executor_plugin_slurm, logger.warning)
    if (limit := slurm.submit_limit(None, None, ("",))) and limit < workflow.nodes:
        workflow.register_resource("_nodes", limit)
else:
    shell.prefix("set -euo pipefail; " + retry_interrupted.record_exit_status(Path("work")))

onstart:
    if workflow.is_main_process:
        print(*SUBMISSIONS.settle(workflow.dag), sep="\\n", flush=True)
        Path("settled").touch()

rule all:
    input: expand("made/{{n}}", n=range({count}))

rule job:
    output: "made/{{n}}"
    resources: mem_mb=300, runtime={minutes}
    shell: "echo try >> tries-{{wildcards.n}}; {command}; touch {{output}}"
"""
# Planned calls are refused, of which the fourth after the job was taken; or one in five, half of them taken.
# The log has a line for each call.
FLAKY_SBATCH = """#!{python}
import json, random, subprocess, sys
plan, words = {plan!r}, sys.argv[1:]
with open({log!r} + ".calls", "a") as file:
    file.write(".")
    file.flush()
    number = file.tell()
refused = number in plan if plan else random.random() < 0.2
taken = number == 4 if plan else random.random() < 0.5
done = subprocess.run([{sbatch!r}, *words], capture_output=True, text=True) if taken or not refused else None
comment = words[words.index("--comment") + 1].partition(".cz")[0] if "--comment" in words else ""
job = done.stdout.strip() if done else ""
with open({log!r}, "a") as file:
    file.write(json.dumps(dict(comment=comment, job=job, refused=refused)) + "\\n")
if refused:
    sys.exit("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
print(done.stdout, end="")
print(done.stderr, end="", file=sys.stderr)
sys.exit(done.returncode)
"""


def flaky_sbatch(cluster: daemons.Cluster, folder: Path, plan: tuple[int, ...] = ()) -> tuple[str, Path]:
    """A folder for the beginning of PATH with an sbatch that fails, at random without a plan, and its log."""
    (program := folder / "flaky" / "sbatch").parent.mkdir()
    log, sbatch = folder / "sbatch.jsonl", shutil.which("sbatch", path=cluster.environment["PATH"])
    program.write_text(FLAKY_SBATCH.format(python=sys.executable, sbatch=sbatch, log=str(log), plan=plan))
    program.chmod(0o755)
    return str(program.parent), log


def start(
    cluster: daemons.Cluster, folder: Path, count: int, command: str, path: str = "", minutes: int = 5
) -> subprocess.Popen[str]:
    rules = SNAKEFILE.format(root=str(ROOT), count=count, command=command, minutes=minutes)
    (folder / "Snakefile").write_text(rules + daemons.POLLING)
    options = [
        "--executor",
        "slurm",
        "--jobs",
        "40",
        "--retries",
        "3",
        "--keep-going",
        "--latency-wait",
        "5",
        "--nolock",
    ]
    options += ["--rerun-incomplete", "--slurm-requeue"]
    options += ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2"]
    environment = cluster.environment
    return subprocess.Popen(
        ["snakemake", *options, "all"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**environment, "PATH": f"{path}:{Path(sys.executable).parent}:{environment['PATH']}"},
    )  # fmt: skip


def tries(folder: Path) -> list[int]:
    return sorted(len(file.read_text().split()) for file in folder.glob("tries-*"))

"""Real training on two nodes of a real Slurm job, through each framework: over Ray, or over accelerate.

Without GPUs each node stands for one: two processes train, and where vLLM generates, two of it.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from contracts import tables
from tests import needs
from tests.contract import tiny_project
from tests.slurm import daemons
from tests.waiting import WORKFLOW_LIMIT

pytestmark = [pytest.mark.slurm, pytest.mark.slurm_long, pytest.mark.slow, pytest.mark.usefixtures("slurm")]
STEPS = 3
CHANGES: dict[str, Any] = {
    "steps": STEPS,
    "checkpoints": [STEPS],
    "batch": {"prompts_per_step": 8, "prompts_per_update": 4, "samples_per_prompt": 2, "samples_per_device": 4},
    "optimizer": {"learning_rate": 1e-3, "max_grad_norm": 1.0},
    "objective": {"kl_coefficient": 0.0, "clip_ratio": 0.2},
    "hardware": {"gpus": 0, "nodes": 2, "cpus": 2, "memory_gb": 8, "hours": 1},
}
# Each of the two processes writes one of these files.
SHARDS = {
    "verl": f"checkpoints/global_step_{STEPS}/actor/model_world_size_2_rank_*.pt",
    "openrlhf": f"checkpoints/_actor/global_step{STEPS}/*_optim_states.pt",
    "trl": f"checkpoint-{2 * STEPS}/rng_state_*.pth",  # TRL counts updates, of which a step makes two
}


def state_of(cluster: daemons.Cluster, project: Path, line: str, minutes: int) -> tuple[str, str]:
    """Final state of a job on two nodes, and the output of the job and the trainer."""
    command = ["sbatch", "--parsable", "--nodes=2", "--ntasks=2", "--cpus-per-task=2", f"--time={minutes}"]
    command += [f"--chdir={project}", f"--output={project}/job.out", "--wrap", f"srun -n1 -N1 {line}"]
    job = cluster.run(*command).strip()
    deadline = time.monotonic() + WORKFLOW_LIMIT
    while cluster.jobs()[job] in ("PENDING", "RUNNING", "COMPLETING"):
        assert time.monotonic() < deadline, (project / "job.out").read_text()[-3000:]
        time.sleep(1)
    cluster.wait_for("the end of all processes", lambda: not tiny_project.processes(project))
    log = project / "work" / "train.log"
    printed = (project / "job.out").read_text() + (log.read_text(errors="replace") if log.is_file() else "")
    return cluster.jobs()[job], printed


@pytest.mark.parametrize("framework", sorted(SHARDS))
def test_grpo_on_two_nodes(framework: str, tmp_path: Path) -> None:
    needs.skip_without(framework)
    project = tiny_project.make(tmp_path, framework, "grpo", **CHANGES)
    options = ["--problems", "problems.parquet", "--output", "log.parquet", "--rollouts", "rollouts.parquet"]
    line = " ".join(map(str, tiny_project.command(project, "train", *options, framework=framework)))
    native = project / "work" / "native"
    with daemons.cluster(2, cpus=2, memory_mb=12000, extra="OverTimeLimit=60") as cluster:  # the limit ends no job
        if framework == "trl":  # both processes agree to end before a time limit
            state, printed = state_of(cluster, project, line, minutes=1)
            assert state == "FAILED" and f"stopped after step 1 of {STEPS}" in printed, printed[-9000:]
            assert len(list(native.glob("checkpoint-2/rng_state_*.pth"))) == 2
            shutil.rmtree(project / "work")  # torch cannot load the optimiser of several CPU processes again
        state, printed = state_of(cluster, project, line, minutes=60)
    assert state == "COMPLETED", printed[-9000:]
    assert framework == "trl" or "Ray: 2 nodes with 2 GPUs" in printed
    assert len(list(native.glob(SHARDS[framework]))) == 2
    rows = tables.read(project / "log.parquet", tables.TRAINING_LOG).to_pylist()
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert all(row["grad_norm"] > 0 for row in rows)

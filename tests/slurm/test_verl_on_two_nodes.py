"""A real verl training over Ray on two nodes of a real Slurm job, two processes that train and two that generate."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from contracts import tables
from envs.build import folder as environment
from tests.contract import verl_project
from tests.slurm import daemons

pytestmark = [pytest.mark.slurm, pytest.mark.slurm_long, pytest.mark.slow, pytest.mark.usefixtures("slurm")]
STEPS = 2


@pytest.fixture
def project(tmp_path: Path) -> Path:
    if not (environment("verl", "cpu") / ".stamp").is_file():
        pytest.skip("environment verl is not built; make test builds it")
    folder = verl_project.make(tmp_path)
    file = folder / "recipes" / "tiny" / "ppo.yaml"
    content = yaml.safe_load(file.read_text())
    content["algorithm"] = "grpo"
    content["demo"] |= {"steps": STEPS, "checkpoints": [STEPS], "objective": {"kl_coefficient": 0.0, "clip_ratio": 0.2}}
    content["demo"]["optimizer"] = {"learning_rate": 1e-3, "max_grad_norm": 1.0}
    content["demo"]["hardware"] |= {"nodes": 2, "cpus": 2}
    content["full"] = content["demo"]
    file.write_text(yaml.safe_dump(content))
    return folder


def test_grpo_on_two_nodes(project: Path) -> None:
    words = verl_project.command(project, "train", "--problems", "problems.parquet", "--output", "log.parquet")
    line = " ".join(map(str, [*words, "--rollouts", "rollouts.parquet"]))
    with daemons.cluster(2, cpus=2, memory_mb=12000) as cluster:
        submit = ["sbatch", "--parsable", "--nodes=2", "--ntasks=2", "--cpus-per-task=2", f"--chdir={project}"]
        job = cluster.run(*submit, f"--output={project}/job.out", "--wrap", f"srun -n1 -N1 {line}").strip()
        deadline = time.monotonic() + 900
        while cluster.jobs()[job] in ("PENDING", "RUNNING", "COMPLETING"):
            assert time.monotonic() < deadline, (project / "job.out").read_text()[-3000:]
            time.sleep(1)
        log = (project / "work" / "train.log").read_text(errors="replace") if (project / "work").is_dir() else ""
        assert cluster.jobs()[job] == "COMPLETED", ((project / "job.out").read_text()[-3000:], log[-6000:])
        cluster.wait_for("the end of all processes", lambda: not verl_project.processes(project))
    assert "Ray: 2 nodes with 2 GPUs" in log
    rows = tables.read(project / "log.parquet", tables.TRAINING_LOG).to_pylist()
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    shards = project / "work" / "native" / "checkpoints" / f"global_step_{STEPS}" / "actor"
    assert len(list(shards.glob("model_world_size_2_rank_*.pt"))) == 2

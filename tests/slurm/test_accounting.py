"""A cluster with accounting (a real slurmdbd): missing and wrong accounts, and the efficiency report."""

from __future__ import annotations

import getpass
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import preflight, slurm
from cluster.job_resources import Need
from contracts.run_file import ROOT
from tests import needs
from tests.slurm import accounting, daemons
from tests.slurm.small_workflow import start, tries
from tests.waiting import WORKFLOW_LIMIT
from tests.workflow import miniature

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.slurm_long, pytest.mark.usefixtures("slurm")]
USER = getpass.getuser()


@pytest.fixture(scope="module")
def running() -> Iterator[daemons.Cluster]:
    if why := accounting.missing(daemons.PATH):
        pytest.skip(why)
    with daemons.cluster(1, gpus=1, cpus=4, memory_mb=6000, accounts="associations,limits,qos") as cluster:
        yield cluster


def wrong(cluster: daemons.Cluster, **changes: Any) -> list[str]:
    """Preflight's errors."""
    settings = yaml.safe_load((ROOT / "profiles" / "slurm" / "cluster.yaml").read_text(encoding="utf-8"))["cluster"]
    jobs = [{"name": "tables", **asdict(Need(memory_mb=500, minutes=10))}]
    return [finding.text for finding in preflight.all_findings({**settings, **changes}, jobs) if finding.error]


def test_accounts(running: daemons.Cluster, known: Callable[[daemons.Cluster], daemons.Cluster]) -> None:
    known(running)
    manage = ("sacctmgr", "--immediate")
    running.run(*manage, "delete", "user", USER, check=False)  # root has an account from the start
    refused = ["sbatch", "--parsable", "--output=/dev/null", "--wrap", "true"]
    done = subprocess.run(refused, env=running.environment, capture_output=True, text=True, check=False)
    assert done.returncode and "Invalid account" in done.stderr
    assert wrong(running) == [
        f"profiles/slurm/cluster.yaml: account is not set, and {USER} has no default account; accounts: none: ask the "
        "cluster's administrators for one"
    ]
    running.run(*manage, "add", "account", "physics", "chemistry", "cluster=crosszero")
    running.run(*manage, "add", "user", USER, "account=physics,chemistry", "defaultaccount=physics")
    problems = wrong(running, account="phisics")
    assert len(problems) == 1 and "phisics is not an account of" in problems[0], problems
    assert "chemistry, physics; did you mean physics?" in problems[0]
    assert not wrong(running) and not wrong(running, account="chemistry")


@pytest.mark.parametrize("is_known", [True, False])
def test_thirty_jobs_where_three_may_be_submitted(
    running: daemons.Cluster, known: Callable[[daemons.Cluster], daemons.Cluster], tmp_path: Path, is_known: bool
) -> None:
    known(running)
    manage = ("sacctmgr", "--immediate")
    running.run(*manage, "modify", "user", USER, "set", "maxsubmitjobs=3")
    try:
        assert slurm.submit_limit(None, None, ("",)) == 3
        (sacctmgr := tmp_path / "bin" / "sacctmgr").parent.mkdir()
        if not is_known:  # then sbatch refuses, and is given again
            sacctmgr.write_text("#!/bin/sh\nexit 1\n")
            sacctmgr.chmod(0o755)
        output, _ = (process := start(running, tmp_path, 30, "true", str(sacctmgr.parent))).communicate(
            timeout=WORKFLOW_LIMIT
        )
    finally:
        running.run(*manage, "modify", "user", USER, "set", "maxsubmitjobs=-1")
    assert process.returncode == 0 and tries(tmp_path) == [1] * 30, output
    assert ("Slurm takes no job just now" in output) != is_known, output


def test_efficiency(running: daemons.Cluster, tmp_path: Path) -> None:
    """Jobs of the real workflow, and the page about them."""
    needs.skip_without("trl")
    project = miniature.copy(tmp_path)
    (project / "slurm").symlink_to("profiles/slurm")
    path = f"{Path(sys.executable).parent}:{running.environment['PATH']}"

    def snakemake(*targets: str) -> str:
        command = ["snakemake", "--profile", "slurm", *targets, "--config", "scale=demo"]
        done = subprocess.run(
            command, cwd=project, env={**running.environment, "PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    snakemake(
        "parse_runs", "--set-resources", "parse_run_files:gres=gpu:1"
    )  # at demo scale no job holds a GPU by itself
    page = snakemake("efficiency")
    assert page.count("# Resources used by 1 jobs") == 1
    row = re.search(r"\| parse_run_files \| 1 \| 0 \| (\S+) \| 0 \| (\S+) \| (\S+) \| (\S+) \|", page)
    assert row and 0 < float(row[1]) < 0.1 and float(row[2]) >= float(row[1]) and 0 <= float(row[3]) < 0.1, page
    assert "| parse_run_files trl | COMPLETED | 1 | 0." in page

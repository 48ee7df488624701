"""GPU-hours and waiting from Slurm's accounting, as sacct prints it, and from Snakemake's own logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import efficiency
from tests.user_errors import refused

LOG = """\
Job 16 has been submitted with SLURM jobid 101 (log: /p/.snakemake/slurm_logs/rule_train/simplerl_x_0_1/101.log).
Job 3 has been submitted with SLURM jobid 102 (log: /p/.snakemake/slurm_logs/rule_grade_samples/simplerl_x_0/102.log).
"""
# sacct 22.05 --allocations --parsable2 --noheader --duplicates: job 101 was preempted and ran again, 999 is another's.
SACCT = """\
101|PREEMPTED|2026-01-01T00:00:00|2026-01-01T02:00:00|2026-01-01T03:00:00|3600|billing=64,cpu=256,gres/gpu=32,node=4
101|COMPLETED|2026-01-01T03:00:00|2026-01-01T04:00:00|2026-01-01T14:00:00|36000|billing=64,cpu=256,gres/gpu=32,node=4
102|CANCELLED by 0|2026-01-01T00:00:00|Unknown|2026-01-01T01:00:00|0|
999|COMPLETED|2026-01-01T00:00:00|2026-01-01T02:00:00|2026-01-01T03:00:00|3600|cpu=1,gres/gpu=8
"""


def test_gpu_hours_with_what_preemption_lost(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    known = efficiency.submitted_jobs([tmp_path / "a.log"])
    assert known == {"101": ("train", "simplerl_x_0_1"), "102": ("grade_samples", "simplerl_x_0")}
    jobs = efficiency.read_jobs(SACCT, known)
    assert [(job.rule, job.state, job.waited, job.ran, job.gpus) for job in jobs.itertuples()] == [
        ("train", "PREEMPTED", 2.0, 1.0, 32),
        ("train", "COMPLETED", 1.0, 10.0, 32),
        ("grade_samples", "CANCELLED", 0.0, 0.0, 0),
    ]
    page = efficiency.usage_page(jobs)
    assert "| train | 2 | 1 | 352 | 32 | 2,816 | 2 | 2 |" in page
    assert "| train simplerl_x_0_1 | COMPLETED | 32 | 1.00 | 10.00 | 320.0 |" in page


def test_no_accounting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused("slurm-command-failed", command="sacct"):
        efficiency.accounted_jobs({"1": ("train", "x")})

"""Which process of pytest runs which test file, and in which order: the longest first.

A file runs in one process, since its tests share what they made. Slurm's files wait for most of their time, so one
process runs them all, one after the other, while the others keep the cores busy; those of faults share a project.
"""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadFileScheduling

IN_ONE_ROW = ("tests/slurm/", "tests/faults/")
# For the order alone, of files that never ran here: seconds of the longest on two cores, and of a test of the others.
LONGEST = {
    "tests/workflow/test_line.py": 400.0,
    "tests/contract/test_verl_training.py": 380.0,
    "tests/contract/test_generate.py": 320.0,
    "tests/contract/test_foreign_files.py": 250.0,
    "tests/contract/test_openrlhf_training.py": 200.0,
    "tests/contract/test_verl_adapter.py": 160.0,
    "tests/unit/test_lint.py": 150.0,  # mypy without its cache
}
USUAL = {"contract": 6.0, "workflow": 4.0, "slow": 1.0}


class Scheduling(LoadFileScheduling):
    """xdist's, where the files of some folders are one."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in IN_ONE_ROW if nodeid.startswith(folder)), nodeid.partition("::")[0])


def longest_first(items: list[pytest.Item], seconds: dict[str, float]) -> None:
    """Sort tests by the seconds of their files in earlier runs, those of a row together; Slurm's are first."""
    measured = LONGEST | seconds
    known = dict(measured)
    for item in items:
        if item.location[0] not in measured:
            marks = (USUAL[mark.name] for mark in item.iter_markers() if mark.name in USUAL)
            known[item.location[0]] = known.get(item.location[0], 0.0) + max(marks, default=0.02)
    items.sort(key=lambda item: (not item.nodeid.startswith(IN_ONE_ROW), -known[item.location[0]]))
    items.sort(key=lambda item: not item.nodeid.startswith(IN_ONE_ROW[0]))

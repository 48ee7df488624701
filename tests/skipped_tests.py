"""What was not tested, and the one command that brings it: each reason of a skip is one of these kinds."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of thing that a machine may lack.

    Attributes:
        what: is missing.
        reason: pattern of the reasons of skips; what it matches says which of them.
        remedy: what brings it.
    """

    what: str
    reason: re.Pattern[str]
    remedy: str


KINDS = (
    Kind(
        "Debian packages",
        re.compile(r"chromium|bubblewrap|sandbox|strace|slurm\w*|munge|mkfs|firejail|mariadb|mysql\w*", re.IGNORECASE),
        "`make test-setup` installs them",
    ),
    Kind("environments", re.compile(r"\w+(?=(?:'s)? environment)|(?<=environment )\w+"), "`make test` builds them"),
    Kind(
        "public files",
        re.compile(r"(?<=\.\./shared/data/)[\w./-]+|\.\./shared/\w+|data mirror"),
        "tests/public_files.md says where each is from; put them into ../shared/data",
    ),
    Kind("results", re.compile(r"make demo"), "`make demo` makes them"),
    Kind(
        "a package index", re.compile(r"wheel \S+"), "pip needs one that has it, or its file in a folder (model_mirror)"
    ),
    Kind(
        "a machine of another kind", re.compile(r"root|Linux|loop device|gloo|IPv6"), "they need root, Linux and IPv6"
    ),
)


def kind_of(reason: str) -> Kind | None:
    """The kind of a reason, the first that fits."""
    return next((kind for kind in KINDS if kind.reason.search(reason)), None)


def summary_lines(reasons: Iterable[str]) -> list[str]:
    """One line for each kind of missing thing, with the number of tests and of each thing, then those of no kind."""
    tests: Counter[Kind] = Counter()
    things: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
    others: list[str] = []
    for reason in reasons:
        if (kind := kind_of(reason)) is None:
            others.append(f"1 test: {reason}")
            continue
        match = kind.reason.search(reason)
        tests[kind] += 1
        things[kind][match[0].lower() if match else ""] += 1
    lines = []
    for kind in (kind for kind in KINDS if tests[kind]):
        each = ", ".join(f"{count} {thing}" for thing, count in things[kind].most_common())
        need = "test needs" if tests[kind] == 1 else "tests need"
        lines.append(f"{tests[kind]} {need} {kind.what} ({each}): {kind.remedy}")
    return lines + sorted(others)


def tell_ci(line: str) -> None:
    """Write what was not tested on the page of a run of GitHub's CI, whose runners are not root; elsewhere nothing."""
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(page).open("a", encoding="utf-8") as file:
            file.write(f"- not tested: {line}\n")

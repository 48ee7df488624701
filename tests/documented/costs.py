"""What it takes to run a documented command: the rules of costs.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from system.yaml_files import read_yaml
from tests.documented.commands import Documented

FILE = Path(__file__).with_name("costs.yaml")
HERE = ("quick", "seconds", "minutes", "hours", "network")  # what a machine of two cores without a GPU can run
COSTS = (*HERE, "gpu", "cluster", "shape")
SECONDS = {"quick": 120, "seconds": 900, "network": 3600, "minutes": 2 * 3600, "hours": 12 * 3600}  # then it is ended
OPTIONAL = re.compile(r" \[-[^]]*\]")  # options that a usage line has in brackets


@dataclass(frozen=True)
class Rule:
    """One rule of costs.yaml."""

    match: str
    cost: str
    needs: tuple[str, ...] = ()
    replace: dict[str, str] = field(default_factory=dict)
    status: tuple[int, ...] = (0,)
    interrupt: int | None = None  # seconds, for a command that runs until Ctrl-C


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, in their order."""
    return tuple(
        Rule(
            entry["match"], entry["cost"], tuple(entry.get("needs", ())), entry.get("with", {}),
            (0, *entry.get("status", ())), entry.get("interrupt"),
        )
        for entry in read_yaml(FILE)["rules"]
    )  # fmt: skip


@cache
def inputs() -> dict[str, dict[str, Any]]:
    """What commands read, by name."""
    content: dict[str, dict[str, Any]] = read_yaml(FILE)["inputs"]
    return content


def rule_of(command: Documented) -> Rule | None:
    """The rule that decides about a command; None if there is none."""
    return next((rule for rule in rules() if re.match(rule.match, command.text)), None)


def runnable_script(command: Documented, rule: Rule) -> str:
    """What a shell runs: the command without optional parts, and with a user's own things in the place of names."""
    text = OPTIONAL.sub("", command.script)
    if not rule.replace:
        return text
    pattern = "|".join(map(re.escape, rule.replace))
    return re.sub(pattern, lambda match: rule.replace[match[0]], text)

"""Has OpenRLHF take recorded completions in their order; see studies/lockstep/fixed_rollout_training.py.

The release shuffles by itself. A line of it is rewritten as frameworks/openrlhf/cpu does, in trainings that name a
recording alone. RELEASES are what such a training may do as in production: sample by itself, draw its own prompts, and
train and sample in bfloat16, where trainings on the CPU have float32.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from frameworks import recorded_rollouts
from frameworks.openrlhf.cpu import rewrites
from system import json_lines

if TYPE_CHECKING:
    from frameworks.adapter import Command, Paths

AGENT_FILE = Path(__file__).with_name("recorded_rollout_agent.py")
RELEASES = ("sampler", "order", "precision")
RULES = [("unshuffled", r"shuffle=shuffle if sampler is None else False", "shuffle=False")]
UNSHUFFLED = {"openrlhf.utils.deepspeed.deepspeed": {"unshuffled": 1}}


def edit(command: Command, paths: Paths) -> None:
    """Put the training set into the problems' order again, and name the executor that replays the recording."""
    released = recorded_rollouts.released_parts(command.environment)
    if "order" not in released:
        data = paths.work / "data" / "train.jsonl"
        rows = {json.loads(row["label"])["problem_id"]: row for row in json_lines.read(data)}
        ordered = [
            group.problem_id for group in recorded_rollouts.read(Path(command.environment[recorded_rollouts.VARIABLE]))
        ]
        data.write_text("".join(json_lines.dump(rows[name]) for name in ordered), encoding="utf-8")
    if "sampler" not in released:
        command.arguments.extend(["--train.agent_func_path", str(AGENT_FILE)])


def install() -> None:
    """Add the rewrite; called at the start of each process of a training that names a recording."""
    if "order" not in recorded_rollouts.released_parts(os.environ):
        rewrites.add(RULES, UNSHUFFLED)

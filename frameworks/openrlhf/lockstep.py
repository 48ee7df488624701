"""Has OpenRLHF take recorded completions, in their order and in float32; see frameworks/lockstep.py.

The release trains in bfloat16 or float16 with float32 copies of the weights, and shuffles by itself. Lines of it are
rewritten as frameworks/openrlhf/cpu does, in trainings that name a tape alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from contracts import json_lines
from frameworks import tape
from frameworks.openrlhf.cpu import rewrites

if TYPE_CHECKING:
    from frameworks.adapter import Command, Paths

REPLAY_FILE = Path(__file__).with_name("replay.py")
RULES = [
    ("float32", r"return torch\.bfloat16", "return torch.float32"),
    ("float32", r'"enabled": param_dtype == "bf16"', '"enabled": False'),
    ("float32", r'"dtype": "bfloat16"', '"dtype": "float32"'),
    ("unshuffled", r"shuffle=shuffle if sampler is None else False", "shuffle=False"),
]
REWRITES = {
    "openrlhf.utils.utils": {"float32": 1},
    "openrlhf.utils.deepspeed.deepspeed_utils": {"float32": 2},
    "openrlhf.trainer.ray.vllm_engine": {"float32": 1},
    "openrlhf.utils.deepspeed.deepspeed": {"unshuffled": 1},
}


def edit(command: Command, paths: Paths) -> None:
    """Put the training set into the problems' order again, and name the executor that plays the tape."""
    data = paths.work / "data" / "train.jsonl"
    rows = {json.loads(row["label"])["problem_id"]: row for row in json_lines.read(data)}
    ordered = [group.problem_id for group in tape.read(Path(command.environment[tape.VARIABLE]))]
    data.write_text("".join(json_lines.dump(rows[name]) for name in ordered), encoding="utf-8")
    command.arguments.extend(["--train.agent_func_path", str(REPLAY_FILE)])


def install() -> None:
    """Add the rewrites; called at the start of each process of a training that plays a tape."""
    rewrites.add(RULES, REWRITES)

"""How long OpenRLHF takes to write checkpoints, in its log: `timing/checkpoint`.

OpenRLHF times its other phases. It writes a step's checkpoint when it has logged the step, so the time is in the log of
the step after, and that of the last checkpoint is between the last step and the end.
"""

from __future__ import annotations

import os
import time
from types import ModuleType
from typing import Any

from frameworks import import_hooks, update_tokens

NAME = "timing/checkpoint"


def time_checkpoints(module: ModuleType) -> None:
    """Have the trainer log the seconds of its last checkpoint with the step that follows.

    Ray has made a class of its own from the trainer's, with copies of the methods; that is what it sends to a process.
    """
    sent = module.PPOTrainer.__ray_metadata__.modified_class
    save = sent.save_logs_and_checkpoints

    def timed(self: Any, global_step: int, logs_dict: dict[str, Any] | None = None, client_states: Any = None) -> None:
        logs, began = {**(logs_dict or {}), NAME: getattr(self, NAME, 0.0)}, time.perf_counter()
        save(self, global_step, logs, client_states)
        writes = global_step % self.args.ckpt.save_steps == 0
        setattr(self, NAME, time.perf_counter() - began if writes else 0.0)

    sent.save_logs_and_checkpoints = timed


def install() -> None:
    """Do so in this process, if it is one of a training that is watched."""
    if update_tokens.VARIABLE in os.environ:
        import_hooks.after_import({"openrlhf.trainer.ppo_trainer": time_checkpoints})

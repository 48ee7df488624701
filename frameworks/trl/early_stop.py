"""TRL's trainer saves a checkpoint and ends, before its job's time is up and where it is told to end (SIGTERM).

The callback is registered among transformers' reports, because TRL's script takes callbacks only by the name of one
(`--report_to`); so it is TensorBoard's, too. transformers' own `enable_jit_checkpoint` would not do: it saves within a
step, where DeepSpeed has updated the weights of a step that is not counted yet, and it knows of no time limit.
"""

from __future__ import annotations

import math
import os
import signal
import time
from typing import Any

import torch
from transformers.integrations import integration_utils

from frameworks.trl.command import NATIVE_STEPS, STOP_IN_TIME, TIME_LIMIT

SAVE_SECONDS = 120.0  # for the first checkpoint; later the longest step has one in it


class StopInTime(integration_utils.TensorBoardCallback):  # type: ignore[misc]
    """Saves and ends at the end of a step if the longest one so far, and saving, would not end in time again."""

    def __init__(self) -> None:
        """Read what the launcher has set."""
        super().__init__()
        self.limit = float(os.environ.get(TIME_LIMIT, math.inf))
        self.steps = int(os.environ.get(NATIVE_STEPS, 1))
        self.told, self.longest, self.last = False, 0.0, math.nan

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """From now on SIGTERM asks for a checkpoint."""

        def tell(*_: object) -> None:
            self.told = True

        super().on_train_begin(args, state, control, **others)
        signal.signal(signal.SIGTERM, tell)
        self.last = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Decide, the same in every process."""
        if state.global_step % self.steps:
            return
        now = time.monotonic()
        self.longest, self.last = max(self.longest, now - self.last), now
        if agreed(self.told or self.limit - time.time() < self.longest + SAVE_SECONDS, args.device):
            control.should_save = control.should_training_stop = True


def agreed(wanted: bool, device: Any) -> bool:
    """Whether any of the processes wants it; all of them have to ask."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return wanted
    votes = torch.tensor(int(wanted), device=device)
    torch.distributed.all_reduce(votes, op=torch.distributed.ReduceOp.MAX)
    return bool(votes.item())


def register() -> None:
    """Have `--report_to` know it."""
    integration_utils.INTEGRATION_TO_CALLBACK[STOP_IN_TIME] = StopInTime

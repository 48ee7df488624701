"""Has TRL's trainer save a checkpoint and stop before its job's time limit, and at SIGTERM.

The callback is registered among transformers' integrations, because TRL's script accepts callbacks only by the name of
one (`--report_to`); so it is also the TensorBoard callback. transformers' own `enable_jit_checkpoint` does not suffice:
it saves within a step, when DeepSpeed has updated weights for a step that is not counted yet, and has no time limit.
"""

from __future__ import annotations

import math
import os
import signal
import time
from typing import Any

import torch
from transformers.integrations import integration_utils

from frameworks import reward_hook
from frameworks.trl.command import NATIVE_STEPS, STOP_IN_TIME, TIME_LIMIT
from frameworks.trl.step_timers import TimedLog

SAVE_SECONDS = 120.0  # for the first checkpoint; later the longest step includes one


class StopInTime(TimedLog):
    """Saves and stops at the end of a step if another one, as long as the longest, might not end in time."""

    def __init__(self) -> None:
        """Read the environment variables that the adapter has set."""
        super().__init__()
        self.limit = float(os.environ.get(TIME_LIMIT, math.inf))
        self.steps = int(os.environ.get(NATIVE_STEPS, 1))
        self.asked, self.longest, self.last = False, 0.0, math.nan

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """From now on SIGTERM asks to save and stop."""

        def ask(*_: object) -> None:
            self.asked = True

        super().on_train_begin(args, state, control, **others)
        signal.signal(signal.SIGTERM, ask)
        self.last = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Decide whether to stop, the same in every process."""
        if state.global_step % self.steps:
            return
        now = time.monotonic()
        self.longest, self.last = max(self.longest, now - self.last), now
        if any_process_wants(self.asked or self.limit - time.time() < self.longest + SAVE_SECONDS, args.device):
            control.should_save = control.should_training_stop = True


def any_process_wants(wanted: bool, device: Any) -> bool:
    """Whether any of the processes wants it; every process has to call this."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return wanted
    votes = torch.tensor(int(wanted), device=device)
    torch.distributed.all_reduce(votes, op=torch.distributed.ReduceOp.MAX)
    return bool(votes.item())


def register() -> None:
    """Make the callback known to `--report_to`; in a bare training that name is transformers' own TensorBoard log."""
    plain = integration_utils.TensorBoardCallback
    integration_utils.INTEGRATION_TO_CALLBACK[STOP_IN_TIME] = plain if reward_hook.BARE in os.environ else StopInTime

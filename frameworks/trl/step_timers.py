"""How long the phases of a step of TRL's trainer take, in its TensorBoard log: `timing/sampling`, `timing/update`, ….

TRL times its phases with a context of its own, `trl.extras.profiling.ProfilingContext`, but gives the times to W&B,
MLflow and Trackio alone, and the contexts lie within each other. Here each second counts for the innermost context that
has a phase. Sampling is all that TRL does for completions, with vLLM's waking and the wait for other processes, as in
the other frameworks. The backward pass has no context, and TRL's `step_time` ends while a GPU still computes it: an
update is what else lies between the beginning of a step and its log, for which the trainer waits for the loss.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

from transformers.integrations import integration_utils

# By the end of a context's name, the phase of what lies in no inner one; another context belongs to the outer one.
PHASES = {
    "_generate": "sampling",
    "sync_weights": "weight_transfer",
    "_calculate_rewards": "reward",
    "_get_per_token_logps_and_entropies": "log_probabilities",
    "_prepare_inputs": "advantages",
    "compute_loss": "update",
}


class StepTimers:
    """Seconds by phase since the last step that was logged."""

    def __init__(self) -> None:
        """Start at zero."""
        self.seconds = defaultdict[str, float](float)
        self._open: list[list[Any]] = []  # phase, when it began, and the seconds of inner phases

    def enter(self, name: str) -> None:
        """A context of TRL begins; the log-probabilities of an update belong to that."""
        phase = PHASES.get(name.rpartition(".")[2])
        outer = self._open[-1][0] if self._open else None
        self._open.append([outer if phase is None or outer == "update" else phase, time.perf_counter(), 0.0])

    def leave(self) -> None:
        """The innermost context ends."""
        phase, began, inner = self._open.pop()
        whole = time.perf_counter() - began
        if phase:
            self.seconds[phase] += whole - inner
        if self._open:
            self._open[-1][2] += whole

    def take(self, whole: float) -> dict[str, float]:
        """The seconds by phase, which begin again; those of the `whole` outside of all contexts are of the update."""
        self.seconds["update"] += whole - sum(self.seconds.values()) + self.seconds["checkpoint"]
        taken = {f"timing/{phase}": seconds for phase, seconds in self.seconds.items()}
        self.seconds.clear()
        return taken


TIMERS = StepTimers()


class TimedLog(integration_utils.TensorBoardCallback):
    """transformers' TensorBoard log with the timers of each step."""

    def __init__(self) -> None:
        """Have TRL's contexts time."""
        from trl.extras.profiling import ProfilingContext, profiling_decorator
        from trl.trainer.grpo_trainer import GRPOTrainer

        super().__init__()
        self._began = time.perf_counter()

        GRPOTrainer._generate = profiling_decorator(GRPOTrainer._generate)
        begin, end = ProfilingContext.__enter__, ProfilingContext.__exit__

        def enter(context: Any) -> Any:
            TIMERS.enter(context.name)
            return begin(context)

        def leave(context: Any, *error: Any) -> Any:
            TIMERS.leave()
            return end(context, *error)

        ProfilingContext.__enter__, ProfilingContext.__exit__ = enter, leave

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """An update begins, with the preparation of its inputs."""
        self._began = time.perf_counter()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
        """Add the timers; what follows until `on_save`, if that follows, is the writing of a checkpoint."""
        if logs and "step_time" in logs:
            logs = {**logs, **TIMERS.take(time.perf_counter() - self._began)}
        super().on_log(args, state, control, logs=logs, **others)
        self._began = time.perf_counter()

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """A checkpoint has been written."""
        TIMERS.seconds["checkpoint"] += time.perf_counter() - self._began

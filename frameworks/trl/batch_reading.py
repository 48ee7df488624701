"""Reads TRL's batches, processes and number of steps as keys of a run file."""

from __future__ import annotations

from typing import Any

from frameworks.command_reading import Reading
from frameworks.trl import launchers
from frameworks.trl.launchers import MACHINES, OF_ACCELERATE, PROCESSES
from system.errors import UserError

ZERO_STAGE = f"{OF_ACCELERATE}zero_stage"
BATCH: tuple[str, ...] = (
    "num_generations", "per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation",
    "generation_batch_size", PROCESSES,
)  # fmt: skip
GENERATION = ("steps_per_generation", "generation_batch_size")


def _processes(reading: Reading) -> Any:
    """How many train; raises UserError where only the machine knows."""
    count = reading.stated.get(PROCESSES)
    if launchers.is_of_the_machine(count):
        raise UserError(
            f"the text does not decide how many processes train ({count}); add --gpus", code="open-process-count"
        )
    return reading.number(PROCESSES)


def _generation(reading: Reading, at_once: int, accumulated: int) -> int:
    """Completions that are sampled at once.

    Args:
        reading: of a text.
        at_once: completions of a forward pass, of all processes.
        accumulated: forward passes of an update.

    Raises:
        UserError: the text says it twice, or TRL refuses the number.
    """
    size, passes = reading.number("generation_batch_size"), reading.number("steps_per_generation")
    if size is not None and passes is not None:
        raise UserError(
            "generation_batch_size and steps_per_generation say the same, and TRL refuses both together; remove one",
            code="settings-conflict",
        )
    if size is None:
        size = at_once * (accumulated if passes is None else passes)
    elif not at_once or size % at_once:
        raise UserError(
            f"generation_batch_size is {size:g}, no multiple of the {at_once:g} completions of a forward pass; correct "
            "it, or say with --gpus how many GPUs train",
            code="batch-does-not-divide",
        )
    return int(size)


def read(reading: Reading) -> None:
    """Completions per device, times devices, times steps: those of an update and of a step.

    An update that is larger than a generation accumulates several, so it is the step.
    """
    each, accumulated = (reading.number(name) for name in BATCH[1:3])
    processes, group = _processes(reading), reading.number("num_generations")
    at_once, iterations = each * processes, reading.number("num_iterations")
    generation, update = _generation(reading, at_once, accumulated), at_once * accumulated
    reading.check_batch(group, BATCH, ", or say with --gpus how many GPUs train", generation=generation, update=update)
    step, settings = max(generation, update), BATCH
    if generation % update and (update % generation or iterations > 1):
        step, settings = update, tuple(name for name in BATCH if name not in GENERATION)
        reading.reasons |= dict.fromkeys(
            GENERATION,
            f"an update takes {accumulated} forward passes, and a generation is of {generation // at_once}, each used "
            f"{iterations} times; here each step samples what one update takes",
        )
    reading.note_batch(step, update, group, settings)
    serving = reading.get("use_vllm") and reading.get("vllm_mode") == "server"
    reading.note("hardware.gpus", 0 if reading.get("use_cpu") else processes + bool(serving), PROCESSES)
    reading.note("hardware.nodes", reading.number(MACHINES), MACHINES)
    stage = reading.get(ZERO_STAGE)
    reading.note("hardware.sharding", f"zero{stage}" if stage in (2, 3) else None, ZERO_STAGE)
    updates = step // update * reading.number("num_iterations")
    steps, warmup = reading.number("max_steps"), reading.number("warmup_steps")
    if steps and steps > 0:
        reading.note("steps", -(-steps // updates), "max_steps")
        _say_rounded(reading, "max_steps", updates, reading.common["steps"])
        reading.idle["num_train_epochs"] = "it has no effect with max_steps"
    else:
        reading.note("epochs", reading.get("num_train_epochs"), "num_train_epochs")
        reading.idle["max_steps"] = "below 1 the epochs count"
    if reading.get("lr_scheduler_type") == "constant":  # transformers has no warm-up with it
        reading.note("optimizer.warmup_ratio", 0.0, "lr_scheduler_type")
        reading.idle["warmup_steps"] = "it has no effect with a constant schedule"
    elif warmup < 1 or "steps" in reading.common:
        reading.note("optimizer.warmup_ratio", warmup if warmup < 1 else warmup / steps, "warmup_steps")
    else:
        reading.note("more.warmup_steps", warmup / updates, "warmup_steps")
    every = reading.number("save_steps") if "save_steps" in reading.stated else 0
    if (strategy := reading.get("save_strategy")) not in (None, "steps"):
        reading.idle["save_steps"] = f"it has no effect with save_strategy {strategy}"
    elif every >= 1:
        reading.note("checkpoints", max(1, int(every // updates)), "save_steps")
        _say_rounded(reading, "save_steps", updates, reading.common["checkpoints"])


def _say_rounded(reading: Reading, name: str, updates: int, steps: int) -> None:
    """Say where a number of updates is no whole number of steps."""
    if reading.number(name) != steps * updates:
        reading.reasons[name] = f"a step has {updates} updates; {steps} steps, {steps * updates} updates, are stated"

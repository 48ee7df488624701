"""How many tokens the passes of a training's updates have, and how much of what they compute is padding.

Counted in the trainer's own processes, on one node: each writes the time, the tokens and the positions of every pass
that it makes with gradients into a file of its own, beside the rollouts of the attempt. A pass without a mask of
attention has no padding. Positions that several GPUs compute together, as with sequence parallelism, count for each.
"""

from __future__ import annotations

import os
import struct
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from frameworks import import_hooks

VARIABLE = "CROSSZERO_UPDATE_TOKENS"  # environment variable of the trainer: the attempt's folder
PASS = struct.Struct("=dqq")  # seconds since 1970 when it began, its tokens, and all its positions


@cache
def _file(process: int) -> int:
    path = Path(os.environ[VARIABLE]) / f"{os.uname().nodename}-{process}.passes"
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _note(began: float, tokens: int, positions: int) -> None:
    with suppress(OSError):  # a full disk ends no training for what is only counted
        os.write(_file(os.getpid()), PASS.pack(began, tokens, positions))


def note_passes(module: ModuleType) -> None:
    """Have models of transformers note the passes that train them.

    Of models within each other the innermost that gets tokens does: one outside may take the padding out before.
    """
    import torch

    model, passes = module.PreTrainedModel, 0
    compute = model.__call__
    if getattr(compute, "notes", False):
        return

    def noted(self: Any, *values: Any, **named: Any) -> Any:
        nonlocal passes
        if torch.compiler.is_compiling() or not (self.training and torch.is_grad_enabled()):
            return compute(self, *values, **named)
        before, began, own = passes, time.time(), None
        tokens: Any = named.get("input_ids", values[0] if values else None)
        mask: Any = named.get("attention_mask")
        if tokens is not None and (mask is None or mask.shape == tokens.shape):
            own = tokens.numel() if mask is None else int(mask.count_nonzero())
        result = compute(self, *values, **named)
        if own is not None and passes == before:
            passes += 1
            _note(began, own, tokens.numel())
        return result

    noted.notes = True  # type: ignore[attr-defined]
    model.__call__ = noted


def install() -> None:
    """Note passes in this process, if it is one of a training that is watched."""
    if VARIABLE in os.environ:
        import_hooks.after_import({"transformers.modeling_utils": note_passes})


def columns(folder: Path, starts: Mapping[int, float]) -> dict[int, dict[str, float]]:
    """By step, the columns of contracts.tables.TRAINING_LOG that an attempt's passes give.

    Args:
        folder: of the attempt.
        starts: by step, when its first completion was judged: its passes lie between that and the next step's.
    """
    steps = sorted(starts)
    times, tokens, positions = [starts[step] for step in steps], Counter[int](), Counter[int]()
    for file in folder.glob("*.passes"):
        content = file.read_bytes()
        for began, own, computed in PASS.iter_unpack(content[: len(content) // PASS.size * PASS.size]):
            if at := bisect_right(times, began):
                tokens[steps[at - 1]] += own
                positions[steps[at - 1]] += computed
    return {
        step: {"trained_tokens": float(tokens[step]), "padding_share": 1 - tokens[step] / computed}
        for step, computed in positions.items()
        if computed
    }

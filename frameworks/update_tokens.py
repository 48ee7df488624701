"""How many tokens the passes of a training's updates have, and how much of what they compute is padding.

Counted in the trainer's own processes, on one node: each adds up the positions of the passes that it makes with
gradients, before they are computed, and writes both sums into a file of its own, which is read from outside after each
step. A pass without a mask of attention has no padding. Positions that several GPUs compute together, as with sequence
parallelism, count once for each.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from frameworks import import_hooks

VARIABLE = "CROSSZERO_UPDATE_TOKENS"  # environment variable of the trainer: the folder of the files
SUMS = struct.Struct("=qq")  # of tokens, and of all positions


class Counter:
    """The sums of one process."""

    def __init__(self, file: Path) -> None:
        """Make the process's file."""
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._tokens = self._positions = 0

    def add(self, tokens: int, positions: int) -> None:
        """Add those of a pass."""
        self._tokens, self._positions = self._tokens + tokens, self._positions + positions
        with suppress(OSError):  # a full disk ends no training for what is only counted
            os.pwrite(self._file, SUMS.pack(self._tokens, self._positions), 0)


@cache
def _counter(process: int) -> Counter:
    return Counter(Path(os.environ[VARIABLE]) / str(process))


def count_passes(module: ModuleType) -> None:
    """Have models of transformers count the passes that train them; of models within each other, the outermost does."""
    import torch

    model, within = module.PreTrainedModel, list[Any]()
    compute = model.__call__
    if getattr(compute, "counts", False):
        return

    def counted(self: Any, *values: Any, **named: Any) -> Any:
        outermost = not within and not torch.compiler.is_compiling()
        if not (outermost and self.training and torch.is_grad_enabled()):
            return compute(self, *values, **named)
        tokens: Any = named.get("input_ids", values[0] if values else None)
        mask: Any = named.get("attention_mask")
        if tokens is not None and (mask is None or mask.shape == tokens.shape):
            attended = tokens.numel() if mask is None else int(mask.count_nonzero())
            _counter(os.getpid()).add(attended, tokens.numel())
        within.append(self)
        try:
            return compute(self, *values, **named)
        finally:
            within.pop()

    counted.counts = True  # type: ignore[attr-defined]
    model.__call__ = counted


def install() -> None:
    """Count in this process, if its training is watched."""
    if VARIABLE in os.environ:
        import_hooks.after_import({"transformers.modeling_utils": count_passes})


class Reader:
    """Reads from outside what a trainer's processes counted."""

    def __init__(self, folder: Path) -> None:
        """Begin with the folder, which is made here."""
        folder.mkdir(exist_ok=True)
        self._folder, self._before = folder, (0, 0)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the trainer."""
        return {VARIABLE: str(self._folder.absolute())}

    def take(self) -> dict[str, float]:
        """The columns since the last call; none where nothing was counted."""
        files = [content for file in self._folder.iterdir() if len(content := file.read_bytes()) == SUMS.size]
        tokens, positions = map(sum, zip((0, 0), *map(SUMS.unpack, files), strict=True))
        new, computed = tokens - self._before[0], positions - self._before[1]
        self._before = tokens, positions
        return {"trained_tokens": float(new), "padding_share": 1 - new / computed} if computed else {}

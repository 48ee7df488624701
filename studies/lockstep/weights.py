"""Weights of checkpoints as NumPy arrays, and how far two are apart; the base environment has no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from system.errors import UserError

Weights = Mapping[str, NDArray[Any]]


def read(folder: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a folder's safetensors files by name, float32 or float64; bfloat16 is widened.

    Raises:
        UserError: there are none, or they have another type.
    """
    tensors: dict[str, NDArray[Any]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        content = file.read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        header.pop("__metadata__", None)
        for name, tensor in header.items():
            first, last = tensor["data_offsets"]
            tensors[name] = _array(content[start + first : start + last], tensor["dtype"], file).reshape(
                tensor["shape"]
            )
    if not tensors:
        raise UserError(f"{folder} should hold weights (*.safetensors), but holds none", code="missing-weights")
    return tensors


def _array(content: bytes, dtype: str, file: Path) -> NDArray[Any]:
    if dtype == "BF16":  # the upper half of a float32
        return (np.frombuffer(content, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype not in ("F32", "F64"):
        raise UserError(
            f"{file} should hold weights in float32, float64 or bfloat16, but holds {dtype}", code="unknown-dtype"
        )
    return np.frombuffer(content, dtype={"F32": "<f4", "F64": "<f8"}[dtype])


class Distance(NamedTuple):
    """Between two sets of weights."""

    largest: float  # max |difference|
    tensor: str  # where it is
    length: float  # Euclidean, of the difference


def distance(one: Weights, other: Weights) -> Distance:
    """How far two sets of weights are apart, over the tensors that both have (tied ones are not always stored twice).

    Raises:
        UserError: they have no tensor in common.
    """
    parts = {name: one[name].astype(np.float64) - other[name].astype(np.float64) for name in one.keys() & other.keys()}
    if not parts:
        raise UserError(
            "two checkpoints to compare should have the same tensors, but have none in common", code="no-common-tensors"
        )
    largest = {name: float(np.abs(part).max()) for name, part in parts.items()}
    where = max(sorted(largest), key=largest.__getitem__)
    return Distance(largest[where], where, float(np.sqrt(sum(float((part**2).sum()) for part in parts.values()))))

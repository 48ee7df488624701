"""Moves the socket over which verl 0.9.1 hands weights to vLLM out of /tmp, into the training's own temporary folder.

Its name there is the same in each training, so two on one machine would take each other's weights, and what arrives is
unpickled, so another user's socket of that name could run code. VERL_USE_EXTERNAL_MODULES loads this module in each of
verl's processes; a missing class is an error.
"""

from __future__ import annotations

import tempfile
from types import ModuleType
from typing import Any

from frameworks import import_hooks

BEFORE = "ipc:///tmp/"


def move_socket(module: ModuleType) -> None:
    """Change where sender and receiver find each other."""
    for kind in (module.BucketedWeightSender, module.BucketedWeightReceiver):
        original = kind.__init__

        def create(self: Any, zmq_handle: str, *values: Any, original: Any = original, **named: Any) -> None:
            own = f"ipc://{tempfile.gettempdir()}/"
            original(self, zmq_handle.replace(BEFORE, own, 1), *values, **named)

        kind.__init__ = create


import_hooks.after_import({"verl.workers.rollout.vllm_rollout.bucketed_weight_transfer": move_socket})

"""Count tokens in rewards of lengths: with the tokenizer of the model that trains, up to the limit of a completion.

A completion is text here, so its length is that of the text encoded again. That can differ from the sampled length by
some tokens where the model wrote another spelling of the same text.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, cast

VARIABLE = "CROSSZERO_RESPONSES"  # environment variable with the model's folder and the limit


def environment(model: Path, limit: int) -> dict[str, str]:
    """The environment of a training process: the folder of the model, and its `rollout.max_response_tokens`."""
    return {VARIABLE: json.dumps({"model": str(model.absolute()), "limit": limit})}


@cache
def _settings(content: str) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(content))


@cache
def _tokenizer(model: str) -> Any:
    from transformers import AutoTokenizer  # of the framework's environment

    return AutoTokenizer.from_pretrained(model)


def response_limit() -> int:
    """The most tokens that a completion of this training may have."""
    return int(_settings(os.environ[VARIABLE])["limit"])


def encode(text: str) -> list[int]:
    """The tokens of a text, without those that a tokenizer puts around every text."""
    tokenizer = _tokenizer(_settings(os.environ[VARIABLE])["model"])
    whole = text.encode(errors="replace").decode()  # tokenizers refuse half of a surrogate pair
    tokens: list[int] = tokenizer(whole, add_special_tokens=False)["input_ids"]
    return tokens

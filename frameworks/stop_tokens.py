"""Tokens that end a completion in training besides the model's own end of sequence: `rollout.stop` of a run file.

The pinned releases of verl and OpenRLHF have no setting for them, and TRL masks and counts up to the tokens that the
model declares. What every engine reads, vLLM and transformers alike, is `eos_token_id` in generation_config.json. So
training starts from a folder of links to the model's files, whose generation_config.json declares the stops as well.
Exported checkpoints have the model's own.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

from contracts.run_file import Run, Stage
from frameworks import run_settings
from frameworks.adapter import Paths

FILE = "generation_config.json"


def with_stops(run: Run, stage: Stage, paths: Paths) -> Paths:
    """The paths with a model folder that declares the stage's stops; unchanged where it has none.

    Args:
        run: for messages.
        stage: `rollout.stop` names tokens of the vocabulary by their text or number.
        paths: `model` is linked into a folder of `work`.

    Raises:
        UserError: a stop is not one token of the model's vocabulary.
    """
    if not stage.rollout.get("stop"):
        return paths
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(paths.model)
    config = _read(paths.model / FILE)
    declared = config.get("eos_token_id", _read(paths.model / "config.json").get("eos_token_id"))
    of_model = declared if isinstance(declared, list) else [declared]
    stops = [_number(run, paths.model, tokenizer, stop) for stop in stage.rollout["stop"]]
    end_tokens = dict.fromkeys(number for number in [tokenizer.eos_token_id, *of_model, *stops] if number is not None)

    folder = paths.work / "model"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in paths.model.iterdir():
        (folder / file.name).symlink_to(file.absolute())
    (folder / FILE).unlink(missing_ok=True)
    config.pop("_from_model_config", None)  # transformers would take the end of sequence from config.json
    (folder / FILE).write_text(json.dumps(config | {"eos_token_id": list(end_tokens)}, indent=2), encoding="utf-8")
    return dataclasses.replace(paths, model=folder)


def restore_generation_config(model: Path, checkpoint: Path) -> None:
    """Give an exported checkpoint the generation_config.json of the model that training started from, or none."""
    (checkpoint / FILE).unlink(missing_ok=True)
    if (model / FILE).is_file():
        shutil.copy2(model / FILE, checkpoint / FILE)


def _number(run: Run, model: Path, tokenizer: Any, stop: str | int) -> int:
    number = stop if isinstance(stop, int) else tokenizer.get_vocab().get(stop)
    if number is None:  # byte-level vocabularies write a line break as "Ċ"
        tokens = tokenizer(stop, add_special_tokens=False)["input_ids"]
        number = tokens[0] if len(tokens) == 1 and tokenizer.decode(tokens) == stop else None
    if number is None or number >= len(tokenizer):
        raise run_settings.refuse(
            run,
            "rollout.stop",
            f": {stop!r} is not one token of {model}; name tokens of its vocabulary or their numbers",
            "not-one-token",
        )
    return int(number)


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return content

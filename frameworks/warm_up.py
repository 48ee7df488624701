"""Make a base model that is another one after supervised training on traces: `warm_up` in recipes/models.yaml.

    python -m frameworks.warm_up NAME --model BASE --output FOLDER

A framework's own trainer trains a LoRA adapter: the one that recipes/warm_up.yaml names, in its environment. The sum of
the adapter and the base's weights is written in float32, beside the base's tokenizer.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from contracts import model_folder, provenance
from frameworks import adapter, checkpoints, lora
from recipes import models, warm_up
from recipes.demo_model.build import tokenized
from recipes.demo_model.training import Example
from system import durable, gpu_locks
from system.command_line import argument_parser
from system.errors import UserError, run_command
from tasks import prompts


def examples(entry: dict[str, Any], seed: int, model: Path) -> list[Example]:
    """The tokens of the traces, as the base model's tokenizer has them.

    Args:
        entry: `warm_up` of a model.
        seed: of the traces.
        model: the base model.

    Raises:
        UserError: the tokenizer adds an end token to prompts, or an example is longer than the model's context.
    """
    from transformers import AutoConfig, AutoTokenizer

    rows, tokenizer = warm_up.rows(entry, seed), AutoTokenizer.from_pretrained(model)
    prompts.check_tokens(rows[0].prompt.render(rows[0].question, tokenizer), tokenizer)
    tokens = tokenized(rows, tokenizer)
    longest = max(len(example.prompt) + len(example.completion) for example in tokens)
    context = getattr(AutoConfig.from_pretrained(model), "max_position_embeddings", None) or longest
    if longest > context:
        raise UserError(
            f"the longest trace has {longest} tokens with its prompt, but {entry['model']} takes {context}: choose "
            "shorter problems in recipes/models.yaml",
            code="trace-too-long", tokens=longest, context=context,
        )  # fmt: skip
    return tokens


def make(name: str, base: Path, output: Path) -> None:
    """Train a model and write its folder, with a record.

    Args:
        name: in recipes/models.yaml.
        base: folder of the model that it is warmed up from.
        output: the folder to make, which is not there yet.

    Raises:
        UserError: the model is not one that is warmed up, the base is not whole, or the loss is no number.
    """
    entry, settings = models.find(name), models.settings(name)
    if "warm_up" not in entry:
        raise UserError(
            f"{name} has no warm_up in recipes/models.yaml: run python -m recipes.models {name}",
            code="other-command", model=name,
        )  # fmt: skip
    base_sha256 = model_folder.check(base)
    module = adapter.load_module(warm_up.ENVIRONMENT, "warm_up", "cannot warm up models")
    traces = examples(entry["warm_up"], settings["training"]["seed"], base)
    with tempfile.TemporaryDirectory() as scratch:
        loss = module.train(base, traces, settings["warm_up"] | settings["training"], name, Path(scratch))
        _merge(Path(scratch), base, output)
    provenance.write(
        output,
        model=entry["warm_up"]["model"],
        settings=settings,
        loss=loss,
        base_sha256=base_sha256,
        **provenance.of_weights(base),
        sha256=model_folder.check(output),
    )


def _merge(trained: Path, base: Path, output: Path) -> None:
    """Write the sum in float32; all but its own configuration, which names that type, is the base model's."""
    import torch

    output.mkdir()
    lora.merge_adapter(trained, base, output, torch.float32)
    # A configuration is there now; of a base in PyTorch's format, the weights are not wanted a second time.
    beside = [file for file in checkpoints.files_beside_weights(base) if file.name != "config.json"]
    checkpoints.copy_into((file for file in beside if not (file.match(".*") or file.match("*.bin*"))), output)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("name", help="a name in recipes/models.yaml")
    parser.add_argument("--model", required=True, type=Path, help="folder of the base model")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: %(default)s")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    gpus = gpu_locks.take(1, arguments.name) if arguments.device == "cuda" else []
    os.environ |= {"CUDA_VISIBLE_DEVICES": ",".join(gpus), "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    with durable.new(arguments.output) as model:
        make(arguments.name, arguments.model, model)


if __name__ == "__main__":
    run_command(main)

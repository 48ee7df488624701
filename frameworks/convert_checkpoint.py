"""Make a model folder of what a trainer or PEFT has left: a LoRA adapter, or shards of verl, DeepSpeed or FSDP.

    crosszero convert checkpoints/global_step_100/actor --output my-model
    crosszero convert adapter --output my-model --base /data/models/Qwen2.5-7B

Configuration, tokenizer and chat template are those beside the shards, else those of --base; an adapter is merged with
--base, by default the model that its adapter_config.json names.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterable
from pathlib import Path

from contracts import checkpoint_formats, model_folder, provenance
from contracts.checkpoint_formats import UnconvertedModel
from frameworks import checkpoints, lora
from recipes import model_sources
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command

WITH_NAMES_OF_THE_TRAINER = ("fsdp", "fsdp_whole", "deepspeed")  # the others are written by transformers
BESIDE_WEIGHTS = (
    "config.json", "generation_config.json", "tokenizer*", "chat_template*", "special_tokens_map.json", "vocab.json",
    "merges.txt", "added_tokens.json",
)  # fmt: skip


def recognised(folder: Path) -> UnconvertedModel:
    """What a folder holds; UserError if it is a model folder already, or nothing that is known."""
    if one := checkpoint_formats.recognise(folder):
        if not one.framework and one.instead:
            sentence = f"{folder} is {one.what}: {one.remedy(folder)}"
            raise UserError(sentence, code="unconverted-model", format=one.format)
        return one
    model_folder.check_files(folder)
    raise UserError(f"{folder} is a model folder already: use it as it is", code="already-a-model", path=str(folder))


def base_model(named: str | None, one: UnconvertedModel, mirror: Path | None) -> Path | None:
    """The folder of the base model: the named one or, of an adapter, that of its configuration; None if there is none.

    Raises:
        UserError: it cannot be had, or is itself no whole model.
    """
    if named is None and one.format == checkpoint_formats.ADAPTER:
        named = lora.adapter_settings(one.folder).get("base_model_name_or_path")
        if not (named and isinstance(named, str)):
            sentence = f"{one.folder / 'adapter_config.json'} names no base model: name it with --base"
            raise UserError(sentence, code="missing-base")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        if folder.is_absolute() or "/" not in named:
            sentence = f"the base model {named} is not here: name its folder or hub id with --base"
            raise UserError(sentence, code="missing-base", base=named)
        folder, _ = model_sources.locate(named, "main", mirror)
    model_folder.check_files(folder)
    return folder


def files_beside(folders: Iterable[Path]) -> dict[str, Path]:
    """Configuration, tokenizer and chat template, each from the first folder that has it, by name."""
    files: dict[str, Path] = {}
    for folder in folders:
        for pattern in BESIDE_WEIGHTS:
            files = {file.name: file for file in folder.glob(pattern)} | files
    return files


def check_names(weights: Iterable[Path], model: Path) -> None:
    """Refuse converted weights that lack tensors of the model, such as those that a trainer saved under other names.

    Args:
        weights: files of safetensors.
        model: has the configuration.

    Raises:
        UserError: some are missing.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    configuration = AutoConfig.from_pretrained(model)
    with torch.device("meta"):
        needed = set(AutoModelForCausalLM.from_config(configuration).state_dict())
    if configuration.tie_word_embeddings:
        needed.discard("lm_head.weight")
    held = {name for file in weights for name in model_folder.tensor_names(file) or ()}
    if absent := sorted(needed - held):
        others = f"; it has {min(others)}" if (others := held - needed) else ""
        raise UserError(
            f"the checkpoint lacks {len(absent)} tensors of the model in {model / 'config.json'}, such as {absent[0]}"
            f"{others}: take the checkpoint and --base of one model, as the trainer named its tensors for transformers",
            code="incomplete-model", missing=len(absent),
        )  # fmt: skip


def convert(folder: Path, output: Path, base: str | None = None, mirror: Path | None = None) -> None:
    """Write the model folder of a checkpoint; see the module.

    Raises:
        UserError: it is not known or not whole, or needs a base model that is not named or cannot be had.
    """
    one = recognised(folder)
    model = base_model(base, one, mirror)
    sources = [source for source in (model, one.configuration_folder()) if source]
    if not sources:
        raise UserError(
            f"{folder} is {one.what} without config.json and tokenizer: name the model that was trained with --base",
            code="missing-base",
        )
    convert_format = getattr(importlib.import_module(f"frameworks.{one.framework}.convert_checkpoint"), one.format)
    with durable.new(output) as partial:
        partial.mkdir()
        convert_format(one.folder, partial, sources[0])
        if one.format in WITH_NAMES_OF_THE_TRAINER:
            check_names(partial.glob("*.safetensors"), sources[0])
        beside = (file for name, file in files_beside(sources).items() if not (partial / name).exists())
        checkpoints.copy_into(beside, partial)
        facts = {"converted_from": str(folder.resolve()), "format": one.format, "base": str(model) if model else None}
        inherited = provenance.of_weights(model) if model else {}
        provenance.write(partial, **inherited, **facts, sha256=model_folder.check(partial))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("folder", type=Path, help="a LoRA adapter, or a trainer's checkpoint")
    parser.add_argument("--output", required=True, type=Path, metavar="MODEL", help="the model folder to make")
    parser.add_argument("--base", metavar="MODEL", help="folder or hub id of the base model")
    parser.add_argument("--model-mirror", type=Path, metavar="FOLDER", help="where hub ids are looked for first")
    return parser.parse_args()


def main() -> None:
    """Convert, check the result, and say where it is."""
    arguments = parse_arguments()
    convert(arguments.folder, arguments.output, arguments.base, arguments.model_mirror)
    print(f"model: {arguments.output.resolve()}\nnext:  crosszero evaluate {arguments.output} --benchmark gsm8k")


if __name__ == "__main__":
    run_command(main)

"""Is a model folder in Hugging Face format whole? Checked in seconds, before a GPU is used or vLLM is imported.

A file that is cut can load in silence and change what is sampled: an end token less, another prompt. JSON files,
weights and vocabularies show a cut by themselves. Any other change shows in the hash, if the folder has a record of it.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts import chat_template as templates
from contracts import checkpoint_formats, model_dimensions, provenance
from system.errors import UserError

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")  # the first that is there is used
OBJECTS = re.compile(r"(generation_|tokenizer_)?config|tokenizer|vocab|.*\.index|chat_template")
SENTENCEPIECE_PARTS = {1, 2, 3}  # pieces, trainer_spec and normalizer_spec of sentencepiece_model.proto
MOST_HEADER = 100_000_000  # bytes of JSON at the head of a safetensors file, as its own reader has it
MOST_TEXT = (
    1 << 28
)  # bytes of what is neither weights nor code; the longest tokenizer.json of a model that is trained here has 11 MB
MOST_HOLES = 1 << 30  # bytes of a file that may take less room on the disk than that
MOST_DIMENSIONS = 16
NUMBER_BYTES = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2, "F8_E4M3": 1,
    "F8_E5M2": 1, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
SHARD = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.safetensors|\.bin)")


def check(folder: Path, *, chat_template: bool = False) -> str:
    """The hash of a model folder that is whole (contracts.provenance.sha256).

    Args:
        folder: a model in Hugging Face format.
        chat_template: whether the tokenizer needs to have one.

    Raises:
        UserError: it is not such a folder, or a file is missing, cut, damaged, or not the one that was recorded.
    """
    check_files(folder, chat_template=chat_template)
    return provenance.check(folder) or provenance.sha256(folder)


def check_files(folder: Path, *, chat_template: bool = False) -> None:
    """`check` without the hash, in less time for large weights; arguments and errors are the same."""
    if unconverted := checkpoint_formats.recognise(folder):
        remedy = unconverted.remedy(folder)
        raise UserError(
            f"{folder} is {unconverted.what} and no model folder: {remedy}",
            code="unconverted-model", format=unconverted.format, remedy=remedy,
        )  # fmt: skip
    if not folder.is_dir():
        raise UserError(
            f"model {folder} should be a folder in Hugging Face format, but there is no such folder",
            code="missing-model",
        )
    files = sorted(file for file in folder.glob("[!.]*") if file.is_file())
    weights = checkpoint_formats.weight_files(folder)
    tokenizer = next((folder / name for name in TOKENIZERS if (folder / name).is_file()), None)
    missing = {
        "config.json": not (folder / "config.json").is_file(),
        "weights (*.safetensors or pytorch_model*.bin)": not weights,
        f"tokenizer ({', '.join(TOKENIZERS)})": tokenizer is None,
        "tokenizer_config.json": not (folder / "tokenizer_config.json").is_file(),
    }
    if any(missing.values()):
        absent = " and no ".join(name for name, is_missing in missing.items() if is_missing)
        raise UserError(
            f"model {folder} has no {absent}: export or download it again, or copy the base model's tokenizer"
            + checkpoint_formats.hint_inside(folder),
            code="incomplete-model",
            missing=absent,
        )
    for file in files:
        _check_holes(file)
        if file.suffix in (".jinja", ".txt", ".model"):
            _check_size(file)
    content = {file.stem: _json(file) for file in files if file.suffix == ".json"}
    if not content["config"].get("model_type"):
        raise UserError(
            f"{folder / 'config.json'} should name a model_type, but has none: copy it again from its source",
            code="damaged-model",
        )
    _check_weights(folder, weights, content)
    assert tokenizer is not None
    if problem := _tokenizer_problem(tokenizer, content):
        raise UserError(f"{tokenizer} {problem}: copy the base model's tokenizer files again", code="damaged-model")
    if problem := model_dimensions.problem(weights, content):
        raise UserError(
            f"model {folder} is mixed of several: {problem}; copy all of its files again from one source",
            code="mixed-model",
        )
    _check_templates(folder, content, chat_template)


def check_code(folder: Path) -> None:
    """Refuse a model whose files name code of its own, which a trainer that trusts models would run.

    OpenRLHF 0.9.0 loads every model and tokenizer with trust_remote_code=True. Where the configuration names the model
    in `model_code`, its record says so (recipes.model_sources.link).

    Raises:
        UserError: it names code, and its record does not say that this is wanted.
    """
    if provenance.read(folder).get("code") is True:
        return
    named = [file.name for file in sorted(folder.glob("*.json")) if _names_code(_json(file))]
    named += [name for name in ("custom_generate",) if (folder / name).exists()]
    if named:
        raise UserError(
            f"model {folder} brings code of its own ({', '.join(named)}), which a trainer may run as you: take a model "
            "without it or, if you have read that code, name the model in model_code of the configuration",
            code="model-with-code",
            files=named,
        )


def _names_code(content: Any) -> bool:
    """Whether a JSON file of a model names code, at any depth (transformers.dynamic_module_utils)."""
    if isinstance(content, list):
        return any(map(_names_code, content))
    if not isinstance(content, dict):
        return False
    return bool(content.get("auto_map") or content.get("custom_pipelines")) or any(map(_names_code, content.values()))


def chat_template(folder: Path) -> str | None:
    """The chat template that transformers takes from a model folder; None without one."""
    names = ("chat_template", "tokenizer_config")
    content = {name: _json(folder / f"{name}.json") for name in names if (folder / f"{name}.json").is_file()}
    return next((text for _, text in templates.of_folder(folder, content)), None)


def _check_size(file: Path) -> None:
    """Refuse a file that is longer than any of its kind, before it is read."""
    if file.stat().st_size > MOST_TEXT:
        raise UserError(
            f"{file} has {file.stat().st_size:,} bytes, more than any such file ({MOST_TEXT:,}): copy it again "
            "from its source",
            code="damaged-model",
        )


def _check_holes(file: Path) -> None:
    """Refuse a file of terabytes that are not on the disk, which to hash would take hours."""
    status = file.stat()
    # A file system that compresses, or keeps contents elsewhere, counts few blocks, too: there are holes only where it
    # tells of one.
    if status.st_size > MOST_HOLES > 512 * status.st_blocks and _first_hole(file) < status.st_size:
        raise UserError(
            f"{file} says that it has {status.st_size:,} bytes, but has holes in their place: copy it again from its "
            "source",
            code="damaged-model",
        )


def _first_hole(file: Path) -> int:
    """Where a file's first hole begins; its size without any."""
    with file.open("rb") as content:
        return os.lseek(content.fileno(), 0, os.SEEK_HOLE)


def _json(file: Path) -> Any:
    _check_size(file)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{file} is cut or damaged ({error}): copy it again from its source", code="damaged-model"
        ) from None
    if OBJECTS.fullmatch(file.stem) and not isinstance(content, dict):
        raise UserError(
            f"{file} should hold a JSON object but holds something else: copy it again from its source",
            code="damaged-model",
        )
    return content


def _check_weights(folder: Path, weights: list[Path], content: Mapping[str, Any]) -> None:
    held: dict[str, set[str]] = {}
    for file in weights:
        tensors = tensor_names(file) if file.suffix == ".safetensors" else {"?"} if zipfile.is_zipfile(file) else None
        if not tensors:
            raise UserError(
                f"weights {file} are truncated or damaged: export or download the model again", code="damaged-model"
            )
        if twice := next((name for name, others in held.items() if others & tensors - {"?"}), None):
            raise _two_copies(folder, twice, file.name)
        held[file.name] = tensors
        shard = SHARD.fullmatch(file.name)
        if shard and f"{shard[1]}{shard[4]}.index" not in content:
            count = len(list(folder.glob(f"{shard[1]}-*-of-{shard[3]}{shard[4]}")))
            if count != int(shard[3]):
                raise UserError(
                    f"model {folder} has {count} of {int(shard[3])} parts of its weights: download it again",
                    code="incomplete-model",
                )
        if shard and (folder / f"{shard[1]}{shard[4]}").is_file():
            raise _two_copies(folder, f"{shard[1]}{shard[4]}", file.name)
    for index in (name for name in content if name.endswith(f"{weights[0].suffix}.index")):
        named = content[index].get("weight_map")
        if not (isinstance(named, dict) and named):
            raise UserError(
                f"{folder / index}.json should list the weights but does not: download the model again",
                code="damaged-model",
            )
        if absent := sorted({str(name) for name in named.values()} - {file.name for file in weights}):
            raise UserError(
                f"model {folder} is missing weights that {index}.json lists: {', '.join(absent)}",
                code="incomplete-model",
            )
        lost = [tensor for tensor, file in named.items() if not {tensor, "?"} & held[str(file)]]
        if lost:
            raise UserError(
                f"weights in {folder} lack {len(lost)} tensors that {index}.json lists, such as {lost[0]}",
                code="incomplete-model",
            )


def _two_copies(folder: Path, one: str, other: str) -> UserError:
    return UserError(
        f"model {folder} should have each tensor once, but {one} and {other} have the same, of which transformers and "
        "vLLM may read different ones: move the files of one copy out of the folder",
        code="several-weights", files=sorted([one, other]),
    )  # fmt: skip


def tensor_names(file: Path) -> set[str] | None:
    """The tensors of a safetensors file, by its header; None if the file is truncated or damaged.

    A file is 8 bytes with the header's length, the header in JSON, and the tensors, which lie one after the other
    (safetensors' format description).
    """
    size = file.stat().st_size
    with file.open("rb") as content:
        length = int.from_bytes(content.read(8), "little")
        if not 2 <= length <= min(MOST_HEADER, size - 8):
            return None
        try:
            header = json.loads(content.read(length))
            spans = {name: tensor["data_offsets"] for name, tensor in header.items() if name != "__metadata__"}
            if any(not _fits(header[name], after - begin) for name, (begin, after) in spans.items()):
                return None
            end = 0
            for begin, after in sorted(spans.values()):
                if not (begin == end <= after):
                    return None
                end = after
            return set(spans) if 8 + length + end == size else None
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return None


def _fits(tensor: Mapping[str, Any], size: int) -> bool:
    """Whether a tensor of that type and shape has so many bytes; a type that is not known here may have any number."""
    shape, number = tensor["shape"], NUMBER_BYTES.get(tensor["dtype"])
    return len(shape) <= MOST_DIMENSIONS and (number is None or number * math.prod(shape) == size)


def _tokenizer_problem(file: Path, content: Mapping[str, Any]) -> str:
    """What is wrong with the file that holds the vocabulary; empty if nothing is."""
    if file.name == "tokenizer.json":
        model = content["tokenizer"].get("model")
        return "" if isinstance(model, dict) and model.get("vocab") else "should hold a vocabulary, but has none"
    if file.name == "tokenizer.model":
        return "" if _protobuf_fields(file.read_bytes()) >= SENTENCEPIECE_PARTS else "is cut or damaged"
    merges, vocabulary = file.with_name("merges.txt"), content["vocab"]
    if not merges.is_file():
        return "should have merges.txt beside it, but there is none"
    lines = merges.read_text(encoding="utf-8", errors="replace").split("\n")
    merged = {"".join(line.split(" ")) for line in lines if line.count(" ") == 1 and not line.startswith("#version")}
    tokens = {token for token in vocabulary if len(token) > 1 and not re.fullmatch(r"<.*>|\[.*\]", token)}
    return "has tokens that merges.txt, which is cut or of another model, does not make" if tokens - merged else ""


def _protobuf_fields(content: bytes) -> set[int]:
    """The top-level fields of a message in protobuf's wire format whose fields are all messages; empty if it is cut."""
    fields, at = set(), 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value

    try:
        while at < len(content):
            key, length = number(), number()
            at += length
            if key & 7 != 2:  # length-delimited
                return set()
            fields.add(key >> 3)
    except IndexError:
        return set()
    return fields if at == len(content) else set()


def _check_templates(folder: Path, content: Mapping[str, Any], needed: bool) -> None:
    file_templates = templates.of_folder(folder, content)
    if needed and not file_templates:
        raise UserError(
            f"the tokenizer of model {folder} has no chat template, which the protocol needs: add chat_template.jinja "
            "to the folder, or evaluate with --set chat_template=false",
            code="missing-chat-template",
        )
    for file, template in file_templates:
        if problem := templates.problem(template):
            raise UserError(
                f"the chat template in {file} {problem}: copy it again from its source", code="damaged-model"
            )
        if not templates.opens_a_turn(template):
            print(
                f"warning: the chat template in {file} does not open the model's turn (add_generation_prompt changes "
                "nothing): it may be cut",
                file=sys.stderr,
            )

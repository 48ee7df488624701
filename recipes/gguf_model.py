"""Make a model folder of a GGUF file: weights dequantised to bfloat16, tokenizer, chat template and special tokens.

    crosszero convert MODEL.gguf --output FOLDER

transformers reads the file, in the environment `gguf`. What it takes wrongly is taken from the file itself: of a Llama
it exchanges the first and the end token, and it splits every byte-level tokenizer's text as GPT-2's, whatever
`tokenizer.ggml.pre` says (transformers 5.17, integrations/ggml.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts import chat_template, model_folder, provenance
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command

UNQUANTISED = ("F32", "F16", "BF16")
CONTROL = (3, 4)  # token types of the format: control, user-defined
SCALING = (".rope.scaling.type", ".rope.scaling.factor", ".rope.scale_linear")
MARK = "two and two are four"
_CASELESS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_OTHERS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# How byte-level tokenizers split text before they merge, by `tokenizer.ggml.pre`: a pattern, or a class of the library,
# as the tokenizer.json of SmolLM2, Qwen2.5 and Llama 3 have it.
SPLITS = {
    "gpt-2": "", "smollm": "digits", "qwen2": _CASELESS + r"\p{N}" + _OTHERS,
    "llama-bpe": _CASELESS + r"\p{N}{1,3}" + _OTHERS,
}  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """What a GGUF file says of itself.

    Attributes:
        quantised: the kind of most of its weights, such as Q4_1; empty if they are not quantised.
        tokens: the vocabulary, in order.
        control: tokens that are not text.
        special: the ids of `bos`, `eos`, `pad` and `unk`, as far as it names them.
        template: its chat template; None without one.
        split: `tokenizer.ggml.pre` of a byte-level tokenizer; None for another kind.
        tensors: their names.
        around: the special tokens that it adds before and after a text, such as ("bos", "").
    """

    quantised: str
    tokens: list[str]
    control: list[str]
    special: dict[str, int]
    template: str | None
    split: str | None
    tensors: tuple[str, ...] = ()
    around: tuple[str, str] = ("", "")


def read(file: Path) -> Contents:
    """Read what a file says of itself, without its weights.

    Raises:
        UserError: it is no GGUF file, cut, a part of a model, or has what transformers would leave out.
    """
    from gguf import GGUFReader

    try:
        reader = GGUFReader(file)
        fields = {name: field.contents() for name, field in reader.fields.items() if field.data}
    except (ValueError, IndexError, OSError) as error:
        raise UserError(
            f"{file} is no whole GGUF file ({' '.join(str(error).split())[:200]}): copy it again from its source",
            code="damaged-model",
        ) from None
    tensors = tuple(tensor.name for tensor in reader.tensors)
    _check_fields(file, fields, tensors)
    tokens, kinds = list(fields["tokenizer.ggml.tokens"]), fields.get("tokenizer.ggml.token_type", ())
    special = _named_tokens(fields)
    # As llama.cpp has it: SentencePiece's and Llama 3's tokenizers add the first token, unless the file says otherwise.
    adds = fields.get("tokenizer.ggml.model") == "llama" or fields.get("tokenizer.ggml.pre") == "llama-bpe"
    begins, ends = fields.get("tokenizer.ggml.add_bos_token", adds), fields.get("tokenizer.ggml.add_eos_token", False)
    return Contents(
        quantised=_quantisation(fields, reader.tensors),
        tokens=tokens,
        control=[token for token, kind in zip(tokens, kinds, strict=False) if kind in CONTROL],
        special=special,
        template=fields.get("tokenizer.chat_template"),
        split=fields["tokenizer.ggml.pre"] if fields.get("tokenizer.ggml.model") == "gpt2" else None,
        tensors=tensors,
        around=("bos" if begins and "bos" in special else "", "eos" if ends and "eos" in special else ""),
    )


def _named_tokens(fields: Mapping[str, Any]) -> dict[str, int]:
    """The ids of `bos`, `eos`, `pad` and `unk`, as far as the file names them."""
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    ids = {name: fields.get(f"tokenizer.ggml.{word}_token_id") for name, word in names.items()}
    return {name: int(number) for name, number in ids.items() if number is not None}


def _quantisation(fields: Mapping[str, Any], tensors: Sequence[Any]) -> str:
    """The kind of most weights; the file's own name for them, which knows mixtures, where it has one and it fits."""
    from gguf import LlamaFileType

    sizes: Counter[str] = Counter()
    for tensor in tensors:
        if tensor.tensor_type.name not in UNQUANTISED:
            sizes[tensor.tensor_type.name] += int(tensor.n_elements)
    stored = sizes.most_common(1)[0][0] if sizes else ""
    names = {kind.value: kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in LlamaFileType}
    stated = names.get(fields.get("general.file_type"))
    return stated if stored and stated and stated not in UNQUANTISED else stored


def _check_fields(file: Path, fields: Mapping[str, Any], tensors: Sequence[str]) -> None:
    """Refuse a file that is not a whole language model, or has what transformers leaves out in silence."""
    if (parts := int(fields.get("split.count", 1))) > 1:
        raise UserError(
            f"{file} is one of {parts} parts of a model, which should be one file: join them with "
            "llama-gguf-split --merge",
            code="incomplete-model", parts=parts,
        )  # fmt: skip
    if not fields.get("tokenizer.ggml.tokens"):
        raise UserError(f"{file} has no tokenizer: take a GGUF file of a language model", code="incomplete-model")
    kind, split = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre")
    if kind not in ("gpt2", "llama") or (kind == "gpt2" and not split):
        raise UserError(
            f"{file} should say how its tokenizer splits text, by tokenizer.ggml.model gpt2 with tokenizer.ggml.pre, "
            f"or llama, but has {kind} with {split}: take the original model instead",
            code="unreadable-tokenizer",
        )
    scaled = [name for name, value in fields.items() if name.endswith(SCALING) and value not in ("none", 0, 1)]
    if scaled := [*scaled, *(name for name in tensors if name.startswith("rope_"))]:
        raise UserError(
            f"{file} scales its positions ({scaled[0]}), which transformers does not read from such a file: take the "
            "original model instead",
            code="unreadable-model", names=scaled,
        )  # fmt: skip


def special_tokens(contents: Contents, end_token: str | None = None) -> dict[str, str]:
    """The tokens `bos`, `eos`, `pad` and `unk` of a model; without one for padding, the end token pads.

    Args:
        contents: of the file.
        end_token: in place of the file's end token.

    Raises:
        UserError: the file names no end token or tokens that it does not have, or its chat template ends the model's
            turn with another token, or writes one that the tokenizer does not have.
    """
    special = {name: number for name, number in contents.special.items() if name != "eos" or end_token is None}
    if wrong := [name for name, number in special.items() if not 0 <= number < len(contents.tokens)]:
        sentence = f"its {wrong[0]} token is number {special[wrong[0]]}, which it does not have"
        if wrong[0] == "eos":
            raise _disagreement(sentence)
        raise UserError(f"{sentence}: take the original model instead", code="unreadable-tokenizer")
    tokens = {name: contents.tokens[number] for name, number in special.items()}
    if end_token is not None:
        tokens["eos"] = end_token
    if "eos" not in tokens:
        raise _disagreement("it names no end token, so that no completion would end")
    if tokens["eos"] not in contents.tokens:
        raise _disagreement(f"{tokens['eos']!r} is none of its tokens")
    if end_token is None and contents.template and (written := turn_end(contents, tokens)) != tokens["eos"]:
        raise _disagreement(
            f"its end token is {tokens['eos']!r}, but its chat template ends the model's turn with "
            f"{written!r}, so that no turn would end" if written else
            f"its end token is {tokens['eos']!r}, but its chat template ends the model's turn with no token that it has"
        )  # fmt: skip
    return {"pad": tokens["eos"]} | tokens


def _disagreement(sentence: str) -> UserError:
    return UserError(f"{sentence}: name the token that ends a turn with --end-token", code="tokens-disagree")


def turn_end(contents: Contents, tokens: Mapping[str, str]) -> str | None:
    """The control token that the chat template writes behind the model's answer; None if it writes none there."""
    variables: dict[str, Any] = {f"{name}_token": token for name, token in tokens.items()}
    after = chat_template.end_of_turn(contents.template or "", MARK, **variables)
    return max((token for token in contents.control if after.startswith(token)), key=len, default=None)


def _loaded(kind: Any, file: Path, **options: Any) -> Any:
    """What a class of transformers reads from a file, which can fail in as many ways as a file can be unlike others."""
    try:
        return kind.from_pretrained(str(file.parent), gguf_file=file.name, **options)
    except Exception as error:
        raise UserError(
            f"transformers cannot read {file} ({' '.join(str(error).split())[:200]}): take the original model instead",
            code="unreadable-model",
        ) from None


def load_tokenizer(file: Path, contents: Contents, tokens: Mapping[str, str]) -> Any:
    """The tokenizer of a file, with its special tokens and its way to split text.

    Raises:
        UserError: its way to split text is not known here, or transformers makes another vocabulary of it.
    """
    from tokenizers import Regex, decoders, pre_tokenizers, processors
    from transformers import AutoTokenizer

    tokenizer = _loaded(AutoTokenizer, file)
    own = tokenizer.convert_ids_to_tokens(list(range(len(contents.tokens))))
    if different := [pair for pair in zip(contents.tokens, own, strict=True) if pair[0] != pair[1]]:
        raise UserError(
            f"transformers makes another vocabulary of {file} ({len(different)} tokens differ, the first is "
            f"{different[0][1]!r} for {different[0][0]!r}): take the original model instead",
            code="unreadable-tokenizer",
        )
    if contents.split is not None:
        if contents.split not in SPLITS:
            raise UserError(
                f"the tokenizer of {file} splits text as {contents.split!r}, which is not known here (known are "
                f"{', '.join(SPLITS)}): take the original model instead",
                code="unreadable-tokenizer",
            )
        pattern, backend = SPLITS[contents.split], tokenizer.backend_tokenizer
        own_pattern = pattern in ("", "digits")  # ByteLevel's
        steps = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=own_pattern)]
        if pattern == "digits":
            steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
        elif pattern:
            steps.insert(0, pre_tokenizers.Split(Regex(pattern), "isolated"))
        backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
        backend.decoder = decoders.ByteLevel()
        tokenizer.clean_up_tokenization_spaces = False  # releases of transformers take the space before "." else
        tokenizer.init_kwargs["clean_up_tokenization_spaces"] = False
    for name, token in tokens.items():
        setattr(tokenizer, f"{name}_token", token)
    before, after = ([tokens[name]] if name else [] for name in contents.around)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=[*before, "$A", *after],
        pair=[*before, "$A", *after, *(f"{token}:1" for token in before), "$B:1", *(f"{token}:1" for token in after)],
        special_tokens=[(token, contents.tokens.index(token)) for token in {*before, *after}],
    )
    return tokenizer


def load_model(file: Path, contents: Contents, ids: Mapping[str, int]) -> Any:
    """The model of a file in bfloat16, as one that was never quantised.

    Args:
        file: the GGUF file.
        contents: of the file.
        ids: of its special tokens, by `bos`, `eos` and so on.

    Raises:
        UserError: the file lacks tensors, which transformers draws at random, or has some that transformers drops.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

    dequantised, loaded = _loaded(AutoModelForCausalLM, file, dtype=torch.bfloat16, output_loading_info=True)
    config = dequantised.config
    if missing := sorted(loaded["missing_keys"]):
        raise UserError(
            f"{file} lacks {len(missing)} tensors of its {config.model_type} model, such as {missing[0]}: copy it "
            "again from its source",
            code="incomplete-model", missing=len(missing),
        )  # fmt: skip
    processor = TENSOR_PROCESSORS.get(config.model_type, TensorProcessor)(config={})
    known = get_gguf_hf_weights_map(dequantised, processor)
    # Experts and a GPT-2's output are read under other names.
    if unread := [name for name in contents.tensors if name not in {*known, "output.weight"} and "_exps." not in name]:
        raise UserError(
            f"{file} has {len(unread)} tensors that transformers does not read, such as {unread[0]}: take the original "
            "model instead",
            code="unreadable-model", unread=len(unread),
        )  # fmt: skip
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = type(dequantised)(config).to(torch.bfloat16)  # save_pretrained refuses the one that it takes for quantised
    model.load_state_dict(dequantised.state_dict())
    model.tie_weights()
    for settings in (model.config, model.generation_config):
        for name in ("bos", "eos", "pad"):
            setattr(settings, f"{name}_token_id", ids.get(name))
    return model


def write(file: Path, output: Path, end_token: str | None = None, **facts: Any) -> None:
    """Write the model folder of a GGUF file, with a record of what it is from.

    Args:
        file: the GGUF file.
        output: the folder to make.
        end_token: in place of the file's end token.
        facts: for the record: where the file is from.

    Raises:
        UserError: the file is not whole, or its tokenizer, chat template and special tokens contradict each other.
    """
    contents = read(file)
    try:
        tokens = special_tokens(contents, end_token)
    except UserError as error:
        raise error.within(str(file)) from None
    tokenizer = load_tokenizer(file, contents, tokens)
    ids = {name: int(tokenizer.convert_tokens_to_ids(token)) for name, token in tokens.items()}
    load_model(file, contents, ids).save_pretrained(output)
    tokenizer.save_pretrained(output)
    if contents.quantised:
        facts["quantised"] = contents.quantised
    facts |= {"gguf": file.name, "gguf_sha256": provenance.sha256(file), "special_tokens": tokens}
    provenance.write(output, **facts, sha256=model_folder.check(output))


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("file", type=Path, help="a GGUF file, or a folder with one")
    parser.add_argument("--output", required=True, type=Path, metavar="MODEL", help="the model folder to make")
    parser.add_argument("--end-token", metavar="TOKEN", help="the token that ends a turn, in place of the file's")
    arguments = parser.parse_args()
    file = arguments.file
    if file.is_dir():
        files = sorted(path for path in file.iterdir() if path.suffix.lower() == ".gguf")
        if len(files) != 1:
            raise UserError(
                f"{file} has {len(files)} GGUF files: name one of them", code="several-models", count=len(files)
            )
        file = files[0]
    with durable.new(arguments.output) as model:
        write(file, model, arguments.end_token, folder=str(file.absolute().parent))
    print(f"model: {arguments.output.resolve()}\nnext:  crosszero evaluate {arguments.output} --benchmark gsm8k")


if __name__ == "__main__":
    run_command(main)

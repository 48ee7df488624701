"""Convert tiny GGUF files in a folder: `python make_tiny_gguf.py FOLDER < OPTIONS`, a JSON object of options by name.

Prints, by name, the code of the refusal, or what the model folder has.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from tokenizers import pre_tokenizers
from transformers import AutoTokenizer

from contracts import provenance
from recipes import gguf_model
from system.errors import UserError

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TOKENS = [*CONTROL, *sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "cd"]
CHATML = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
KEYS = {
    "general.file_type": 0, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.token_type": [3] * 3 + [1] * (len(TOKENS) - 3),
    "tokenizer.ggml.merges": ["a b", "c d"], "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.chat_template": CHATML, "llama.context_length": 512, "llama.embedding_length": 64,
    "llama.block_count": 2, "llama.feed_forward_length": 64, "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 2, "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": 32, "llama.rope.freq_base": 10000.0, "llama.vocab_size": len(TOKENS),
}  # fmt: skip
BLOCK = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "ab", "1", "2"]
SENTENCEPIECE = {
    "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.merges": None,
    "tokenizer.ggml.tokens": PIECES, "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * 6,
    "tokenizer.ggml.scores": [0.0] * 259 + [-1.0 - rank for rank in range(6)],
    "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_space_prefix": False, "tokenizer.chat_template": None,
    "llama.vocab_size": len(PIECES),
}  # fmt: skip


def write(
    file: Path, arch: str = "llama", drop: str = "-", add: tuple[str, ...] = (), pieces: bool = False, **keys: object
) -> None:
    """A file with these keys over KEYS, null for none; without the tensors whose names begin with `drop`."""
    quantise = keys.pop("quantise", False)
    writer = gguf.GGUFWriter(file, arch)
    for name, value in (keys := KEYS | (SENTENCEPIECE if pieces else {}) | keys).items():
        if isinstance(value, list):
            writer.add_array(name, value)
        elif value is not None:
            kind = {str: "string", bool: "bool", float: "float32", int: "uint32"}[type(value)]
            getattr(writer, f"add_{kind}")(name, value)
    shapes = {
        "token_embd.weight": (keys["llama.vocab_size"], 64),
        "output_norm.weight": (64,),
        **dict.fromkeys(add, (64,)),
    }
    for layer in range(2):
        shapes |= {f"blk.{layer}.{name}.weight": (64, 64) for name in BLOCK}
        shapes |= {f"blk.{layer}.{name}.weight": (64,) for name in ("attn_norm", "ffn_norm")}
    for name, shape in shapes.items():
        if not name.startswith(drop):
            is_quantised = quantise and len(shape) == 2
            numbers = np.ones(shape, np.float32)
            kind = gguf.GGMLQuantizationType.Q8_0 if is_quantised else None
            writer.add_tensor(name, gguf.quantize(numbers, kind) if kind else numbers, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def converted(file: Path, **options: object) -> object:
    """What becomes of a file with these options."""
    write(file, **options)
    try:
        gguf_model.write(file, file.with_suffix(""))
    except UserError as error:
        return error.code
    tokenizer = AutoTokenizer.from_pretrained(file.with_suffix(""))
    return [tokenizer("ab 12").tokens(), provenance.read(file.with_suffix("")).get("quantised")]


cases = json.load(sys.stdin)
print(json.dumps({name: converted(Path(sys.argv[1], f"{name}.gguf"), **options) for name, options in cases.items()}))

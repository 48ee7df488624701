"""Which GGUF files become a model folder: those of which nothing is lost, dropped or guessed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts.run_file import ROOT
from envs.build import python
from tests import needs

pytestmark = [pytest.mark.contract, pytest.mark.slow]
SCRIPT = ROOT / "tests" / "contract" / "make_tiny_gguf.py"
TOKENS, PIECES = ["ab", "Ġ", "1", "2"], ["ab", "▁", "1", "2"]
CASES: dict[str, tuple[dict[str, Any], object]] = {
    "whole": ({}, [TOKENS, None]),
    "no block": ({"drop": "blk.1."}, "incomplete-model"),
    "no tensor": ({"drop": "blk.1.ffn_up"}, "incomplete-model"),
    "no norm": ({"drop": "output_norm"}, "incomplete-model"),
    "no embedding": ({"drop": "token_embd"}, "incomplete-model"),
    "first part": ({"split.count": 2}, "incomplete-model"),
    "one part": ({"split.count": 1}, [TOKENS, None]),
    "added": (
        {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True},
        [["<|im_start|>", *TOKENS, "<|im_end|>"], None],
    ),
    "not added": ({"tokenizer.ggml.add_bos_token": False}, [TOKENS, None]),
    "Llama 3": ({"tokenizer.ggml.pre": "llama-bpe"}, [["<|im_start|>", *TOKENS], None]),
    "pieces": ({"pieces": True}, [["<s>", *PIECES], None]),
    "pieces alone": ({"pieces": True, "tokenizer.ggml.add_bos_token": False}, [PIECES, None]),
    "no split": ({"tokenizer.ggml.pre": None}, "unreadable-tokenizer"),
    "no kind": ({"tokenizer.ggml.model": None}, "unreadable-tokenizer"),
    "WordPiece": ({"tokenizer.ggml.model": "bert"}, "unreadable-tokenizer"),
    "unigrams": ({"tokenizer.ggml.model": "t5"}, "unreadable-tokenizer"),
    **{
        f"Q8_0 as {stated}": ({"quantise": True, "general.file_type": stated}, [TOKENS, "Q8_0"])
        for stated in (None, 1, 7, 9999)
    },
    "Q4_K_M": ({"quantise": True, "general.file_type": 15}, [TOKENS, "Q4_K_M"]),
    "none as Q8_0": ({"general.file_type": 7}, [TOKENS, None]),
    "architecture": ({"arch": "foobar"}, "unreadable-model"),
    "no merges": ({"tokenizer.ggml.merges": None}, "unreadable-model"),
    "no scores": ({"pieces": True, "tokenizer.ggml.scores": None}, "unreadable-model"),
    "rope factors": ({"add": ["rope_freqs.weight"]}, "unreadable-model"),
    "yarn": ({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0}, "unreadable-model"),
    "linear": ({"llama.rope.scaling.factor": 4.0}, "unreadable-model"),
    "older linear": ({"llama.rope.scale_linear": 4.0}, "unreadable-model"),
    "unscaled": ({"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 1.0}, [TOKENS, None]),
    "dropped": ({"add": ["blk.0.attn_q.bias"]}, "unreadable-model"),
}


def test_what_becomes_of_files(tmp_path: Path) -> None:
    needs.skip_without("gguf")
    cases = json.dumps({name: options for name, (options, _) in CASES.items()})
    done = subprocess.run(
        [python("gguf"), SCRIPT, tmp_path], input=cases, capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.strip().split("\n")[-1]) == {name: end for name, (_, end) in CASES.items()}

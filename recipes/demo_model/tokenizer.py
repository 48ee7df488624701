"""The demo model's tokenizer: byte-level BPE over the task's words, with a chat template.

It is byte-level, like Qwen's, because transformers rebuilds any tokenizer beside a qwen2 configuration as one. Whole
numbers and the sentences of the recipes' prompts are tokens of their own, so that a prompt that costs a large model
nothing does not cost the demo model most of its time. Think and answer tags are ordinary tokens, not special ones,
because trainers decode completions without special tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, END, START = "<|pad|>", "<|im_end|>", "<|im_start|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] + '\\n' + message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ROLES = ["system\n", "user\n", "assistant\n"]
TAGS = ["<think>", "</think>", "<answer>", "</answer>", "\\boxed{"]
LARGEST_NUMBER = 99


def sentences(prompts: Iterable[dict[str, str | None]]) -> list[str]:
    """The sentences of the prompts' fixed words, each with the space behind it."""
    found: dict[str, None] = {}
    for prompt in prompts:
        for text in (prompt["system"] or "", *(prompt["user"] or "").split("{question}")):
            found.update(dict.fromkeys(part for part in re.split(r"(?<=[.,] )", text) if len(part) > 8))
    return list(found)


def build(texts: Iterable[str], prompts: Iterable[dict[str, str | None]], vocabulary: int) -> PreTrainedTokenizerFast:
    """Train the tokenizer on the task's texts.

    Args:
        texts: what the merges are learned from.
        prompts: entries of recipes/prompts.yaml.
        vocabulary: its size before numbers and sentences are added, 300 or more.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=alphabet, special_tokens=[PAD, END, START], show_progress=False
    )
    # Numbers are tokens of their own: merges across digits would never be used.
    tokenizer.train_from_iterator((re.sub(r"\d", " ", text) for text in texts), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, padding_side="left", model_max_length=512
    )
    fast.add_special_tokens({"additional_special_tokens": [START]})
    fast.add_tokens([*ROLES, *TAGS, *(str(n) for n in range(10, LARGEST_NUMBER + 1)), *sentences(prompts)])
    fast.chat_template = CHAT_TEMPLATE
    return fast


def check_reload(folder: Path, texts: Iterable[str]) -> None:
    """Fail unless the saved tokenizer, as transformers loads it again, gives back every text unchanged."""
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(folder)
    for text in texts:
        again = loaded.decode(loaded(text).input_ids)
        if again != text:
            raise RuntimeError(
                f"the tokenizer in {folder} changes a text when loaded again: {text!r} becomes {again!r}"
            )

"""The demo model's tokenizer: byte-level BPE over the task's words, with a chat template.

It is byte-level, like Qwen's, because transformers rebuilds any tokenizer beside a qwen2 configuration as one. Whole
numbers, the fixed parts of the recipes' prompts and the tasks' standing phrases are tokens of their own, so that a
prompt that costs a large model nothing does not cost the demo model most of its time. Think and answer tags are
ordinary tokens, not special ones, because trainers decode completions without special tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tasks.prompts import Prompt

PAD, END = "<|pad|>", "<|end|>"
ROLES = ["<|system|>", "<|user|>", "<|assistant|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TAGS = ["<think>", "</think>", "<answer>", "</answer>", "\\boxed{"]
LARGEST_NUMBER = 99


def fixed_parts(prompt: Prompt) -> list[str]:
    """The texts that a prompt puts around every question; tags stay tokens of their own where a text ends with one."""
    before, _, after = prompt.user.partition("{question}")
    begun = re.sub(r"<\w+>$", "", prompt.assistant)
    return [part for part in (prompt.system, before, after, begun) if part and part.strip()]


def build(
    texts: Iterable[str], prompts: Iterable[Prompt], phrases: Iterable[str], vocabulary: int
) -> PreTrainedTokenizerFast:
    """Train the tokenizer on the tasks' texts.

    Args:
        texts: what the merges are learned from.
        prompts: those whose fixed parts become tokens.
        phrases: further texts that become one token each.
        vocabulary: its size before numbers, phrases and the prompts' parts are added, 300 or more.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=alphabet, special_tokens=[PAD, END, *ROLES], show_progress=False
    )
    # Numbers are tokens of their own: merges across digits would never be used.
    tokenizer.train_from_iterator((re.sub(r"\d", " ", text) for text in texts), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, padding_side="left", model_max_length=512
    )
    fast.add_special_tokens({"additional_special_tokens": ROLES})
    parts = [part for prompt in prompts for part in fixed_parts(prompt)]
    fast.add_tokens([*TAGS, *(str(n) for n in range(10, LARGEST_NUMBER + 1)), *phrases, *parts])
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

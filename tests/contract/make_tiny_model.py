"""Make a tiny Qwen2 model, random weights, a character tokenizer: `python make_tiny_model.py FOLDER [SEED [CONTEXT]]`.

`TEST_SEED` in the environment draws other weights, with which the model writes other texts.
transformers 5 rebuilds any tokenizer beside a qwen2 configuration as a byte-level BPE, so this one is built as one.
"""

import os
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

SPECIAL = ["<|pad|>", "<|im_end|>", "<|im_start|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def main() -> None:
    folder, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    context = int(sys.argv[3]) if len(sys.argv) > 3 else 512
    letters = sorted(set(pre_tokenizers.ByteLevel.alphabet()))
    vocabulary = {text: number for number, text in enumerate(SPECIAL + letters)}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|pad|>", eos_token="<|im_end|>", model_max_length=context
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(seed + 1000 * int(os.environ.get("TEST_SEED", "0")))
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, max_position_embeddings=context,
            initializer_range=0.3,  # far from uniform, so that models with different seeds write different things
            num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
        )
    )  # fmt: skip
    model.generation_config.bos_token_id = None
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()

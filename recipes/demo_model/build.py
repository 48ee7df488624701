"""Build the demo scale's base model: tokenizer, random weights, and supervised training on generated traces.

python -m recipes.models demo --output FOLDER
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from contracts import provenance
from recipes.demo_model import mixture
from recipes.demo_model import tokenizer as demo_tokenizer
from recipes.demo_model.training import Example, train
from tasks import prompts

SETTINGS = Path(__file__).with_name("demo_model.yaml")


def build(output: Path, names: Sequence[str]) -> None:
    """Train a model of demo_model.yaml on traces of these of its tasks; write it in Hugging Face format to `output`."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    started = time.monotonic()
    settings = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    seed, training = settings["seed"], settings["training"]
    tasks = {name: settings["tasks"][name] for name in names}
    steps = sum(task["steps"] for task in tasks.values())
    rows = mixture.rows(tasks, steps * training["batch"], training["skills_first"], seed)

    texts = [f"{row.question} {row.completion}" for row in rows[-5000:]]
    asked = [prompts.load(name) for task in tasks.values() for name in task["prompts"]]
    tokenizer = demo_tokenizer.build(texts, asked, mixture.phrases(tasks), settings["vocabulary"])
    asked_tokens = tokenizer([row.prompt.render(row.question, tokenizer) for row in rows])["input_ids"]
    told_tokens = tokenizer([row.completion + tokenizer.eos_token for row in rows])["input_ids"]
    examples = [Example(*tokens) for tokens in zip(asked_tokens, told_tokens, strict=True)]

    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            tie_word_embeddings=True,
            attention_dropout=0.0,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            dtype="float32",
            **settings["architecture"],
        )
    )
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    size = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"demo model: {size:.1f} M parameters, {len(tokenizer)} tokens, {steps} steps", flush=True)

    loss = train(model, examples, tokenizer.pad_token_id, training, seed)
    output.mkdir(parents=True, exist_ok=True)
    print(f"demo model: built in {time.monotonic() - started:.0f} s, loss {loss:.2f}")
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    demo_tokenizer.check_reload(output, texts[:200])
    provenance.write(output, settings=settings, tasks=list(names), loss=loss, sha256=provenance.sha256(output))

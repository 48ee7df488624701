"""Build a demo base model: tokenizer, random weights, and supervised training on generated traces of one task.

python -m recipes.models demo-countdown --output FOLDER
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from contracts import provenance
from recipes.demo_model import mixture
from recipes.demo_model import tokenizer as demo_tokenizer
from recipes.demo_model.training import Example, train
from system.yaml_files import read_yaml
from tasks import prompts, registry

SETTINGS = Path(__file__).resolve().parent.parent / "demo_model.yaml"
TOKENIZER_ROWS = 5000  # of the mixture, that the tokenizer's merges are learned from


def build(output: Path, task: str, demo: dict[str, Any], architecture: dict[str, Any], untrained: bool) -> None:
    """Train a model on a task's demo traces.

    Args:
        output: folder for the model, in Hugging Face format.
        task: its name.
        demo: `demo` of its task.yaml, perhaps with other prompts (recipes.models.demo_settings).
        architecture: its sizes (recipes.models.architecture).
        untrained: leave its weights at random.
    """
    started = time.monotonic()
    settings = read_yaml(SETTINGS) | {"architecture": architecture}
    training, steps = settings["training"], 0 if untrained else demo["steps"]
    count = TOKENIZER_ROWS if untrained else steps * training["batch"]
    rows = mixture.rows(task, demo, count, training["skills_first"], settings["seed"])
    texts = [f"{row.question} {row.completion}" for row in rows[-TOKENIZER_ROWS:]]
    phrases = registry.get(task).traces.phrases(demo["problems"])
    demo_prompts = [prompts.load(name) for name in demo["prompts"]]
    tokenizer = demo_tokenizer.build(texts, demo_prompts, phrases, settings["vocabulary"])
    model = random_model(tokenizer, architecture, settings["seed"])
    size = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"{output.name}: {size:.1f} M parameters, {len(tokenizer)} tokens, {steps} steps", flush=True)
    loss = None
    if not untrained:
        examples = tokenized(rows, tokenizer)
        loss = train(model, examples, tokenizer.pad_token_id, training, settings["seed"], output.name)
    output.mkdir(parents=True, exist_ok=True)
    learned = "" if loss is None else f", loss {loss:.2f}"
    print(f"{output.name}: built in {time.monotonic() - started:.0f} s{learned}")
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    demo_tokenizer.check_reload(output, texts[:200])
    provenance.write(output, settings=settings, task=task, demo=demo, loss=loss, sha256=provenance.sha256(output))


def random_model(tokenizer: Any, architecture: dict[str, Any], seed: int) -> Any:
    """A Qwen2 model with random weights, for the tokens of a tokenizer.

    Args:
        tokenizer: of transformers.
        architecture: sizes, as Qwen2Config takes them.
        seed: of the weights.
    """
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

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
            **architecture,
        )
    )
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def tokenized(rows: list[mixture.Row], tokenizer: Any) -> list[Example]:
    """The tokens of each row's rendered prompt, and of its completion with the token that ends a turn."""
    prompt_tokens = tokenizer([row.prompt.render(row.question, tokenizer) for row in rows])["input_ids"]
    # Where a tokenizer begins texts with a token of its own, the prompt has it already.
    completions = [row.completion + tokenizer.eos_token for row in rows]
    completion_tokens = tokenizer(completions, add_special_tokens=False)["input_ids"]
    return [Example(*tokens) for tokens in zip(prompt_tokens, completion_tokens, strict=True)]

"""Build the demo scale's base model: tokenizer, random weights, and supervised training with TRL's SFTTrainer.

python -m recipes.models demo --output FOLDER
"""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path
from typing import Any

import yaml

from contracts import provenance
from recipes.demo_model import tokenizer as demo_tokenizer
from recipes.demo_model.traces import Mixture, examples

SETTINGS = Path(__file__).with_name("demo_model.yaml")
PROMPTS = Path(__file__).parent.parent / "prompts.yaml"


def in_batches_of_similar_length(rows: list[Any], batch: int, seed: int, window: int = 8) -> list[Any]:
    """The rows reordered so that a batch needs little padding, while neighbouring batches stay unlike each other.

    Within each window of `window` batches rows are sorted by length and the batches shuffled. (Grouping over long
    stretches, short batches after long ones, kept this model from learning.)
    """
    rng, ordered = random.Random(seed), []
    for start in range(0, len(rows), window * batch):
        near = sorted(rows[start : start + window * batch], key=lambda row: len(row["completion"][0]["content"]))
        batches = [near[i : i + batch] for i in range(0, len(near), batch)]
        rng.shuffle(batches)
        ordered += [row for chosen in batches for row in chosen]
    return ordered


def progress_callback() -> Any:
    """A trainer callback that prints step, loss and time left in one line."""
    from transformers import TrainerCallback

    class Progress(TrainerCallback):
        def __init__(self) -> None:
            self.started = time.monotonic()

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            if logs and "loss" in logs:
                left = (time.monotonic() - self.started) / state.global_step * (state.max_steps - state.global_step)
                loss = float(logs["loss"])
                print(
                    f"demo model: step {state.global_step}/{state.max_steps}, loss {loss:.2f}, {left:.0f} s left",
                    flush=True,
                )

    return Progress()


def build(output: Path) -> None:
    """Train the model that demo_model.yaml describes and write it in Hugging Face format to `output`."""
    import datasets
    import torch
    from datasets import Dataset
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from transformers.trainer_callback import PrinterCallback
    from trl import SFTConfig, SFTTrainer

    datasets.disable_progress_bars()
    settings = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    seed = settings["seed"]
    library = yaml.safe_load(PROMPTS.read_text(encoding="utf-8"))
    prompts = [library[name] for name in settings["prompts"]]
    training = settings["training"]
    stream = examples(prompts, Mixture(**settings["mixture"]), seed)
    rows: list[Any] = list(itertools.islice(stream, training["steps"] * training["batch"]))
    rows = in_batches_of_similar_length(rows, training["batch"], seed)

    texts = [f"{row['prompt'][-1]['content']} {row['completion'][0]['content']}" for row in rows[:5000]]
    tokenizer = demo_tokenizer.build(texts, prompts, settings["vocabulary"])

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
    print(f"demo model: {size:.1f} M parameters, {len(tokenizer)} tokens, {training['steps']} steps", flush=True)

    trainer = SFTTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        args=SFTConfig(
            output_dir=str(output),
            use_cpu=not torch.cuda.is_available(),
            bf16=False,
            gradient_checkpointing=False,
            completion_only_loss=True,
            max_length=None,
            max_steps=training["steps"],
            per_device_train_batch_size=training["batch"],
            learning_rate=training["learning_rate"],
            lr_scheduler_type=training["schedule"],
            warmup_steps=training["warmup_steps"],
            adam_beta2=0.98,
            train_sampling_strategy="sequential",
            logging_steps=100,
            disable_tqdm=True,
            save_strategy="no",
            report_to="none",
            seed=seed,
            dataloader_pin_memory=False,
        ),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(progress_callback())
    result = trainer.train()
    output.mkdir(parents=True, exist_ok=True)
    print(f"demo model: trained in {result.metrics['train_runtime']:.0f} s, mean loss {result.training_loss:.2f}")
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    demo_tokenizer.check_reload(output, texts[:200])
    provenance.write(output, settings=settings, mean_loss=result.training_loss, sha256=provenance.sha256(output))

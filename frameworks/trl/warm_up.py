"""Supervised training of a LoRA adapter by TRL's SFTTrainer, for frameworks/warm_up.py.

The trainer gets tokens and which of them belong to the completion, so that it adds no chat template, end token or limit
of length of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frameworks.lora import ALL_LAYERS
from system.errors import UserError

if TYPE_CHECKING:
    from recipes.demo_model.training import Example

LOG_EVERY = 10  # steps


def make_trainer(model: Path, examples: Sequence[Example], settings: dict[str, Any], name: str, output: Path) -> Any:
    """The trainer of an adapter, in float32.

    Args:
        model: folder of the base model.
        examples: tokens.
        settings: `warm_up` of the model's entry, and recipes/warm_up.yaml.
        name: of the model, in the lines of its steps.
        output: where the trainer may write.
    """
    import datasets
    import torch
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
    from trl import SFTConfig, SFTTrainer

    datasets.disable_progress_bars()
    lora = settings["lora"]
    options = SFTConfig(
        output_dir=str(output),
        num_train_epochs=settings["epochs"],
        # One at a time needs a batch'th of the memory, and no padding; the loss is the mean over the batch's tokens.
        per_device_train_batch_size=1,
        gradient_accumulation_steps=settings["batch"],
        learning_rate=settings["learning_rate"],
        lr_scheduler_type=settings["schedule"],
        weight_decay=settings["weight_decay"],
        max_grad_norm=settings["max_grad_norm"],
        seed=settings["seed"],
        optim="adamw_torch",
        completion_only_loss=True,
        max_length=None,
        packing=False,
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=False,
        save_strategy="no",
        report_to="none",
        logging_steps=1,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
    )
    trainer = SFTTrainer(
        AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        options,
        train_dataset=datasets.Dataset.from_list([_row(example) for example in examples]),
        processing_class=AutoTokenizer.from_pretrained(model),
        peft_config=LoraConfig(
            r=lora["rank"], lora_alpha=lora["alpha"], lora_dropout=settings["dropout"], target_modules=ALL_LAYERS,
            task_type="CAUSAL_LM",
        ),
        callbacks=[_progress(name)],
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    return trainer


def _row(example: Example) -> dict[str, list[int]]:
    mask = [0] * len(example.prompt) + [1] * len(example.completion)
    return {"input_ids": example.prompt + example.completion, "completion_mask": mask}


def train(model: Path, examples: Sequence[Example], settings: dict[str, Any], name: str, output: Path) -> float:
    """Train an adapter and write it; returns the mean loss of the last ten steps. Arguments are `make_trainer`'s.

    Raises:
        UserError: a loss was no number.
    """
    trainer = make_trainer(model, examples, settings, name, output)
    trainer.train()
    losses = _losses(trainer.state)
    if not all(map(math.isfinite, losses)):
        raise UserError(f"the loss of {name} is no number: lower warm_up.learning_rate", code="loss-not-finite")
    trainer.model.save_pretrained(output)
    return sum(losses[-LOG_EVERY:]) / len(losses[-LOG_EVERY:])


def _losses(state: Any) -> list[float]:
    return [float(entry["loss"]) for entry in state.log_history if "loss" in entry]


def _progress(name: str) -> Any:
    """A callback that prints every tenth step: its loss, and the time left."""
    from transformers import TrainerCallback

    started = time.monotonic()

    class Progress(TrainerCallback):
        """The lines of a training, as demo models have them."""

        def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            step, steps, losses = state.global_step, state.max_steps, _losses(state)[-LOG_EVERY:]
            if losses and "loss" in state.log_history[-1] and (step % LOG_EVERY == 0 or step == steps):
                left = (time.monotonic() - started) / step * (steps - step)
                print(
                    f"{name}: step {step}/{steps}, loss {sum(losses) / len(losses):.2f}, {left:.0f} s left", flush=True
                )

    return Progress()

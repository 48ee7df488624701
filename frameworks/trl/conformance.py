"""TRL's own advantages and loss on given tensors: `GRPOTrainer._generate_and_score_completions` and `_compute_loss`.

The trainer is made by its constructor from a GRPOConfig. What is replaced is around the formulas: the completions are
given, and the model returns given logits through TRL's own LM head.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import transformers
from datasets import Dataset
from tokenizers import Tokenizer, models
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import add_fused_lm_head

from frameworks.conformance import BETA2, LEARNING_RATE, LONGEST, VOCABULARY, WEIGHT_DECAY, CannotExpress
from frameworks.trl.command import AGGREGATIONS, LOSSES

CORRECTIONS = {
    ("token", "truncate"): "token_truncate", ("token", "mask"): "token_mask",
    ("sequence", "truncate"): "sequence_truncate", ("sequence", "mask"): "sequence_mask",
}  # fmt: skip


class GivenLogits(torch.nn.Module):
    """A model whose logits are given: the hidden states are the logits, and the LM head is the identity."""

    def __init__(self, logits: torch.Tensor) -> None:
        """Of shape (B, T, V), for the tokens after a prompt of one."""
        super().__init__()
        self.config = SimpleNamespace(get_text_config=SimpleNamespace)
        self.head = SimpleNamespace(weight=torch.eye(logits.shape[-1]), bias=None)
        end = torch.zeros_like(logits[:, :1])
        self.states = SimpleNamespace(last_hidden_state=torch.cat([logits, end], 1), aux_loss=None)
        add_fused_lm_head(self, outputs=("log_probs", "entropy"))

    def forward(self, **_: Any) -> Any:
        """The forward without the fused head."""
        raise AssertionError("only the fused LM head is called")

    def base_model(self, **_: Any) -> Any:
        """The backbone."""
        return self.states

    def get_output_embeddings(self) -> Any:
        """The LM head."""
        return self.head


def options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The GRPOConfig of a formula."""
    low, high = settings["clip"]
    config: dict[str, Any] = {
        "epsilon": low,
        "epsilon_high": high,
        "loss_type": AGGREGATIONS[settings["loss_aggregation"]],
    }
    if settings["advantage"] == "gae":
        raise CannotExpress("this release has no PPO and no critic")
    if settings["advantage"] not in ("given", "group", "none", "batch", "gdpo"):
        raise CannotExpress("advantages are by the group's mean")
    if settings["overlong"]:
        raise CannotExpress("the penalty is a reward function, get_soft_overlong_punishment")
    if settings["policy"] not in LOSSES:
        raise CannotExpress("it has no such loss")
    if settings["advantage"] == "gdpo":
        config["multi_objective_aggregation"] = "normalize_then_sum"
    elif settings["advantage"] != "given":
        config["scale_rewards"] = settings["advantage"]
    if settings["kl"]:
        if settings["kl_in"] == "reward":
            raise CannotExpress("the KL term is in the loss")
        if settings["kl"] != "k3":
            raise CannotExpress("the KL term is k3")
        config |= {"beta": settings["kl_coefficient"], "use_bias_correction_kl": settings["unbiased_kl"]}
    config |= LOSSES[settings["policy"]]
    if settings["policy"] == "cispo":
        config["epsilon_high"] = 1 + high
    if chosen := settings["correction"]:
        if (chosen["level"], chosen["form"]) not in CORRECTIONS:
            raise CannotExpress("sequences are judged by the product of their ratios")
        config["vllm_importance_sampling_mode"] = CORRECTIONS[chosen["level"], chosen["form"]]
        config |= {
            f"vllm_importance_sampling_clip_{end}": chosen[name] for end, name in (("min", "low"), ("max", "high"))
        }
    return config | {
        "delta": settings["dual_clip"], "entropy_coef": settings["entropy"],
        "mask_truncated_completions": settings["mask_truncated"],
    }  # fmt: skip


class Functions:
    """See frameworks.conformance."""

    def __init__(self) -> None:
        """Writes a tiny model and tokenizer, which a trainer needs to be made."""
        self.folder = tempfile.TemporaryDirectory()
        vocabulary = {f"t{number}": number for number in range(VOCABULARY)}
        core = Tokenizer(models.WordLevel(vocabulary, unk_token="t0"))
        self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, pad_token="t1", eos_token="t2")
        config = transformers.Qwen2Config(
            vocab_size=VOCABULARY, hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1,
            num_key_value_heads=1, max_position_embeddings=16,
        )  # fmt: skip
        self.model = Path(self.folder.name, "model")
        transformers.Qwen2ForCausalLM(config).save_pretrained(self.model)

    def prepare(self, settings: Mapping[str, Any], batch: Any) -> Any:
        """A configuration of the release for a formula and a shape."""
        if batch.kind == "masked":
            raise CannotExpress("only truncated completions can be left out")
        config = GRPOConfig(
            output_dir=self.folder.name, use_cpu=True, bf16=False, report_to="none", gradient_checkpointing=False,
            per_device_train_batch_size=len(batch.mask) // settings["micro_batches"], num_generations=batch.samples,
            gradient_accumulation_steps=settings["micro_batches"], max_completion_length=LONGEST, temperature=1.0,
            learning_rate=LEARNING_RATE, adam_beta2=BETA2, weight_decay=WEIGHT_DECAY, disable_tqdm=True,
            vllm_importance_sampling_correction=bool(settings["correction"]), **options(settings),
        )  # fmt: skip
        rows = Dataset.from_list([{"prompt": "t3"}] * len(batch.mask))
        rewards = [lambda **_: trainer.given_rewards, lambda **_: trainer.form_rewards]
        trainer: Any = GRPOTrainer(
            str(self.model),
            rewards if settings["advantage"] == "gdpo" else rewards[:1],
            config,
            train_dataset=rows,
            processing_class=self.tokenizer,
        )
        trainer.model.train()
        trainer.use_vllm = bool(settings["correction"])  # as vLLM would have sampled
        trainer.current_gradient_accumulation_steps = settings["micro_batches"]
        trainer.adam = trainer.get_optimizer_cls_and_kwargs(config, trainer.model)
        return trainer

    def run(self, trainer: Any, settings: Mapping[str, Any], batch: Any, logits: Any) -> tuple[Any, float]:
        """Advantages of all tokens, or None, and the loss."""
        inputs = self.inputs(trainer, batch)
        advantages = inputs["advantages"]
        if settings["advantage"] == "given":
            inputs["advantages"] = batch.advantages
        inputs["old_per_token_logps"] = batch.old  # with more than one update per batch, TRL computes them itself
        processes = settings["processes"]
        total, size = 0.0, len(batch.mask) // (settings["micro_batches"] * processes)
        for start in range(0, len(batch.mask), size):
            part = {
                name: value[start : start + size] if isinstance(value, torch.Tensor) and value.dim() else value
                for name, value in inputs.items()
            }
            with patch.object(type(trainer.accelerator), "num_processes", processes):
                loss = trainer._compute_loss(GivenLogits(logits[start : start + size]), part) / processes
            loss.backward()
            total += loss.item()
        trainer._metrics.clear()
        trainer._metrics.update(train=defaultdict(list), eval=defaultdict(list))
        return (None if settings["advantage"] == "given" else advantages[:, None].expand_as(batch.mask)), total

    def inputs(self, trainer: Any, batch: Any) -> dict[str, Any]:
        """What the trainer makes of given completions; padding to the width of the batch stands in for longer ones."""
        lengths = batch.lengths.tolist()
        texts = [row[:length].tolist() for row, length in zip(batch.tokens, lengths, strict=True)]
        sampled = [row[:length].tolist() for row, length in zip(batch.rollout, lengths, strict=True)]
        prompts = [[3]] * len(texts)
        sampled_by_vllm = sampled if trainer.use_vllm else None
        trainer._generate = lambda _: (prompts, texts, None, [""] * len(texts), sampled_by_vllm, {}, None, None)
        longest = max(lengths)
        trainer._get_per_token_logps_and_entropies = lambda model, *_, **__: (
            (batch.old if model is trainer.model else batch.reference)[:, :longest], None, None
        )  # fmt: skip
        trainer.given_rewards, trainer.form_rewards = batch.rewards.tolist(), batch.form_rewards.tolist()
        try:
            inputs = trainer._generate_and_score_completions([{"prompt": "t3"} for _ in texts])
        finally:
            del trainer._get_per_token_logps_and_entropies
        padding = batch.mask.shape[1] - longest
        for name in ("completion_ids", "completion_mask", "importance_sampling_ratio", "ref_per_token_logps"):
            if padding and name in inputs and inputs[name].shape[1] > 1:
                inputs[name] = torch.nn.functional.pad(inputs[name], (0, padding))
        return dict(inputs)

    def optimizer(self, trainer: Any, parameters: list[Any]) -> Any:
        """The release's AdamW."""
        kind, keywords = trainer.adam
        return kind(parameters, weight_decay=trainer.args.weight_decay, **keywords)


FUNCTIONS = Functions()

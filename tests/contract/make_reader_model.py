"""Have a tiny model learn texts by heart: `python make_reader_model.py FOLDER TEXTS.json`, after make_tiny_model.py."""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoTokenizer, Qwen2ForCausalLM

STEPS, ENOUGH = 800, 0.02  # at most; nats per token


def main() -> None:
    folder, texts = sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    torch.manual_seed(0)
    tokenizer, config = AutoTokenizer.from_pretrained(folder), AutoConfig.from_pretrained(folder)
    config.initializer_range = 0.02
    model = Qwen2ForCausalLM(config)
    batch = tokenizer([f"{text}<|im_end|>" for text in texts], return_tensors="pt", padding=True)
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    for _ in range(STEPS):
        loss = model(**batch, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if loss.item() < ENOUGH:
            break
    model.generation_config.bos_token_id = None
    model.save_pretrained(folder)
    print(f"{loss.item():.4f} nats per token")


if __name__ == "__main__":
    main()

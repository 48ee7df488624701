"""What bfloat16 and prefix caching do to the sampler of a pretrained model on a CPU."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts.run_file import ROOT
from envs.build import python
from eval import vllm_settings
from tests import needs
from tests.contract.real_model import real_model

pytestmark = [pytest.mark.contract, pytest.mark.slow, pytest.mark.long]  # engines with real weights: a minute each

# Greedy answers to problems behind the same five examples, twice, the second time with the examples' keys and values
# from the cache; and how far the sampler's log-probabilities of its tokens are from those of transformers in float32.
SAMPLE = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm import LLM, SamplingParams, TokensPrompt
from eval import vllm_settings
from tasks import prompts
from tasks.word_problems.problems import generate
folder, dtype = sys.argv[1:]
tokenizer, prompt = AutoTokenizer.from_pretrained(folder), prompts.load("smollm2-gsm8k-5-shot")
texts = [prompt.render(one.question, tokenizer) for one in generate(4, "train", 0, (1, 2), 10)]
tokens = [tokenizer(text, add_special_tokens=False).input_ids for text in texts]
engine = vllm_settings.engine("cpu") | {"dtype": dtype, "enable_prefix_caching": True, "max_model_len": 2048}
llm, settings = LLM(folder, **engine), SamplingParams(temperature=0.0, max_tokens=24, logprobs=0)
rounds = [llm.generate([TokensPrompt(prompt_token_ids=one) for one in tokens], settings, use_tqdm=False) for _ in "12"]
answers = [[list(one.outputs[0].token_ids) for one in outputs] for outputs in rounds]
trainer = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
distances = []
for before, output in zip(tokens, rounds[0], strict=True):
    sampled = output.outputs[0]
    whole = torch.tensor([before + list(sampled.token_ids)])
    with torch.no_grad():
        rows = trainer(whole).logits[0, len(before) - 1 : -1].log_softmax(-1)
    for row, token, entry in zip(rows, sampled.token_ids, sampled.logprobs, strict=True):
        distances.append(abs(row[token].item() - entry[token].logprob))
print(json.dumps({
    "answers": answers, "cached": [one.num_cached_tokens for one in rounds[1]],
    "distance": sum(distances) / len(distances),
}))
"""


@pytest.fixture(scope="module")
def model() -> Path:
    return real_model()


def _sampled(model: Path, dtype: str) -> dict[str, Any]:
    needs.skip_without("eval")
    environment = os.environ | vllm_settings.environment("cpu") | {"PYTHONPATH": str(ROOT)}
    command = [python("eval"), "-c", SAMPLE, model, dtype]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return told


def test_a_sampler_in_bfloat16_is_further_from_the_trainer_than_one_in_float32(model: Path) -> None:
    exact, rounded = _sampled(model, "float32"), _sampled(model, "bfloat16")
    assert exact["distance"] < 1e-4 < 1e-3 < rounded["distance"] < 0.3
    first, second = exact["answers"]
    assert first == second and all(count >= 128 for count in exact["cached"])

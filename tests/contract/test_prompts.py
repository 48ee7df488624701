"""Training and evaluation ask the same text, and it is the published one; with lm-eval, vLLM and a real tokenizer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts import tables
from contracts.run_file import ROOT
from envs.build import python
from tasks import dataset_specs, load_problems, prompts
from tests import needs
from tests.contract.tiny_model import copy_model
from tests.warm_python import warm_python

PYTHON = python("eval")
MIRROR = ROOT.parent / "shared" / "data"
QUESTION = "What is {question} + 2?\n\nSay {{ it }} as \\boxed{}, <|im_end|> \u00e9 \u202e."
PUBLISHED = {
    "countdown_train": "tinyzero-base",
    "knights_knaves_3ppl_train": "logicrl-instruct",
    "knights_knaves_5ppl_train": "logicrl-instruct",
}
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("eval"),
]

# In the evaluation's environment: what lm-eval asks of a model with this tokenizer, and what the adapters train with.
ASKED = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
import pyarrow.parquet as pq
from eval import vllm_settings
os.environ.update(vllm_settings.environment("cpu"))
from eval.vllm_model import CrossZeroVLLM
from recipes.runs import load_run
from tasks import prompts
from tests.contract.lm_eval_tasks import load_tasks
from frameworks import adapter
model, data = Path(sys.argv[1]), Path(sys.argv[2])
lm = CrossZeroVLLM(str(model), device="cpu", protocol="demo")
found = {}
for name in prompts.library():
    overrides = {"prompt": name, "chat_template": True}
    task = load_tasks(["arithmetic_words"], data=str(data), protocol="demo", overrides=overrides)
    task = task["arithmetic_words"]
    task.build_all_requests(
        apply_chat_template=True, chat_template=lm.apply_chat_template, tokenizer_name=lm.tokenizer_name,
        fewshot_as_multiturn=True,
    )
    asked = task.instances[0].args[0]
    folder = data / name
    paths = SimpleNamespace(model=model, problems=data / "arithmetic_words.parquet")
    run = replace(load_run("tinyzero/grpo-3b", "demo"), prompt=name)
    stage = replace(
        run.stages[0], rollout={"max_prompt_tokens": 10_000}, batch={"prompts_per_update": 1, "samples_per_prompt": 1}
    )
    for framework in ("trl", "verl"):
        adapter.load(framework).write_data(run, stage, paths, folder / framework)
    trained = pq.read_table(folder / "trl" / "train.parquet")["prompt"][0].as_py()
    (message,) = pq.read_table(folder / "verl" / "train.parquet")["prompt"][0].as_py()
    found[name] = [[trained, message["content"]], lm.tokenizer(trained)["input_ids"], asked, lm.tok_encode(asked)]
print(json.dumps(found))
"""

# Renders lines of [prompt, question] with the tokenizer's chat template, which is Qwen's without its default message.
RENDERED = """
import json, sys
from transformers import AutoTokenizer
from tasks import prompts
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
for line in sys.stdin:
    name, question = json.loads(line)
    print(json.dumps(prompts.load(name).render(question, tokenizer)))
"""


# What DeepSeek-R1's distilled Qwen models are asked, with their template of February 2025 (its licence is MIT), and
# the reward of a completion in the form that `r1-tags` asks for.
DISTILLED = """
import json, sys
from pathlib import Path
from transformers import AutoTokenizer
from recipes import rewards
from recipes.openr1 import reward
from tasks import prompts
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], bos_token="<|im_start|>")
tokenizer.chat_template = Path(sys.argv[2]).read_text()
asked = {name: prompts.load(name).render("2+2?", tokenizer) for name in ("r1-tags", "lighteval-boxed")}
completion = "<think>four</think><answer>\\\\boxed{4}</answer>"
turn = prompts.load("r1-tags").assistant + completion
print(json.dumps([asked, reward.tags([turn], [rewards.problem_from_columns("math", "4", "{}")])[0].value]))
"""


def run(script: str, *arguments: Path, lines: str = "") -> str:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [warm_python("eval"), "-c", script, *arguments]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_model(tmp_path_factory.mktemp("prompts") / "model")


def test_training_and_evaluation_ask_the_same_text(model: Path, tmp_path: Path) -> None:
    row = {
        "problem_id": "p0", "task": "arithmetic", "messages": [{"role": "user", "content": QUESTION}], "answer": "4",
        "meta": "{}",
    }  # fmt: skip
    tables.write(pa.Table.from_pylist([row], tables.PROBLEM), tables.PROBLEM, tmp_path / "arithmetic_words.parquet")
    texts = json.loads(run(ASKED, model, tmp_path).splitlines()[-1])
    assert set(texts) == set(prompts.library())
    for name, (trained, trained_tokens, evaluated, evaluated_tokens) in texts.items():
        assert trained == [evaluated] * 2, name
        assert evaluated_tokens == trained_tokens, name
        assert QUESTION in evaluated and evaluated.endswith(prompts.load(name).assistant), name
        as_it_is = prompts.load(name).user.replace("{question}", QUESTION) + prompts.load(name).assistant
        assert (evaluated == as_it_is) == prompts.load(name).raw, name  # else the chat template is around it


def test_a_template_that_begins_to_think_leaves_the_tags_to_the_model_where_the_prompt_asks_for_them(
    model: Path,
) -> None:
    prompt_text, tags = json.loads(run(DISTILLED, model, ROOT / "tests/contract/cases/deepseek-r1-distill-qwen.jinja"))
    assert prompt_text["r1-tags"].endswith("<｜User｜>2+2?<｜Assistant｜>") and tags == 1.0
    assert prompt_text["lighteval-boxed"].endswith("<｜Assistant｜><think>\n")


@pytest.mark.skipif(not MIRROR.is_dir(), reason="the published training files are not in ../shared/data")
def test_prompts_are_the_published_ones(model: Path) -> None:
    questions: list[tuple[str, str, str]] = []  # dataset, prompt, question
    published: list[str] = []
    for dataset, prompt in PUBLISHED.items():
        entry = dataset_specs.find(dataset)
        column = pq.read_table(MIRROR / entry.spec["files"][0]["path"], columns=["prompt"])["prompt"].to_pylist()
        published += [messages[0]["content"] for messages in column]
        questions += [(dataset, prompt, problem.question) for problem in load_problems.load(entry, MIRROR)[0]]
    lines = "\n".join(json.dumps([prompt, question]) for _, prompt, question in questions)
    rendered = [json.loads(line) for line in run(RENDERED, model, lines=lines).splitlines()]
    pairs = zip(questions, rendered, published, strict=True)
    assert [dataset for (dataset, *_), own, text in pairs if own != text] == []


def test_every_prompt_names_its_source_and_asks_the_question_once() -> None:
    for name, entry in prompts.entries().items():
        assert entry["source"], name
        assert entry["user"].count("{question}") == 1, name

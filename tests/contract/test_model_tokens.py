"""Length terms count tokens of the model that is trained, by its own tokenizer, in every framework's environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import ROOT, framework_names
from tests.hostile_text import TEXTS
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

COUNT = """
import json, os, sys
from pathlib import Path
from recipes import model_tokens, rewards
from recipes.demo_model import tokenizer
model, texts = Path(sys.argv[1]), json.load(sys.stdin)
tokenizer.build(texts[:12], [], [], 300).save_pretrained(model)
os.environ |= model_tokens.environment(model, 12)
entry = {"function": "recipes.reward_shaping.soft_over_long", "weight": 2.0, "arguments": {"buffer": 4}}
loaded = rewards.load([entry])
given = rewards.total(loaded, texts, [None] * len(texts))
print(json.dumps([[len(model_tokens.encode(text)) for text in texts], [one.value for one in given]]))
"""


@pytest.mark.parametrize("framework", framework_names())
def test_a_length_is_that_of_the_model_s_own_tokens(framework: str, tmp_path: Path) -> None:
    digits = ["1 " * count for count in range(12)]  # numbers are tokens of their own, and so is the space
    done = subprocess.run(
        [warm_python(framework), "-c", COUNT, tmp_path],
        input=json.dumps([*digits, *TEXTS.values()]), capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lengths, values = json.loads(done.stdout.strip().split("\n")[-1])
    assert lengths[: len(digits)] == [2 * count for count in range(12)]
    assert values == pytest.approx([2 * min(0.0, max(-1.0, (8 - length) / 4)) for length in lengths])

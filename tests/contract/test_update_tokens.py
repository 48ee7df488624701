"""What is counted of a real model's passes: those with gradients, once each, in every process."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from frameworks import update_tokens
from tests import needs
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]
SCRIPT = """
import json, os, pathlib, sys
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from frameworks import update_tokens

reader = update_tokens.Reader(pathlib.Path(sys.argv[1]))
taken = [reader.take()]
os.environ.update(reader.environment)
sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 9}
torch.manual_seed(0)
model = Qwen2ForCausalLM(Qwen2Config(**sizes, num_key_value_heads=1))
tokens, mask = torch.ones(2, 5, dtype=torch.long), torch.tensor([[0, 0, 1, 1, 1], [1] * 5])
before = model.train()(tokens, attention_mask=mask).logits
update_tokens.install()
update_tokens.install()
same = torch.equal(before, model(tokens, attention_mask=mask).logits)
model(input_ids=tokens[:, :2])
taken.append(reader.take())
with torch.no_grad():
    model(tokens)
model.eval()(tokens)
model.train()(inputs_embeds=torch.ones(2, 5, 8))
taken.append(reader.take())
model(tokens, attention_mask=torch.ones(2, 1, 5, 5, dtype=torch.bool))
update_tokens.Counter(pathlib.Path(sys.argv[1]) / "another process").add(10, 10)
model(tokens, attention_mask=mask)
taken.append(reader.take())
print(json.dumps([same, *taken]))
"""


def test_what_is_counted(tmp_path: Path) -> None:
    needs.skip_without("trl")
    command = [warm_python("trl"), "-c", SCRIPT, str(tmp_path / "tokens")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    same, *taken = json.loads(done.stdout)
    assert same
    assert taken == [
        {},
        {"trained_tokens": 8 + 4, "padding_share": pytest.approx(2 / 14)},
        {},  # without gradients, not in training, or of what is no token
        {"trained_tokens": 10 + 8, "padding_share": pytest.approx(2 / 20)},  # another process's, too
    ]


def test_a_file_that_is_being_written_is_left_for_the_next_step(tmp_path: Path) -> None:
    reader = update_tokens.Reader(tmp_path / "tokens")
    file = Path(reader.environment[update_tokens.VARIABLE]) / "1"
    file.write_bytes(b"")
    assert reader.take() == {}
    file.write_bytes(update_tokens.SUMS.pack(3, 4))
    assert reader.take() == {"trained_tokens": 3.0, "padding_share": 0.25}

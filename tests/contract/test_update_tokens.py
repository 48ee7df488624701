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
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM
from frameworks import update_tokens

folder, taken = pathlib.Path(sys.argv[1]), []
os.environ[update_tokens.VARIABLE] = sys.argv[1]
sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 9}
torch.manual_seed(0)
model = Qwen2ForCausalLM(Qwen2Config(**sizes, num_key_value_heads=1))
tokens, mask = torch.ones(2, 5, dtype=torch.long), torch.tensor([[0, 0, 1, 1, 1], [1] * 5])
before = model.train()(tokens, attention_mask=mask).logits
update_tokens.install()
update_tokens.install()
same = torch.equal(before, model(tokens, attention_mask=mask).logits)
model(input_ids=tokens[:, :2])
taken.append(update_tokens.columns(folder, {1: 0.0}).get(1))
with torch.no_grad():
    model(tokens)
model.eval()(tokens)
model.train()(inputs_embeds=torch.ones(2, 5, 8))
taken.append(update_tokens.columns(folder, {1: 0.0}).get(1))
model(tokens, attention_mask=torch.ones(2, 1, 5, 5, dtype=torch.bool))
model(tokens, attention_mask=mask)
taken.append(update_tokens.columns(folder, {1: 0.0}).get(1))


class WithoutPadding(PreTrainedModel):
    _supports_sdpa = True

    def __init__(self):
        super().__init__(model.config)
        self.model = model

    def forward(self, tokens, attention_mask):
        return self.model(input_ids=tokens[attention_mask.bool()][None])


WithoutPadding().train()(tokens, attention_mask=mask)
taken.append(update_tokens.columns(folder, {1: 0.0}).get(1))
print(json.dumps([same, *taken]))
"""


def test_what_is_counted(tmp_path: Path) -> None:
    needs.skip_without("trl")
    command = [warm_python("trl"), "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    same, *taken = json.loads(done.stdout)
    assert same
    first = {"trained_tokens": 8 + 4, "padding_share": pytest.approx(2 / 14)}
    assert taken[:2] == [first, first]  # not without gradients, nor in evaluation, nor of what is no token
    assert taken[2] == {"trained_tokens": 12 + 8, "padding_share": pytest.approx(4 / 24)}
    assert taken[3] == {"trained_tokens": 20 + 8, "padding_share": pytest.approx(4 / 32)}  # taken out before the pass


def test_passes_are_of_the_step_in_which_they_began(tmp_path: Path) -> None:
    passes = {"a": [(9.0, 1, 1), (10.5, 3, 4), (12.0, 5, 5), (40.0, 2, 4)], "b": [(11.0, 3, 4), (20.0, 7, 7)]}
    for process, rows in passes.items():
        content = b"".join(update_tokens.PASS.pack(*row) for row in rows)
        (tmp_path / f"{process}.passes").write_bytes(content + b"torn")
    assert update_tokens.columns(tmp_path, {3: 10.0, 4: 20.0, 7: 30.0}) == {
        3: {"trained_tokens": 11.0, "padding_share": pytest.approx(2 / 13)},
        4: {"trained_tokens": 7.0, "padding_share": 0.0},
        7: {"trained_tokens": 2.0, "padding_share": 0.5},
    }
    assert update_tokens.columns(tmp_path, {}) == {}

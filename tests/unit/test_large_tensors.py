"""Weights reach a sampler through memory that their largest tensor fits into, whatever the size of the vocabulary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frameworks.adapter import Paths
from frameworks.verl.command import trainer_overrides
from recipes.runs import load_run

RUN = load_run("crosscheck/verl", "small")
BUCKET = "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"


@pytest.mark.parametrize(("tokens", "width", "megabytes"), [(450, 128, 64), (49152, 576, 108), (151936, 896, 520)])
def test_the_embedding_fits(tokens: int, width: int, megabytes: int, tmp_path: Path) -> None:
    header = json.dumps(
        {
            "model.embed_tokens.weight": {"dtype": "BF16", "shape": [tokens, width], "data_offsets": [0, 0]},
            "model.norm.weight": {"dtype": "BF16", "shape": [width], "data_offsets": [0, 0]},
        }
    ).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    paths = Paths(problems=tmp_path, model=tmp_path, work=tmp_path)
    (stated, _) = trainer_overrides(RUN, RUN.stages[0], 0, paths, tmp_path)[BUCKET]
    assert stated == megabytes and stated * 2**20 >= 4 * tokens * width

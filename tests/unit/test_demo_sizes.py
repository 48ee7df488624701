"""Demo models with sizes of their own: what an entry of recipes/models.yaml may say."""

from __future__ import annotations

from typing import Any

import pytest

from recipes import models
from tests.unit.conftest import Declare
from tests.user_errors import refused

SIZES = models.DEMO_MODEL["architecture"]


@pytest.mark.parametrize("own", [{}, {"num_hidden_layers": 6}, {"hidden_size": 256, "intermediate_size": 100}])
def test_sizes_of_an_entry_replace_those_that_all_share(own: dict[str, int], declare: Declare) -> None:
    declare(mine={"demo_task": "arithmetic", "architecture": own})
    assert models.architecture(models.find("mine")) == SIZES | own
    assert (models.settings("mine") == models.settings("demo") | {"architecture": own}) and own.keys() <= SIZES.keys()


def test_random_weights_need_no_training(declare: Declare) -> None:
    declare(mine={"demo_task": "arithmetic", "architecture": {"initializer_range": 0.1}, "untrained": True})
    assert models.find("mine")["environment"] == "eval" != models.find("demo-2m")["environment"]


@pytest.mark.parametrize(
    "own",
    [
        *({key: value} for key in SIZES for value in (0, -128, "128", 128.0, True, None, [128])),
        *({f"{key}s": 128} for key in SIZES),
        {"initializer_range": 0},
        {"initializer_range": True},
        {"hidden_size": 130},  # heads of 32.5
        {"hidden_size": 132},  # of 33, which rotary positions cannot halve
        {"num_attention_heads": 3},
        {"num_key_value_heads": 3},
        {"hidden_size": 256, "num_attention_heads": 2},  # fewer than key-value heads
        [128],
        None,
    ],
    ids=repr,
)
def test_sizes_that_make_no_model_are_refused_before_anything_is_trained(own: Any, declare: Declare) -> None:
    declare(mine={"demo_task": "arithmetic", "architecture": own})
    with refused("bad-architecture", model="mine"):
        models.library()


@pytest.mark.parametrize("untrained", [False, None, 1, {"hidden_size": 512}])
def test_random_weights_are_asked_for_by_true_alone(untrained: Any, declare: Declare) -> None:
    declare(mine={"demo_task": "arithmetic", "untrained": untrained})
    with refused("bad-architecture", model="mine"):
        models.library()

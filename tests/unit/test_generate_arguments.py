from __future__ import annotations

import pytest

from contracts.errors import UserError
from eval.generate import parse_checkpoints


@pytest.mark.parametrize("values", [["a=b"], ["1"], ["1="], ["1=a", "1=b"], ["-1=a"]])
def test_bad_checkpoint_arguments(values: list[str]) -> None:
    with pytest.raises(UserError, match="--checkpoint"):
        parse_checkpoints(values)


def test_checkpoint_arguments() -> None:
    assert {step: str(path) for step, path in parse_checkpoints(["0=a", "100=b=c"]).items()} == {0: "a", 100: "b=c"}

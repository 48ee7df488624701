"""If torch cannot write a checkpoint, the full disk is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from frameworks import trainer_process
from frameworks.adapter import Command
from tests import needs
from tests.user_errors import refused
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]


@pytest.mark.parametrize("numbers", [10, 3_000_000])
@pytest.mark.parametrize("options", ["", ", _use_new_zipfile_serialization=False"], ids=["zip", "pickle"])
def test_torch_says_that_the_disk_is_full(tmp_path: Path, numbers: int, options: str) -> None:
    needs.skip_without("trl")
    script = f"import torch; torch.save(torch.zeros({numbers}), '/dev/full'{options})"
    with refused("disk-full"):
        trainer_process.run(
            Command([str(warm_python("trl")), "-c", script]),
            tmp_path / "log",
            trainer_process.Monitor("r/x", 1, lambda _: None),
        )

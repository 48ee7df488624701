"""What CrossZero says where torch cannot write a checkpoint: the full disk, or all that torch's words allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from frameworks import trainer_process
from frameworks.adapter import Command
from tests import needs
from tests.user_errors import refused
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]
LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""


@pytest.mark.parametrize("numbers", [10, 3_000_000])
@pytest.mark.parametrize(
    ("before", "file", "options", "code"),
    [
        ("", "/dev/full", ", _use_new_zipfile_serialization=False", "disk-full"),
        ("", "/dev/full", "", "checkpoint-not-written"),
        (LIMITED, "checkpoint.pt", "", "checkpoint-not-written"),
    ],
)
def test_torch_cannot_write(tmp_path: Path, numbers: int, before: str, file: str, options: str, code: str) -> None:
    needs.skip_without("trl")
    script = f"import torch\n{before}\ntorch.save(torch.zeros({numbers}), {str(tmp_path / file)!r}{options})"
    with refused(code):
        trainer_process.run(
            Command([str(warm_python("trl")), "-c", script]),
            tmp_path / "log",
            trainer_process.Monitor("r/x", 1, lambda _: None),
        )

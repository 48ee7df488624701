"""The table: each row well, left out, or its first error line and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from system import markdown

OK, WRONG, LEFT_OUT = "ok", "wrong", "left out"
COLUMNS = ("row", "result", "seconds", "GB, estimated", "tokens/s", "reward", "sampler − trainer", "remarks")
# A line that says what went wrong: an exception's, a compiler's, or our own last one.
ERROR = re.compile(
    r"^.*?\b((?:[\w.]*(?:Error|Exception|Refused)|Error|fatal error|CUDA error)\b ?: ?\S.*)$", re.MULTILINE
)
ADVICE = (
    (r"out of memory|available memory|free memory on device", "free the GPU (nvidia-smi), or use one with more memory"),
    (r"No module named|needs the package", "install it, or leave this row out (--row names those to run)"),
    (r"ninja|nvcc|CUDA_HOME|Python\.h|CUDA toolkit", "make rehearse says what cannot be compiled, and why"),
    (r"no kernel image|not compatible with the current PyTorch",
     "set FLASH_ATTN_CUDA_ARCHS and TORCH_CUDA_ARCH_LIST to this GPU's, and build the environment again"),
    (r"driver version|driver .*too old|found no NVIDIA driver", "install the driver that snakemake doctor asks for"),
    (r"/dev/shm|shared memory|Bus error", "give the container more shared memory (--shm-size=16g)"),
    (r"NCCL|ncclS", "run it again with NCCL_DEBUG=INFO; in a container also with more shared memory (--shm-size=16g)"),
    (r"^TimeoutError: ended", "its log says where the time went; a training's limit is `hours` in its run file"),
    (r"no space left|disk is full", "free some disk space"),
)  # fmt: skip


@dataclass
class Row:
    """One line of the table."""

    name: str
    result: str = OK
    seconds: float = 0.0
    peak_gb: float = 0.0
    estimated_gb: float | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def left_out(self, why: str) -> Row:
        """The row, not run."""
        self.result = LEFT_OUT
        self.remarks.append(why)
        return self

    def wrong(self, error: str, advice: str) -> Row:
        """The row, with what went wrong and what to do."""
        self.result = WRONG
        self.remarks += [error, advice]
        return self


def first_error(*logs: str) -> str:
    """The first line that names an error, in the first log that has one; else the last line of the last log."""
    for text in logs:
        if match := ERROR.search(text):
            return match[1].strip()[:300]
    lines = [line.strip() for line in logs[-1].split("\n") if line.strip()] if logs else []
    return lines[-1][:300] if lines else "it printed nothing"


def advice(error: str, log: object) -> str:
    """What to do about an error line; where nothing is known, to look into the log and to report it."""
    known = [text for pattern, text in ADVICE if re.search(pattern, error, re.IGNORECASE)]
    return f"{known[0] if known else 'please report it, with the output of snakemake doctor'}; log: {log}"


def cells(row: Row) -> list[str]:
    """The row's cells, of COLUMNS."""
    speed, distance, rewards = (row.figures.get(key) for key in ("tokens_per_second", "sampler_distance", "reward"))
    memory = f"{row.peak_gb:.1f}" if row.peak_gb else ""
    if memory and row.estimated_gb is not None:
        memory += f", {row.estimated_gb:.1f}"
    return [
        row.name,
        row.result,
        f"{row.seconds:.0f}" if row.seconds else "",
        memory,
        f"{speed:,.0f}" if speed is not None else "",
        " → ".join(f"{value:.3f}" for value in rewards) if rewards else "",
        f"{distance:.1e}" if distance is not None else "",
        "; ".join(row.remarks),
    ]


def page(rows: Sequence[Row], about: str) -> str:
    """The Markdown page.

    Args:
        rows: in the order of the table.
        about: device, versions and date.
    """
    return f"{about}\n\n{markdown.table(COLUMNS, [cells(row) for row in rows])}"

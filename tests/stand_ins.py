"""Generated files in the place of public ones that are not there, for tests whose point is not what these say."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.needs import DATA

QWEN = "generations/qwen2.5-math-1.5b-instruct"
# Problems, and the share of right answers about as that model's.
BENCHMARKS = {
    "aime24": (30, 0.1), "amc23": (40, 0.5), "gsm8k": (1319, 0.85), "math500": (500, 0.75), "minerva_math": (272, 0.3),
    "olympiadbench": (675, 0.4),
}  # fmt: skip


def qwen_generations(folder: Path) -> Path:
    """The public folder of generations by the Qwen harness, else one like it, made in `folder`."""
    if (DATA / QWEN).is_dir():
        return DATA / QWEN
    folder.mkdir(parents=True, exist_ok=True)
    for name, (problems, share) in BENCHMARKS.items():
        draw = random.Random(name)
        rows = []
        for index in range(problems):
            gold, right = draw.randint(0, 999), draw.random() < share
            text = f"We count, and get $\\boxed{{{gold if right else gold + 1}}}$."
            rows.append({
                "idx": index, "question": f"What is number {index} of {name}?", "gt_cot": "None", "gt": str(gold),
                "answer": gold, "code": [text], "pred": [str(gold)], "score": [right],
            })  # fmt: skip
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder

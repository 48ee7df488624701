"""Rows of Skywork-OR1-RL-Data as its authors train DeepSeek-R1-Distill-Qwen-7B on them: those that it solves sometimes.

Each row has a difficulty for that model, 0 to 16; training keeps 1 to 15 (or1_scripts/data_preprocess/
download_and_filter_data_7b.py @64e96af, lines 49-58). Others are left out, as rows without an answer are.
"""

from __future__ import annotations

import json
from typing import Any

from tasks.problems import Problem, index_id

MODEL = "DeepSeek-R1-Distill-Qwen-7B"
KEPT = range(1, 16)


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem, with the first of its answers; see tasks.row_converter.convert.

    Raises:
        KeyError: a column is missing.
        ValueError: the answers are no list in JSON.
    """
    (message,) = row["prompt"]
    question, difficulty = str(message["content"]).strip(), row["extra_info"]["model_difficulty"].get(MODEL)
    answers = json.loads(row["reward_model"]["ground_truth"])
    if not isinstance(answers, list):
        raise ValueError(f"reward_model.ground_truth should be a list in JSON, not {answers!r}")
    answer = str(answers[0]).strip() if answers and difficulty in KEPT else ""
    return Problem(index_id(index, question), task, question, answer or None, {"difficulty": difficulty})

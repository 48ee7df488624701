"""The questions of a stage as every adapter gives them to its framework: rendered, and not longer than allowed."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from contracts import tables
from contracts.run_file import Run, Stage
from frameworks.adapter import Paths
from frameworks.run_settings import prompts_per_step, refuse
from recipes import rewards
from system.errors import UserError
from tasks import prompts, registry

# What a reward hook has to know of the problem, beside the rendered prompt; `prefill` is the part of the assistant's
# turn that the prompt ends with.
QUESTION = ("problem_id", *rewards.COLUMNS, "prefill")
ROUNDING = 1e-9  # a whole number of problems stays one, whatever the division by its weight did


def rendered(run: Run, stage: Stage, paths: Paths, tokenizer: Any) -> list[dict[str, str]]:
    """The training set: for each problem the columns of QUESTION, and `prompt`, the text that the model continues.

    With `levels` in the run file only problems of these, as many of each as their weights allow.
    Prompts of more than `rollout.max_prompt_tokens` tokens are left out; a line of output says how many.

    Args:
        run: names the prompt (tasks/prompts.yaml).
        stage: names the limit and the batch.
        paths: `problems` is a table of contracts.tables.PROBLEM.
        tokenizer: of the model that is trained.

    Raises:
        UserError: fewer are left than a step needs.
    """
    prompt, longest = prompts.load(run.prompt), stage.rollout.get("max_prompt_tokens")
    questions = [
        {name: problem[name] for name in QUESTION if name in problem}
        | {"prefill": prompt.assistant, "prompt": prompt.render(problem["messages"][-1]["content"], tokenizer)}
        for problem in of_levels(run, stage, tables.read(paths.problems, tables.PROBLEM).to_pylist())
    ]
    found = [one for one in questions if longest is None or len(tokenizer(one["prompt"])["input_ids"]) <= longest]
    if left_out := len(questions) - len(found):
        print(f"{left_out} of {len(questions)} prompts are longer than max_prompt_tokens ({longest}): left out")
    needed = prompts_per_step(run, stage)
    if len(found) < needed:
        allowed = "" if longest is None else f" of at most {longest} tokens"
        raise UserError(
            f"{paths.problems.name} has {len(found)} prompts{allowed}, a step needs {needed}; "
            "raise rollout.max_prompt_tokens, or sample fewer prompts per step"
        )
    return found


def of_levels(run: Run, stage: Stage, problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The problems of the stage's levels in the order of the table, those of a level drawn with a fixed seed.

    Args:
        run: for messages.
        stage: names levels with weights w; of level i there are c·wᵢ problems, c as large as all levels allow.
        problems: rows of contracts.tables.PROBLEM.

    Raises:
        UserError: there is no problem of a level.
    """
    if not stage.levels:
        return problems
    own = [registry.get(row["task"]).level(json.loads(row["meta"] or "{}")) for row in problems]
    there, weights = Counter(own), {str(one["level"]): float(one["weight"]) for one in stage.levels}
    if missing := [level for level in weights if not there[level]]:
        known = ", ".join(sorted(str(level) for level in there if level is not None)) or "none"
        text = f": {stage.dataset} has no problem of level {missing[0]}; its levels are: {known}"
        raise refuse(run, "levels", text, "unknown-level")
    share = min(there[level] / weight for level, weight in weights.items())
    chosen: list[int] = []
    for level, weight in weights.items():
        places = [place for place, found in enumerate(own) if found == level]
        chosen += random.Random(0).sample(places, max(1, int(share * weight + ROUNDING)))
    return [problems[place] for place in sorted(chosen)]


def beginning_of_text(tokenizer: Any) -> str:
    """What the tokenizer puts before every text, such as a beginning-of-text token, for trainers that leave it out."""
    return str(tokenizer.decode(tokenizer("")["input_ids"]))

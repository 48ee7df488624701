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


def render_prompts(run: Run, stage: Stage, paths: Paths, tokenizer: Any) -> list[dict[str, str]]:
    """The training set: for each problem the columns of QUESTION, and `prompt`, the text that the model continues.

    With `levels` in the run file only problems of these, as many of each as their weights allow.
    Prompts of more than `rollout.max_prompt_tokens` tokens are left out; a line of output says how many.

    Args:
        run: names the prompt (tasks/prompts.yaml).
        stage: names the limit and the batch.
        paths: `problems` is a table of contracts.tables.PROBLEM.
        tokenizer: of the model that is trained.

    Raises:
        UserError: fewer are left than a step needs, the model's chat template does not take the prompt, or its
            tokenizer adds an end token.
    """
    prompt, longest = prompts.load(run.prompt), stage.rollout.get("max_prompt_tokens")
    problems = select_levels(run, stage, tables.read(paths.problems, tables.PROBLEM).to_pylist())
    contents = [problem["messages"][-1]["content"] for problem in problems]
    texts = prompt.render_all(contents, tokenizer, run.chat_template_kwargs)
    questions = [
        {name: problem[name] for name in QUESTION if name in problem} | {"prefill": prompt.assistant, "prompt": text}
        for problem, text in zip(problems, texts, strict=True)
    ]
    for question in questions[:1]:
        prompts.check_tokens(question["prompt"], tokenizer)
    short_enough = [
        question
        for question in questions
        if longest is None or len(tokenizer(question["prompt"])["input_ids"]) <= longest
    ]
    if left_out := len(questions) - len(short_enough):
        print(f"{left_out} of {len(questions)} prompts are longer than max_prompt_tokens ({longest}): left out")
    needed = prompts_per_step(run, stage)
    if len(short_enough) < needed:
        allowed = "" if longest is None else f" of at most {longest} tokens"
        raise UserError(
            f"{paths.problems.name} has {len(short_enough)} prompts{allowed}, a step needs {needed}; "
            "raise rollout.max_prompt_tokens, or sample fewer prompts per step",
            code="too-few-prompts",
            prompts=len(short_enough),
            needed=needed,
        )
    return short_enough


def select_levels(run: Run, stage: Stage, problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The problems of the stage's levels in the order of the table, those of a level sampled with a fixed seed.

    Args:
        run: for messages.
        stage: names levels with weights w; of level i there are c·wᵢ problems, c as large as all levels allow.
        problems: rows of contracts.tables.PROBLEM.

    Raises:
        UserError: there is no problem of a level.
    """
    if not stage.levels:
        return problems
    levels = [registry.get(row["task"]).level(json.loads(row["meta"] or "{}")) for row in problems]
    available, weights = Counter(levels), {str(one["level"]): float(one["weight"]) for one in stage.levels}
    if missing := [level for level in weights if not available[level]]:
        known = ", ".join(sorted(str(level) for level in available if level is not None)) or "none"
        text = f": {stage.dataset} has no problem of level {missing[0]}; its levels are: {known}"
        raise refuse(run, "levels", text, "unknown-level")
    share = min(available[level] / weight for level, weight in weights.items())
    chosen: list[int] = []
    for level, weight in weights.items():
        of_level = [index for index, own_level in enumerate(levels) if own_level == level]
        chosen += random.Random(0).sample(of_level, max(1, int(share * weight + ROUNDING)))
    return [problems[index] for index in sorted(chosen)]


def beginning_of_text(tokenizer: Any) -> str:
    """What the tokenizer puts before every text, such as a beginning-of-text token, for trainers that leave it out."""
    return str(tokenizer.decode(tokenizer("")["input_ids"]))

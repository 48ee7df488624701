"""The questions of a stage as every adapter gives them to its framework: rendered, and not longer than allowed."""

from __future__ import annotations

from typing import Any

from contracts import tables
from contracts.errors import UserError
from contracts.run_file import Run, Stage
from frameworks.adapter import Paths
from frameworks.settings import prompts_per_step
from recipes import rewards
from tasks import prompts

# What a reward hook has to know of the problem, beside the rendered prompt; `prefill` is the part of the assistant's
# turn that the prompt ends with.
QUESTION = ("problem_id", *rewards.COLUMNS, "prefill")


def rendered(run: Run, stage: Stage, paths: Paths, tokenizer: Any) -> list[dict[str, str]]:
    """The training set: for each problem the columns of QUESTION, and `prompt`, the text that the model continues.

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
        for problem in tables.read(paths.problems, tables.PROBLEM).to_pylist()
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


def beginning_of_text(tokenizer: Any) -> str:
    """What the tokenizer puts before every text, such as a beginning-of-text token, for trainers that leave it out."""
    return str(tokenizer.decode(tokenizer("")["input_ids"]))

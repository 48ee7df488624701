"""The prompts of a stage as every adapter gives them to its framework: rendered, and not longer than allowed."""

from __future__ import annotations

from typing import Any

from contracts import tables
from contracts.errors import UserError
from contracts.run_file import Run, Stage
from frameworks.adapter import Paths, updates_per_step
from tasks import prompts


def rendered(run: Run, stage: Stage, paths: Paths, tokenizer: Any) -> list[tuple[dict[str, Any], str]]:
    """Each problem of the training set (a row of contracts.tables.PROBLEM) with the text that the model continues.

    Prompts of more than `rollout.max_prompt_tokens` tokens are left out, and counted in a line of output.

    Raises:
        UserError: fewer are left than a step needs.
    """
    prompt, longest = prompts.load(run.prompt), stage.rollout.get("max_prompt_tokens")
    problems = tables.read(paths.problems, tables.PROBLEM).to_pylist()
    texts = [prompt.render(problem["messages"][-1]["content"], tokenizer) for problem in problems]
    found = [
        (problem, text)
        for problem, text in zip(problems, texts, strict=True)
        if longest is None or len(tokenizer(text)["input_ids"]) <= longest
    ]
    if left_out := len(problems) - len(found):
        print(f"{left_out} of {len(problems)} prompts are longer than max_prompt_tokens ({longest}): left out")
    needed = stage.batch["prompts_per_update"] * updates_per_step(run, stage)
    if len(found) < needed:
        allowed = "" if longest is None else f" of at most {longest} tokens"
        raise UserError(
            f"{paths.problems.name} has {len(found)} prompts{allowed}, a step needs {needed}; "
            "raise rollout.max_prompt_tokens, or take fewer prompts a step"
        )
    return found

r"""Whether a run's rewards look for the answer where its prompt asks for it: tried on a right, a wrong and no answer.

A reward that tells them apart in another form, and not in the prompt's, would pay nothing for what the prompt asks for:
`<answer>72</answer>` earns 0 from a reward that looks in `\boxed{…}`. Rewards that tell nothing apart anywhere (a
length, a share of digits) do not judge answers, and suit every prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from unittest.mock import patch

from contracts.run_file import Run
from grading.extraction import rule_of_prompt
from recipes import model_tokens, rewards
from system.errors import UserError
from system.yaml_files import display_path
from tasks import dataset_specs, prompts, registry, task_yaml
from tasks.problems import Problem

OTHER_FORMS = {
    "\\boxed{…}": "<think>…</think> \\boxed{{answer}}",
    "<answer>…</answer>": "<think>…</think> <answer>{answer}</answer>",
}
WRONG = "7351"
ANSWERS = ("72", "A")  # of tasks without a generator: of mathematics, and an option


def check_answer_is_seen(run: Run) -> None:
    """Raise UserError, with the file and the key, for rewards that do not look where the prompt asks for answers."""
    for stage in run.stages:
        task = dataset_specs.find(stage.dataset).spec["task"]
        form = _unseen_form(run.prompt, json.dumps(list(run.rewards)), str(task))
        if form is not None:
            suited = [name for name, prompt in prompts.library().items() if form[:3] in (prompt.answer or "")]
            raise UserError(
                f"{display_path(run.file)}: prompt: '{run.prompt}' asks for {prompts.load(run.prompt).answer!r}, but "
                f"the rewards look in {form}: name a prompt that asks for that, such as {suited[0]}, or a reward that "
                "takes `extraction` (recipes/rewards.py)",
                code="reward-does-not-see-answer",
                prompt=run.prompt,
                form=form,
            )


@cache
def _unseen_form(prompt_name: str, rewards_json: str, task: str) -> str | None:
    """The form in which the rewards see answers, where they see none in the prompt's; None where nothing is wrong."""
    prompt = prompts.load(prompt_name)
    if prompt.answer is None:
        return None
    weighted = rewards.load(json.loads(rewards_json), rule_of_prompt(prompt))
    problem = _example(task)
    with patch.object(model_tokens, "encode", str.encode), patch.object(model_tokens, "response_limit", lambda: 10**6):
        if _sees(weighted, problem, prompt.assistant + prompt.answer):
            return None
        return next((name for name, form in OTHER_FORMS.items() if _sees(weighted, problem, form)), None)


def _example(task: str) -> Problem:
    """A problem of the task, with an answer; for tasks without a generator, one that says nothing but its answer."""
    for entry in task_yaml.settings(task).get("datasets", {}).values():
        if isinstance(settings := entry.get("generate"), Mapping):
            arguments = {key: value for key, value in settings.items() if key not in ("rows", "split", "seed")}
            return registry.get(task).generate(rows=1, split="train", seed=0, **arguments)[0]
    usable = (gold for gold in ANSWERS if registry.get(task).verify(gold, gold, {}) == "correct")
    return Problem("", task, "", next(usable, ANSWERS[0]), {})


def _sees(weighted: rewards.Weighted, problem: Problem, form: str) -> bool:
    """Whether a reward tells a right answer in this form from a wrong one, or judges it otherwise than none."""
    right, wrong = (form.replace(prompts.ANSWER, answer) for answer in (problem.answer or "", WRONG))
    try:
        columns: Sequence[tuple[Any, ...]] = rewards.each_reward(weighted, [right, wrong, ""], [problem] * 3)
    except UserError:
        return True  # such as a program's sandbox: it cannot be tried on this machine
    return any(
        (one.value, one.verdict) != (other.value, other.verdict)
        or (one.verdict is not None and one.verdict != none.verdict)
        for one, other, none in zip(*columns, strict=True)
    )

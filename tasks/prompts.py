"""Prompts by name, and how one is put around a question: the same text for training and for evaluation.

They stand in tasks/prompts.yaml, and those that only one task uses in its task.yaml, under `prompts`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from system.errors import UserError
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from tasks import task_yaml

THINK = "<think>"
ANSWER = "{answer}"
FORMS = ("\\boxed", "<answer>")  # a prompt with one of these in its words has to say where its answer stands
PREFILLED = re.compile(rf"{THINK}\s*\Z")
FILE = Path(__file__).with_suffix(".yaml")


@dataclass(frozen=True)
class Prompt:
    """One prompt; the fields are described at the head of tasks/prompts.yaml."""

    name: str
    source: str
    user: str
    system: str | None = None
    assistant: str = ""
    raw: bool = False
    answer: str | None = None

    def completion(self, answer: str) -> str:
        """An assistant's turn, from `assistant` on, in the form that the prompt asks for; UserError without one."""
        if self.answer is None:
            raise UserError(
                f"prompt '{self.name}' asks for no form of answer: state `answer`, or name another prompt",
                code="prompt-without-answer-form",
                prompt=self.name,
            )
        return self.assistant + self.answer.replace(ANSWER, answer)

    def text_fields(self) -> dict[str, Any]:
        """The fields that decide the text."""
        return {"system": self.system, "user": self.user, "assistant": self.assistant, "raw": self.raw}

    def messages(self, question: str) -> list[dict[str, str]]:
        """The messages before the assistant's turn."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.user.replace("{question}", question)}]

    def render(self, question: str, tokenizer: Any | None) -> str:
        """The text that the model continues; it ends with `assistant`, the given part of the model's turn.

        The tokenizer's encoding of it is the prompt's tokens: a beginning-of-text token that the tokenizer adds itself
        is removed where the chat template writes one too. Without a tokenizer, the messages are paragraphs.

        A `<think>` with which the template begins the assistant's turn is removed where the prompt asks the model to
        write it, as open-r1 does for DeepSeek-R1's distilled models: with it, no completion has the form asked for.
        """
        if self.raw or tokenizer is None:
            return "\n\n".join(message["content"] for message in self.messages(question)) + self.assistant
        text: str = tokenizer.apply_chat_template(self.messages(question), tokenize=False, add_generation_prompt=True)
        if tokenizer.bos_token and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]:
            text = text.removeprefix(tokenizer.bos_token)
        if THINK in " ".join(message["content"] for message in self.messages("")):
            text = PREFILLED.sub("", text)
        return text + self.assistant


def files() -> list[str]:
    """The files with prompts, relative to the project's folder."""
    return ["tasks/prompts.yaml", *(f"tasks/{task}/task.yaml" for task in task_yaml.task_names())]


@cache
def entries() -> dict[str, dict[str, Any]]:
    """All prompts as they are written; UserError if a name occurs twice."""
    by_name = read_yaml(FILE)
    for task in task_yaml.task_names():
        for name, entry in task_yaml.settings(task).get("prompts", {}).items():
            if name in by_name:
                raise UserError(
                    f"tasks/{task}/task.yaml: there is another prompt '{name}'; rename one of them",
                    code="repeated-name",
                    name=name,
                )
            by_name[name] = entry
    return by_name


@cache
def library() -> dict[str, Prompt]:
    """All prompts by name; UserError if one lacks a field, or has another one."""
    by_name = {}
    for name, entry in entries().items():
        try:
            by_name[name] = Prompt(name=name, **entry)
        except TypeError:
            raise UserError(
                f"prompt '{name}' should have the fields described at the head of tasks/prompts.yaml, but is {entry}",
                code="unknown-prompt-field",
                prompt=name,
            ) from None
        _check_answer(by_name[name])
    return by_name


def prompts_of_task(task: str) -> list[str]:
    """The prompts that only this task uses."""
    return list(task_yaml.settings(task).get("prompts", {}))


def task_of_prompt(name: str) -> str | None:
    """The task whose own prompt this is; None for one that any task may use."""
    return next((task for task in task_yaml.task_names() if name in prompts_of_task(task)), None)


def _check_answer(prompt: Prompt) -> None:
    """Raise UserError for a prompt whose words ask for a form of answer that it does not state."""
    asks = any(form in f"{prompt.system}{prompt.user}" for form in FORMS)
    if (asks and prompt.answer is None) or (prompt.answer is not None and ANSWER not in str(prompt.answer)):
        raise UserError(
            f"prompt '{prompt.name}' should state the form of its answer, with {ANSWER} where that stands: "
            f'`answer: "… <answer>{ANSWER}</answer>"` or `answer: "… \\\\boxed{{{ANSWER}}}"`',
            code="prompt-without-answer-form",
            prompt=prompt.name,
        )


def load(name: str) -> Prompt:
    """The prompt of this name; UserError with the nearest names if there is none."""
    if name not in library():
        raise unknown("prompt", name, library())
    return library()[name]

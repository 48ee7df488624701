"""Prompts by name, and how one is put around a question: the same text for training and for evaluation.

They stand in tasks/prompts.yaml, and those that only one task uses in its task.yaml, under `prompts`.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from contracts import chat_template
from system import bounded_fork
from system.errors import UserError
from system.text_safety import one_line
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from tasks import task_yaml

THINK = "<think>"
ANSWER = "{answer}"
FORMS = ("\\boxed", "<answer>")  # a prompt with one of these in its words has to say where its answer stands
OURS = frozenset({"messages", "tokenize", "add_generation_prompt", "return_tensors", "return_dict", "chat_template"})
PREFILLED = re.compile(rf"{THINK}\s*\Z")
QUESTION = "Is 2 < 3 & 'x' \"y\"?"  # with signs that a template may write otherwise
_TRIED = ""  # name of a prompt that is tried for the advice in an error
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

    def render(self, question: str, tokenizer: Any | None, variables: Mapping[str, Any] | None = None) -> str:
        """The text that the model continues; it ends with `assistant`, the given part of the model's turn.

        The tokenizer's encoding of it is the prompt's tokens: a beginning-of-text token that the tokenizer adds itself
        is removed where the chat template writes one too. Without a tokenizer, the messages are paragraphs.

        A `<think>` with which the template begins the assistant's turn is removed where the prompt asks the model to
        write it, as open-r1 does for DeepSeek-R1's distilled models: with it, no completion has the form asked for.

        Args:
            question: the problem.
            tokenizer: of the model, with its chat template.
            variables: of the chat template, such as enable_thinking (`chat_template_kwargs`).

        Raises:
            UserError: the chat template refuses or drops a message, or does not know a variable.
        """
        messages, variables = self.messages(question), dict(variables or {})
        if self.raw or tokenizer is None:
            return "\n\n".join(message["content"] for message in messages) + self.assistant
        template = str(tokenizer.chat_template)
        if unknown_ones := [
            one for one in variables if one in OURS or not re.search(rf"\b{re.escape(one)}\b", template)
        ]:
            why = "is given" if set(unknown_ones) & OURS else "does not use"
            raise UserError(
                f"chat_template_kwargs: the model's chat template {why} {', '.join(unknown_ones)}: leave it out",
                code="unknown-template-variable",
                names=unknown_ones,
            )
        try:
            text: str = tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **(chat_template.fixed_date() | variables)
            )
        except Exception as error:  # TemplateError, and whatever a template's own expressions raise
            why = str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
            why = one_line(why[: chat_template.MOST_MESSAGE])
            raise self._does_not_suit(f"refuses it ({why})", tokenizer, variables) from None
        if lost := [message["role"] for message in messages if message["content"].strip() not in text]:
            raise self._does_not_suit(f"leaves out its {lost[0]} message", tokenizer, variables)
        if tokenizer.bos_token and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]:
            text = text.removeprefix(tokenizer.bos_token)
        if THINK in " ".join(message["content"] for message in self.messages("")):
            text = PREFILLED.sub("", text)
        return text + self.assistant

    def render_all(
        self, questions: Sequence[str], tokenizer: Any | None, variables: Mapping[str, Any] | None = None
    ) -> list[str]:
        """As `render`, of many questions, in one fork with limits: a template may be hostile to some of them alone.

        Raises:
            UserError: as `render`, or the template takes too much time or memory, or writes too much.
        """

        def work() -> bytes:
            try:
                answer: Any = [self.render(question, tokenizer, variables) for question in questions]
            except UserError as error:
                answer = {"sentence": str(error), "code": error.code, **error.facts}
            return json.dumps(answer).encode()

        try:
            answer = json.loads(bounded_fork.call(work, items=len(questions)))
        except bounded_fork.PastLimit as error:
            raise UserError(
                f"prompt '{self.name}': the model's chat template {error} on {len(questions)} questions: use another "
                "model, or correct its template",
                code="prompt-refused-by-template",
            ) from None
        if isinstance(answer, dict):
            raise UserError(answer.pop("sentence"), **answer)
        texts: list[str] = answer
        return texts

    def _does_not_suit(self, why: str, tokenizer: Any, variables: Mapping[str, Any]) -> UserError:
        """The error for a prompt that a chat template cannot render, with prompts for any task that it can."""
        if self.name == _TRIED:
            return UserError(why, code="prompt-refused-by-template")
        suited = []
        for name, prompt in library().items():
            if not prompt.raw and task_of_prompt(name) is None:
                with contextlib.suppress(UserError):
                    replace(prompt, name=_TRIED).render(QUESTION, tokenizer, variables)
                    suited.append(prompt)
        places = [form in (self.answer or "") for form in FORMS]
        same = [one.name for one in suited if [form in (one.answer or "") for form in FORMS] == places]
        alike = same or [prompt.name for prompt in suited]
        return UserError(
            f"prompt '{self.name}': the model's chat template {why}: use a prompt that it takes, such as "
            f"{', '.join(alike[:5]) or 'a raw one'}, or another model",
            code="prompt-refused-by-template",
            prompt=self.name,
            suited=alike,
        )


def check_tokens(text: str, tokenizer: Any) -> None:
    """Raise UserError where a tokenizer adds more to a rendered prompt than one token at its beginning.

    An end token after the prompt tells the model that its turn is over before it begins; trainers that take a text's
    tokens apart put it elsewhere.
    """
    whole, added = tokenizer(text)["input_ids"], tokenizer("")["input_ids"]
    if added and whole[-1:] == added[-1:] and (len(added) > 1 or whole[:1] != added):
        end = tokenizer.decode(whole[-1:])
        raise UserError(
            f"the model's tokenizer adds {end!r} after every prompt: set add_eos_token to false in its "
            "tokenizer_config.json, or remove the token from post_processor in its tokenizer.json",
            code="tokenizer-adds-end-token",
            token=end,
        )
    if added and whole[:2] == 2 * added[:1]:
        raise UserError(
            f"prompts begin with {tokenizer.decode(added)!r} twice, from the tokenizer and from the prompt: set "
            "add_bos_token to false in its tokenizer_config.json",
            code="repeated-beginning-token",
        )


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

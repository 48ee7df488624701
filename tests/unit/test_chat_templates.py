"""Prompts are checked on chat templates and tokenizers before an engine or a training starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from contracts import chat_template
from contracts.chat_template import Renderer
from tasks import prompts
from tests.user_errors import refused

TURNS = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</{{ m.role }}>{% endfor %}<assistant>"
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + TURNS
DROPS_SYSTEM = TURNS.replace("{% for m in messages %}", "{% for m in messages if m.role != 'system' %}")
DATED = "{{ strftime_now('%d %b %Y') }}{{ strftime_now('%H:%M') }}" + TURNS
LLAMA = (
    "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}{{ date_string }}"
    + TURNS
)
SWITCH = TURNS + "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"


@pytest.mark.parametrize("template", [DATED, LLAMA])
def test_a_template_that_writes_the_date_writes_always_the_same(template: str) -> None:
    text = prompts.load("boxed").render("2+3?", Renderer(template))
    assert text.startswith("26 Jul 2024") and chat_template.problem(template) == ""
    assert chat_template.recorded_date(template) == "2024-07-26" and chat_template.recorded_date(TURNS) is None


@pytest.mark.parametrize("part", ["{{ [1, 2, 3] | random }}", "{{ lipsum(1) }}"])
def test_a_template_that_draws_is_refused(part: str) -> None:
    assert "something else each time" in chat_template.problem(part + TURNS)


@pytest.mark.slow
@pytest.mark.parametrize("template", [NO_SYSTEM, DROPS_SYSTEM])
def test_a_template_that_refuses_or_drops_a_message_names_prompts_that_it_takes(template: str) -> None:
    with refused("prompt-refused-by-template", prompt="boxed", suited=["deepscaler", "lighteval-boxed", "demystify"]):
        prompts.load("boxed").render("2+3?", Renderer(template))
    assert "2+3?" in prompts.load("demystify").render("2+3?", Renderer(template))


def test_variables_of_the_template() -> None:
    prompt = prompts.load("plain")
    assert prompt.render("2+3?", Renderer(SWITCH), {"enable_thinking": False}).endswith("<think></think>")
    assert not prompt.render("2+3?", Renderer(SWITCH)).endswith("</think>")
    for name in ("enable_thinkin", "messages", "add_generation_prompt"):
        with refused("unknown-template-variable", names=[name]):
            prompt.render("2+3?", Renderer(SWITCH), {name: False})
    assert prompt.render("2+3?", Renderer(LLAMA), {"date_string": "1 Jan 2025"}).startswith("1 Jan 2025")


@pytest.mark.slow
def test_a_template_that_writes_signs_otherwise_is_found_by_the_question_that_is_tried() -> None:
    with refused("prompt-refused-by-template", prompt="plain"):
        prompts.load("plain").render(prompts.QUESTION, Renderer(TURNS.replace("trim", "e")))


class Tokenizer:
    """Letters are tokens, between those that it adds itself."""

    def __init__(self, before: Sequence[str] = (), after: Sequence[str] = ()) -> None:
        self.before, self.after = before, after

    def __call__(self, text: str) -> dict[str, Any]:
        return {"input_ids": [*self.before, *text, *self.after]}

    def decode(self, tokens: Sequence[str]) -> str:
        return "".join(tokens)


def test_tokens_at_the_ends_are_those_of_the_template_once() -> None:
    for tokenizer in (Tokenizer(), Tokenizer("^")):
        prompts.check_tokens("2+3?", tokenizer)
    for tokenizer in (Tokenizer("", "$"), Tokenizer("^", "$"), Tokenizer("^", "^")):
        with refused("tokenizer-adds-end-token"):
            prompts.check_tokens("2+3?", tokenizer)
    with refused("repeated-beginning-token"):
        prompts.check_tokens("^2+3?", Tokenizer("^"))

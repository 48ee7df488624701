"""Chat templates, compiled and tried without transformers, whose import takes seconds.

A template is a program of whoever made the model: it is rendered in a fork with limits (system.bounded_fork), here
before an engine or a trainer renders it without.

Templates that write the date (Llama 3.2's, gpt-oss's) always get the same one, DATE: samples of two days are then
answers to the same prompt, and a training continues after midnight.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from system import bounded_fork

MOST_MESSAGE = 200  # characters of what a template says of itself
PROBE = "2+3 and nothing else"
DATE = datetime(2024, 7, 26, tzinfo=UTC)  # the one that Llama 3's template has where it is not told another
DATED = re.compile(r"\b(?:strftime_now|date_string)\b")


class CannotRender(TemplateError):
    """A template's own expressions fail on a message, or it takes too much time or memory, or writes too much."""


class _Generation(Extension):
    """transformers' block `{% generation %}`, which marks the model's own text and shows its content."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def fixed_date() -> dict[str, Any]:
    """What a template is given in place of today's date."""
    return {"strftime_now": DATE.strftime, "date_string": DATE.strftime("%d %b %Y")}


def recorded_date(template: str | None) -> str | None:
    """The date that prompts of this template have, as records state it; None for a template without one."""
    return DATE.date().isoformat() if DATED.search(template or "") else None


class Renderer:
    """A chat template in place of a tokenizer, for `tasks.prompts.Prompt.render`.

    Args:
        template: the text of the chat template.
    """

    bos_token = None

    def __init__(self, template: str) -> None:
        """Keep the template."""
        self.chat_template = template

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, str]], *, tokenize: bool = False, **variables: Any
    ) -> str:
        """The messages as text; TemplateError where the template refuses them."""
        return _render(self.chat_template, messages, **variables)


def of_folder(folder: Path, content: Mapping[str, Any]) -> list[tuple[Path, str]]:
    """The chat templates of a model folder, with the file of each.

    Args:
        folder: a model in Hugging Face format.
        content: its JSON files, by name without .json.
    """
    jinja = [file for file in sorted(folder.glob("chat_template*.jinja")) if file.is_file()]
    templates = [(file, file.read_text(encoding="utf-8", errors="replace")) for file in jinja]
    for name in ("chat_template", "tokenizer_config"):
        stated = content.get(name, {}).get("chat_template") or []
        listed = (
            [stated] if isinstance(stated, str) else [one.get("template") for one in stated if isinstance(one, dict)]
        )
        templates += [(folder / f"{name}.json", text) for text in listed if isinstance(text, str)]
    return templates


def problem(template: str) -> str:
    """What is wrong with a chat template; empty if it renders a user's message."""
    try:
        rendered = _render(template, add_generation_prompt=True)
        if changing := _bounded(lambda: _changing_parts(template)):
            return f"writes something else each time ({changing}), so that no two prompts are the same"
    except CannotRender as error:
        return f"cannot render a user's message ({error})"
    except TemplateError as error:
        return f"is cut or damaged ({error})"
    return "" if PROBE in rendered else "is cut or damaged (a user's message is not in what it renders)"


def opens_a_turn(template: str) -> bool:
    """Whether add_generation_prompt adds anything to the rendered text, or is needed to render it."""
    try:
        return _render(template, add_generation_prompt=True) != _render(template, add_generation_prompt=False)
    except TemplateError:
        return True


def end_of_turn(template: str, answer: str, **variables: Any) -> str:
    """What a chat template writes after the model's turn; empty where it does not show such a turn, or fails."""
    turns = [{"role": "user", "content": PROBE}, {"role": "assistant", "content": answer}]
    try:
        text = _render(template, turns, add_generation_prompt=False, **variables)
    except TemplateError:
        return ""
    return text.rpartition(answer)[2].lstrip()


def _bounded(work: Callable[[], str]) -> str:
    """What `work` on a template returns, in a fork with limits; TemplateError where it fails or passes them."""

    def answer() -> bytes:
        try:
            kind, text = "text", work()
        except TemplateError as error:
            kind, text = "refused", str(error)[:MOST_MESSAGE]
        except Exception as error:  # whatever a template's own expressions raise
            kind, text = "failed", f"{type(error).__name__}: {error}"[:MOST_MESSAGE]
        return f"{kind}\n{text}".encode("utf-8", "surrogatepass")

    try:
        kind, _, text = bounded_fork.call(answer).decode("utf-8", "surrogatepass").partition("\n")
    except bounded_fork.PastLimit as error:
        raise CannotRender(f"it {error}") from None
    if kind == "text":
        return text
    raise (TemplateError if kind == "refused" else CannotRender)(text)


def _changing_parts(template: str) -> str:
    """What draws at random in a template, of Jinja's own filters and functions."""
    parsed = _environment().parse(template)
    filters = {"random filter" for one in parsed.find_all(nodes.Filter) if one.name == "random"}
    functions = {"lipsum" for one in parsed.find_all(nodes.Name) if one.name == "lipsum"}
    return ", ".join(sorted(filters | functions))


def _environment() -> Environment:
    environment: Environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, default=str)
    return environment


def _render(
    template: str,
    messages: Sequence[Mapping[str, str]] = ({"role": "user", "content": PROBE},),
    *,
    add_generation_prompt: bool,
    **variables: Any,
) -> str:
    """As transformers renders it (transformers.utils.chat_template_utils), in a fork with limits."""

    def fail(message: str) -> NoReturn:
        raise TemplateError(message)

    tokens = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
    variables = {"tools": None, "documents": None, **tokens, **fixed_date(), **variables}
    variables |= {"messages": list(messages), "add_generation_prompt": add_generation_prompt, "raise_exception": fail}
    return _bounded(lambda: _environment().from_string(template).render(variables))

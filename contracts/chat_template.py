"""Chat templates, compiled and tried without transformers, whose import takes seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

PROBE = "2+3 and nothing else"


class _Generation(Extension):
    """transformers' block `{% generation %}`, which marks the model's own text and shows its content."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


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


def is_in_folder(folder: Path) -> bool:
    """Whether the tokenizer of a model folder has a chat template."""
    files = [file for name in ("chat_template", "tokenizer_config") if (file := folder / f"{name}.json").is_file()]
    return bool(of_folder(folder, {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}))


def problem(template: str) -> str:
    """What is wrong with a chat template; empty if it renders a user's message."""
    try:
        rendered = _render(template, add_generation_prompt=True)
    except TemplateError as error:
        return f"is cut or damaged ({error})"
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        return f"cannot render a user's message ({error})"
    return "" if PROBE in rendered else "is cut or damaged (a user's message is not in what it renders)"


def opens_a_turn(template: str) -> bool:
    """Whether add_generation_prompt adds anything to the rendered text."""
    return _render(template, add_generation_prompt=True) != _render(template, add_generation_prompt=False)


def _render(template: str, *, add_generation_prompt: bool) -> str:
    """As transformers renders it (transformers.utils.chat_template_utils)."""
    environment: Environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, default=str)

    def fail(message: str) -> NoReturn:
        raise TemplateError(message)

    tokens = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return environment.from_string(template).render(
        messages=[{"role": "user", "content": PROBE}],
        add_generation_prompt=add_generation_prompt,
        raise_exception=fail,
        strftime_now=lambda form: "",
        tools=None,
        documents=None,
        **tokens,
    )

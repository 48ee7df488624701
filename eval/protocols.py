"""Evaluation protocols by name: prompt, decoding, and answer extraction. The values are in eval/protocols.yaml."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from contracts.run_file import SCHEMAS, Validator
from grading.extraction import RULES, rule_of_prompt
from system.errors import UserError
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from tasks import prompts

PROTOCOLS = Path(__file__).with_name("protocols.yaml")
DEFAULT = "greedy-boxed"  # where lm-eval's command line names none
EXTRACTIONS = tuple(RULES)


@dataclass(frozen=True)
class Protocol:
    """One evaluation protocol; the fields are described at the head of eval/protocols.yaml."""

    name: str
    source: str
    prompt: str
    chat_template: bool
    temperature: float
    top_p: float
    max_tokens: int
    repeats: int | dict[str, int]
    stop: tuple[str, ...]
    extraction: str
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    top_k: int = 0  # 0: all

    def repeats_of(self, benchmark: str) -> int:
        """Samples per problem of this benchmark."""
        return self.repeats if isinstance(self.repeats, int) else self.repeats.get(benchmark, self.repeats["default"])

    def needs_chat_template(self) -> bool:
        """Whether the model's tokenizer must have one; raw prompts are sent without."""
        return self.chat_template and not prompts.load(self.prompt).raw

    def decoding(self) -> dict[str, Any]:
        """The fields that decide a completion: not the name, the source, or how answers are extracted."""
        fields = dataclasses.asdict(self)
        if not self.chat_template_kwargs:
            del fields["chat_template_kwargs"]
        if not self.top_k:
            del fields["top_k"]
        return {key: fields[key] for key in fields if key not in ("name", "source", "repeats", "extraction")}


def names() -> list[str]:
    """All protocols."""
    return list(read_yaml(PROTOCOLS))


# The fields that can be overridden.
_FIELDS: dict[str, Any] = read_yaml(SCHEMAS / "protocol.schema.yaml")["properties"]
_FIELDS["extraction"] |= {"description": f"one of {', '.join(EXTRACTIONS)}", "enum": list(EXTRACTIONS)}


def load(name: str, overrides: Mapping[str, Any] | None = None) -> Protocol:
    """The protocol of this name with some fields replaced; its answers are extracted where its prompt asks for them.

    Raises:
        UserError: there is no such protocol, field or prompt, or a value is not allowed.
    """
    protocols = read_yaml(PROTOCOLS)
    if name not in protocols:
        raise unknown("evaluation protocol", name, protocols)
    written = protocols[name]
    fields = {
        "chat_template_kwargs": {},
        "top_k": 0,
        **(written if isinstance(written, dict) else {}),
        **(overrides or {}),
    }
    if missing := [key for key in ("source", *_FIELDS) if key not in fields]:
        raise UserError(
            f"evaluation protocol '{name}' should have the fields {', '.join(missing)} and has not: add them",
            code="missing-field",
            fields=missing,
        )
    for key, value in fields.items():
        if key == "source":
            continue
        if key not in _FIELDS:
            raise UserError(
                f"evaluation protocol '{name}' has no field '{key}'; the fields are: {', '.join(_FIELDS)}",
                code="unknown-field",
                key=key,
            )
        if not Validator(_FIELDS[key]).is_valid(value):
            needed = _FIELDS[key]["description"]
            raise UserError(
                f"'{key}' of evaluation protocol '{name}' must be {needed}, not {value!r}",
                code="value-not-allowed",
                key=key,
            )
    if "extraction" not in (overrides or {}):
        fields["extraction"] = rule_of_prompt(prompts.load(fields["prompt"]), fields["extraction"])
    return Protocol(name=name, **{**fields, "stop": tuple(fields["stop"])})


def parse_overrides(settings: Iterable[str]) -> dict[str, Any]:
    """Command-line settings `key=value`, values in YAML, as a dictionary: ["repeats=4"] gives {"repeats": 4}."""
    overrides = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise UserError(
                f"--set needs key=value, such as temperature=0.6, not '{setting}'",
                code="malformed-option",
                option="--set",
            )
        try:
            overrides[key.strip()] = yaml.safe_load(text)
        except yaml.YAMLError:
            raise UserError(
                f"--set {key}=… needs a YAML value, not '{text}'", code="malformed-option", option="--set"
            ) from None
    return overrides


def add_extraction_option(parser: argparse.ArgumentParser, default: str | None, help: str) -> None:
    """Add `--extraction` to a command line.

    Args:
        parser: of the command.
        default: the rule, one of EXTRACTIONS, or None for the protocol's own.
        help: what the option does.
    """
    parser.add_argument("--extraction", default=default, choices=EXTRACTIONS, help=help)

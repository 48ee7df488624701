"""Evaluation protocols by name: how a benchmark is asked, decoded and read. The values are in eval/protocols.yaml."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from contracts.errors import UserError
from tasks import prompts

PROTOCOLS = Path(__file__).with_name("protocols.yaml")
FALLBACKS = ("none", "last-number", "answer-line", "answer-tag")  # as in grading/extraction.py


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
    fallback: str

    def repeats_of(self, benchmark: str) -> int:
        """Samples per problem of this benchmark."""
        return self.repeats if isinstance(self.repeats, int) else self.repeats.get(benchmark, self.repeats["default"])

    def needs_chat_template(self) -> bool:
        """Whether the model's tokenizer has to have one: raw prompts are asked without."""
        return self.chat_template and not prompts.load(self.prompt).raw

    def decoding(self) -> dict[str, Any]:
        """What decides a completion; the name, the source and how answers are read do not."""
        fields = dataclasses.asdict(self)
        return {key: fields[key] for key in fields if key not in ("name", "source", "repeats", "fallback")}


def _read(path: Path) -> dict[str, dict[str, Any]]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def names() -> list[str]:
    """The protocols that there are."""
    return list(_read(PROTOCOLS))


def _number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


# For each field that can be overridden: what it has to be, and a test of it.
_FIELDS: dict[str, tuple[str, Any]] = {
    "prompt": ("the name of a prompt", lambda v: isinstance(v, str)),
    "chat_template": ("true or false", lambda v: isinstance(v, bool)),
    "temperature": ("a number from 0 to 2", lambda v: _number(v, 0, 2)),
    "top_p": ("a number above 0, up to 1", lambda v: _number(v, 1e-6, 1)),
    "max_tokens": ("a whole number of at least 1", _count),
    "repeats": (
        "a whole number of at least 1, or one for each benchmark and a `default`",
        lambda v: _count(v) or (isinstance(v, dict) and "default" in v and all(_count(n) for n in v.values())),
    ),
    "stop": ("a list of non-empty strings", lambda v: isinstance(v, list) and all(isinstance(s, str) and s for s in v)),
    "fallback": (f"one of {', '.join(FALLBACKS)}", lambda v: v in FALLBACKS),
}


def load(name: str, overrides: Mapping[str, Any] | None = None) -> Protocol:
    """The protocol of this name, some fields replaced; unknown names and fields and bad values are UserErrors."""
    protocols = _read(PROTOCOLS)
    if name not in protocols:
        raise UserError(f"there is no evaluation protocol '{name}'; there are: {', '.join(protocols)}")
    fields = {**protocols[name], **(overrides or {})}
    for key, value in fields.items():
        if key == "source":
            continue
        if key not in _FIELDS:
            raise UserError(f"evaluation protocol '{name}' has no field '{key}'; the fields are: {', '.join(_FIELDS)}")
        needed, holds = _FIELDS[key]
        if not holds(value):
            raise UserError(f"'{key}' of evaluation protocol '{name}' has to be {needed}, not {value!r}")
    prompts.load(fields["prompt"])
    return Protocol(name=name, **{**fields, "stop": tuple(fields["stop"])})


def parse_overrides(settings: Iterable[str]) -> dict[str, Any]:
    """Command-line settings `key=value`, the value in YAML, as a dictionary: ["repeats=4"] is {"repeats": 4}."""
    found = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set needs key=value, such as temperature=0.6, not '{setting}'")
        try:
            found[key.strip()] = yaml.safe_load(text)
        except yaml.YAMLError:
            raise UserError(f"--set {key}=… needs a YAML value, and '{text}' is none") from None
    return found

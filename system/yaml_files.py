"""Read the project's YAML files: each holds a mapping."""

from __future__ import annotations

import contextlib
import math
import pickle
import re
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from system.errors import ROOT, UserError

MOST_VALUES = 1_000_000
DEEP = 500  # levels; libyaml has no limit, and ends the process at some 50,000


class RepeatedKey(yaml.constructor.ConstructorError):
    """A mapping has a key twice with other values: YAML would take the last one without a word."""


class _Loader(yaml.SafeLoader):
    """Reads lm-eval's task files too: their `!function module.name` stays text."""


class _FastLoader(yaml.CSafeLoader):
    """The same by libyaml, in a tenth of the time."""


def _mapping(loader: yaml.SafeLoader | yaml.CSafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    """A mapping, whose keys each have one value; a merged one (`<<`) may be replaced."""
    written: dict[str, yaml.Node] = {}
    for key, value in ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)):
        before = written.setdefault(key.value, value)
        is_same = isinstance(value, yaml.ScalarNode) and (value.tag, value.value) == (before.tag, before.value)
        if before is not value and not is_same:
            raise RepeatedKey(None, None, f"the key {key.value} is there twice: delete one", key.start_mark)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


def _function_name(_: yaml.SafeLoader | yaml.CSafeLoader, node: yaml.Node) -> str:
    return str(node.value)


for loader in (_Loader, _FastLoader):
    loader.add_constructor("!function", _function_name)
    loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _may_be_deep(text: str) -> bool:
    """Whether brackets, or indents and dashes in one line, could make more than DEEP levels."""
    levels = accumulate(1 if bracket in "[{" else -1 for bracket in re.findall(r"[][{}]", text))
    return max(levels, default=0) > DEEP or max(map(len, text.split("\n"))) > 4 * DEEP


def _load(text: str) -> Any:
    if not _may_be_deep(text):
        with contextlib.suppress(yaml.YAMLError):  # the other says better in which line the error is
            return yaml.load(text, Loader=_FastLoader)
    return yaml.load(text, Loader=_Loader)


@lru_cache(maxsize=1000)
def _parsed(text: str) -> bytes:
    """What a text holds, pickled: each caller may change its own copy, and reads it in a tenth of the parser's time."""
    content = _load(text)
    if "&" in text and _written_out(content, {}) > MOST_VALUES:
        raise yaml.YAMLError(f"written out, its aliases (`*name`) are more than {MOST_VALUES:,} values")
    return pickle.dumps(content)


def _written_out(value: Any, sizes: dict[int, float]) -> float:
    """How many values a mapping or list holds if each alias is written out: a few lines may stand for billions."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in sizes:
        sizes[id(value)] = math.inf  # of one that holds itself
        parts = value.values() if isinstance(value, dict) else value
        sizes[id(value)] = 1 + sum(_written_out(part, sizes) for part in parts)
    return sizes[id(value)]


def display_path(file: Path) -> str:
    """The file's name for a message: relative to the project where it lies inside."""
    return str(file).removeprefix(f"{ROOT}/")


def read_yaml(file: Path) -> dict[str, Any]:
    """A YAML mapping; raises UserError with the line of a syntax error. The same text is parsed once per process."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{display_path(file)} does not exist", code="missing-file", path=str(file)) from None
    except UnicodeDecodeError:
        raise UserError(f"{display_path(file)} is not UTF-8 text; save it as UTF-8", code="not-utf8") from None
    return mapping_of_text(text, display_path(file))


def mapping_of_text(text: str, label: str) -> dict[str, Any]:
    """The mapping that a YAML text holds; see read_yaml_text."""
    content = read_yaml_text(text, label)
    if not isinstance(content, dict):
        raise UserError(f"{label} should hold keys and values, but holds {type(content).__name__}", code="invalid-yaml")
    return content


def read_yaml_text(text: str, label: str) -> Any:
    """What a YAML text holds.

    Args:
        text: the YAML.
        label: where it is from, for the error.

    Raises:
        UserError: it is no YAML, or has a key twice; the message has the line.
    """
    try:
        return pickle.loads(_parsed(text))
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise UserError(
            f"{label} is not valid YAML{where}: {problem}; fix it and run it again",
            code="repeated-key" if isinstance(error, RepeatedKey) else "invalid-yaml",
            line=mark.line + 1 if mark else None,
        ) from None

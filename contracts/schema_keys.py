"""The keys of run files, the configuration and protocols, from their schemas; the reference is made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from contracts.run_file import SCHEMAS
from system.yaml_files import read_yaml


@dataclass(frozen=True)
class Key:
    """A key of a YAML file.

    Attributes:
        name: dotted, such as batch.prompts_per_step; `[]` follows a list of mappings.
        title: what it means in a few words, which `crosszero translate` prints; empty if the description says it.
        description: what else is to know.
        values: which it may have.
    """

    name: str
    title: str
    description: str
    values: str

    @property
    def meaning(self) -> str:
        """Title and description as one text."""
        return "; ".join(filter(None, (self.title, self.description)))


def kind(schema: Mapping[str, Any]) -> str:
    """The values that a schema allows, in words."""
    if "const" in schema or "enum" in schema:
        return ", ".join(str(value).lower() if isinstance(value, bool) else str(value)
                         for value in schema.get("enum", [schema.get("const")]))  # fmt: skip
    if "anyOf" in schema:
        return " or ".join(map(kind, schema["anyOf"]))
    types = schema.get("type", "any")
    text = " or ".join(types) if isinstance(types, list) else str(types)
    if "items" in schema:
        text += f" of {kind(schema['items'])}"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return ", ".join([text, *(f"{sign} {schema[bound]:g}" for bound, sign in signs.items() if bound in schema)])


def walk(schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str = "") -> Iterator[Key]:
    """Every key of a schema and of the mappings in it.

    Args:
        schema: of an object with properties.
        definitions: what `$ref` names.
        prefix: of the names.
    """
    for name, written in schema["properties"].items():
        entry = {**definitions.get(written.get("$ref", "").removeprefix("#/$defs/"), {}), **written}
        yield Key(f"{prefix}{name}", entry.get("title", ""), entry.get("description", ""), kind(entry))
        if "properties" in entry:
            yield from walk(entry, definitions, f"{prefix}{name}.")
        elif "properties" in entry.get("items", {}):
            yield from walk(entry["items"], definitions, f"{prefix}{name}[].")


def schema_keys(name: str) -> list[Key]:
    """All keys of config/schemas/<name>.schema.yaml."""
    schema = read_yaml(SCHEMAS / f"{name}.schema.yaml")
    return list(walk(schema, schema.get("$defs", {})))


@cache
def run_keys() -> tuple[Key, ...]:
    """Keys of run files. Those of a scale are named without it, since all scales and stages have the same."""
    scale, keys = "full.", dict[str, Key]()
    for key in schema_keys("run"):
        inside = key.name.removeprefix(scale)
        if not key.name.startswith(("demo.", f"{scale}stages[]")) and inside not in keys:
            keys[inside] = Key(inside, key.title, key.description, key.values)
    return tuple(keys.values())

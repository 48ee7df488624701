"""The registry of differences as tables, for the documentation's generated page."""

from __future__ import annotations

from conformance.compare import REGISTRY
from system.markdown import table
from system.text_safety import Markdown
from system.yaml_files import read_yaml


def registry_tables() -> str:
    """The tables: what each release computes otherwise, and what it cannot express."""
    other, cannot = [], []
    for framework, entries in read_yaml(REGISTRY).items():
        for entry in entries:
            formulas = "; ".join(entry["formulas"])
            if "cannot" in entry:
                cannot.append((formulas, framework, entry["cannot"]))
            else:
                file, line, _ = entry["source"]
                location, agree = Markdown(f"`{file}:{line}`"), Markdown(entry["agree"])
                other.append((formulas, framework, entry["what"], location, agree))
    return (
        table(["formula", "framework", "what it computes", "source", "they agree with"], other)
        + "\nWhat a release has no settings for:\n\n"
        + table(["formula", "framework", "what it has"], cannot)
    )

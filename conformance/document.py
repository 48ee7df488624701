"""The registry of differences in docs/explanation/settings.md: `python -m conformance.document` writes it anew."""

from __future__ import annotations

from conformance.compare import REGISTRY
from system import durable
from system.errors import ROOT, UserError, run_command
from system.markdown import table
from system.text_safety import Markdown
from system.yaml_files import read_yaml

FILE = ROOT / "docs" / "explanation/settings.md"
START, END = "<!-- made of conformance/differences.yaml by python -m conformance.document -->", "<!-- end -->"


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


def with_registry(text: str) -> str:
    """The document with its part made anew; raises UserError where the marks of the part are missing."""
    if text.count(START) != 1 or text.count(END) != 1:
        raise UserError(
            f"docs/explanation/settings.md needs the lines {START} and {END}, once each; put them back",
            code="missing-marks",
        )
    before, _, rest = text.partition(START)
    return f"{before}{START}\n\n{registry_tables()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Command line."""
    durable.write_text(FILE, with_registry(FILE.read_text(encoding="utf-8")))
    print(FILE)


if __name__ == "__main__":
    run_command(main)

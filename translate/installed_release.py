"""What of the installed release differs from the one that runs, tables and the translator were written for.

    python -m translate.installed_release FRAMEWORK [--output FILE]

Runs in the framework's environment, and prints JSON, or writes it:

drifts      settings whose default runs rely on and that have another, with the runs; frameworks/<name>/defaults.yaml
unknown     settings that can make up an objective and that no list of ours knows
outdated    what command_parser.yaml says of the release and is not so
objectives  estimators and losses that the release registers
engines     as released_engines.json has them; null for a framework without
types       as released_types.json has them; null for a framework without
settings    those whose default changed since released_settings.json, those that are new, and those that are gone
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from frameworks import adapter, command_parser, release_defaults
from system import durable
from system.command_line import argument_parser
from system.errors import run_command
from translate import translation


def differences(framework: str) -> dict[str, Any]:
    """All of the above; needs the framework's environment."""
    parser, tables = adapter.load(framework).parser, command_parser.load(framework)
    released = parser.defaults()
    stored = release_defaults.stored_releases(framework)
    recorded = json.loads((release_defaults.FOLDER / framework / "released_settings.json").read_text(encoding="utf-8"))
    return {
        "drifts": [asdict(drift) for drift in release_defaults.drifts(framework, released)],
        "unknown": release_defaults.unknown_settings(framework, released),
        "outdated": translation.outdated_entries(tables, released),
        "objectives": parser.objectives(),
        "engines": stored.get("engines"),
        "types": stored.get("types"),
        "settings": changed_settings(recorded, stored["settings"], tables.is_machine),
    }


def changed_settings(
    before: Mapping[str, Any], after: Mapping[str, Any], is_machine: Callable[[str], bool]
) -> dict[str, Any]:
    """The settings of two releases that differ: `changed` with both defaults, `new` with its own, `gone` with its last.

    Args:
        before: defaults by setting, of the release that is recorded.
        after: of the installed one.
        is_machine: whether a setting is about machine, files and logs alone, whose defaults may be of this moment.
    """
    both = [name for name in sorted(before.keys() & after.keys()) if not is_machine(name)]
    return {
        "changed": {name: [before[name], after[name]] for name in both if before[name] != after[name]},
        "new": {name: after[name] for name in sorted(after.keys() - before.keys())},
        "gone": {name: before[name] for name in sorted(before.keys() - after.keys())},
    }


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("framework")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):
        text = json.dumps(differences(arguments.framework), default=release_defaults.storable)
    if arguments.output:
        durable.write_text(arguments.output, text)
    else:
        print(text)


if __name__ == "__main__":
    run_command(main)

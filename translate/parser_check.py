"""Have a framework's own parser read translated settings, in its environment: `python -m translate.parser_check NAME`.

Standard input is a JSON object: `common`, the keys, and `flags`, by setting its value and key.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from envs import build
from frameworks import adapter
from frameworks.command_settings import Flags
from system.errors import ROOT, UserError, run_command
from translate.rendering import as_run


def check_accepted(framework: str, common: Mapping[str, Any], flags: Flags) -> None:
    """Raise UserError unless the framework's own parser, in its environment, accepts settings.

    Args:
        framework: whose environment is built if it is missing.
        common: the keys.
        flags: by setting, its value and key.
    """
    try:
        build.build(framework, "cpu")
    except build.BuildError as error:
        raise UserError(str(error), code="environment-not-built", environment=framework) from None
    done = subprocess.run(
        [build.python(framework), "-m", "translate.parser_check", framework], cwd=ROOT, capture_output=True, text=True,
        input=json.dumps({"common": dict(common), "flags": flags}), check=False,
    )  # fmt: skip
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2] if done.stderr.strip() else f"status {done.returncode}"
        raise UserError(
            f"the parser of {framework} refuses the result ({reason.removeprefix('Error: ')}); nothing is printed",
            code="refused-by-target",
            framework=framework,
        )


def _without_braces(value: Any) -> Any:
    """A value whose shell variables are no references to other settings, as `${name}` is to Hydra."""
    if isinstance(value, list):
        return [_without_braces(item) for item in value]
    return re.sub(r"\$\{(\w+)\}", r"$\1", value) if isinstance(value, str) else value


def main() -> None:
    """Read the settings from standard input."""
    framework, content = sys.argv[1], json.load(sys.stdin)
    flags = {name: (_without_braces(value), key) for name, (value, key) in content["flags"].items()}
    adapter.load(framework).parser.accept(*as_run(content["common"], framework), flags)


if __name__ == "__main__":
    run_command(main)

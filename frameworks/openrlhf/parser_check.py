"""A stage's command, read by the parser and the assertions of the installed OpenRLHF, without Ray, GPU or weights."""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
import os
import re
import sys
import warnings
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import patch

from contracts.run_file import Run, Stage
from frameworks.command_settings import Flags
from frameworks.openrlhf.command import command_line, stated_settings
from frameworks.run_settings import refused_by_parser
from system.errors import UserError
from system.unknown_names import meant
from tasks import dataset_specs


def check(run: Run, stage: Stage) -> None:
    """Let OpenRLHF's parser and assertions read the rendered command."""
    accept(run, stage, stated_settings(run, stage, dataset_specs.problems_in(stage.dataset)))


def accept(run: Run, stage: Stage, flags: Flags) -> None:
    """The same of given flags; the run is for messages."""
    del stage
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of packages that torch imports
            parse(command_line(flags))
    except (_Refused, AssertionError) as error:
        raise refused_by_parser(run, "OpenRLHF", str(error), _refused_key(flags, str(error))) from None


def _refused_key(flags: Flags, message: str) -> str:
    """The run file's key of the flag that the message names first, if it names one: a later one may be a proposal."""
    for named in re.findall(r"--([\w.]+):|'([\w.]+)'", message):
        if key := flags.get("".join(named), (None, ""))[1]:
            return key
    return ""


class _Refused(Exception):
    pass


class _StrictParser(argparse.ArgumentParser):
    """The release's parser, without the abbreviations that argparse accepts by default."""

    def __init__(self) -> None:
        super().__init__(allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise _Refused(message)

    def parse_args(self, *_: Any) -> Any:  # type: ignore[override]
        parsed, unknown = self.parse_known_args()
        flags = [word[2:] for word in unknown if word.startswith("--")]
        if flags:
            known = [option[2:] for option in self._option_string_actions if option.startswith("--")]
            raise _Refused(f"this release of OpenRLHF has no setting '{flags[0]}'{meant(flags[0], known, most=1)}")
        if unknown:
            raise _Refused(f"unexpected '{' '.join(unknown)}'")
        return parsed


def defaults() -> dict[str, Any]:
    """What OpenRLHF takes for each flag that a command leaves out."""
    return {action.dest: action.default for action in _actions()}


def objectives() -> dict[str, list[str]]:
    """The estimators of advantages and the policy losses that OpenRLHF lets a command choose from."""
    choices = {action.dest: sorted(action.choices or ()) for action in _actions()}
    return {"estimators": choices["algo.advantage.estimator"], "losses": choices["actor.policy_loss_type"]}


def _actions() -> list[argparse.Action]:
    parsers: list[argparse.ArgumentParser] = []

    class KeptParser(_StrictParser):
        def __init__(self) -> None:
            super().__init__()
            parsers.append(self)

    with patch.object(sys.modules[__name__], "_StrictParser", KeptParser):
        parse(["--vllm.num_engines", "1", "--actor.model_name_or_path", "m", "--reward.remote_url", "r.py"])
    return [action for action in parsers[0]._actions if action.option_strings]


def parse(command_line: list[str]) -> Any:
    """Have the release's own parser and assertions read a command line, without launching the training.

    They are under `if __name__ == "__main__"` in its script, whose last statement launches the training.

    Raises:
        _Refused, AssertionError: the command line is not accepted.
    """
    spec = importlib.util.find_spec("openrlhf")
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            "OpenRLHF is not installed; build its environment with: python3.11 envs/build.py openrlhf",
            code="missing-package",
        )
    root = Path(spec.submodule_search_locations[0])
    script = root / "cli" / "train_ppo_ray.py"
    guarded = [node for node in ast.parse(script.read_text()).body if isinstance(node, ast.If)]
    *body, launch = guarded[-1].body
    if ast.unparse(launch) != "train(args)":
        raise RuntimeError(f"{script} does not end as in the release that this is made for")
    config: dict[str, Any] = {"__name__": "config"}
    exec(compile((root / "utils" / "config.py").read_text(), "config.py", "exec"), config)
    kept = [node for node in body if not (isinstance(node, ast.ImportFrom) and node.module == "openrlhf.utils.config")]
    names = {
        "argparse": SimpleNamespace(ArgumentParser=_StrictParser),
        "os": os,
        "datetime": datetime,
        "hierarchize": config["hierarchize"],
    }
    with patch.object(sys, "argv", ["train_ppo_ray", *command_line]), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(ast.Module(body=kept, type_ignores=[]), str(script), "exec"), names)
    return names["args"]

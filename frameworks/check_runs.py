"""Has a framework's own parser read every run of it; `python -m frameworks check` calls it. No GPU is used."""

from __future__ import annotations

import argparse

from contracts.run_file import EVERYWHERE, SCALES
from frameworks import adapter
from recipes import sweeps
from recipes.runs import load_run, run_names, smoke_run_names
from system import durable
from system.errors import UserError


def check(arguments: argparse.Namespace) -> None:
    """Have the framework's real parser read every run of it, at every scale that it has values for."""
    framework = adapter.load(arguments.framework)
    problems, checked = [], 0
    names = [(name, scale) for scale in SCALES for name in run_names(scale)]
    for scale in EVERYWHERE:
        names += [(name, scale) for name in smoke_run_names()]
        names += [(name, scale) for sweep in sweeps.names() for name in sweeps.run_names(sweep, scale)]
    for name, scale in names:
        try:
            run = load_run(name, scale)
            if run.framework != arguments.framework:
                continue
            framework.check(run)
            checked += 1
            print(f"{name} ({scale}): accepted by {run.framework}")
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("; ".join(dict.fromkeys(problems)), code="refused-runs", refused=len(problems))
    if not checked:
        raise UserError(
            f"no run file names the framework '{arguments.framework}'; add one to recipes/",
            code="framework-without-runs",
            framework=arguments.framework,
        )
    if arguments.output:
        durable.write_text(arguments.output, f"{checked} accepted\n")

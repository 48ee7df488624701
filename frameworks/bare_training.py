"""Trains one stage by the framework's own command, to measure what our training adds to it.

`python -m frameworks bare` calls `train`, for `crosszero benchmark --bare`. Settings, data, environment and the
recipe's reward functions are those of our training, and so is what lets a framework run without a GPU. What
`frameworks/train_stage.py` does around the command is left out; so are the record of rollouts, our timers and
callbacks, and forks: each process is an interpreter of its own, as where a user starts the command.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from typing import Any

from contracts import provenance
from frameworks import adapter, phases, reward_hook, rollout_log, train_stage, trainer_process
from frameworks.adapter import Paths
from system import durable


def train(arguments: argparse.Namespace) -> None:
    """Train a stage from its start to its end, and write how long it took as JSON: `seconds`, and `parts` of them.

    Raises:
        UserError: the command fails, or ends before the stage's last step.
    """
    run = train_stage.run_of(arguments)
    stage, framework = run.stages[arguments.stage - 1], adapter.load(run.framework)
    paths = Paths(problems=arguments.problems, model=arguments.model, work=arguments.work)
    shutil.rmtree(paths.work, ignore_errors=True)  # a bare training is not resumed
    durable.make_folder(paths.work)
    command = framework.prepare(run, stage, arguments.seed, paths)
    command.environment.update({reward_hook.BARE: "1", rollout_log.VARIABLE: str(paths.work)})
    seconds = trainer_process.run_unwatched(command, paths.work / "train.log")
    if (reached := framework.newest_checkpoint(run, stage, paths)) < stage.steps:
        raise train_stage.stopped_early(run, stage, reached)
    parts = Counter[str]()
    for step, logged in framework.metrics_of_training(run, stage, paths).items():
        if step > stage.steps:  # until it is ended, a trainer may make more
            continue
        whole = framework.our_columns(logged, stage.rollout["max_response_tokens"]).get("seconds")
        parts.update(
            {one["name"]: one["seconds"] for one in phases.of_step(framework.timers, logged, whole, None) or []}
        )
    content: dict[str, Any] = {"seconds": seconds, "parts": dict(parts)}
    durable.write_text(arguments.output, json.dumps(content, indent=1) + "\n")
    provenance.write(
        arguments.output, scale=run.scale, stage=stage.number, seed=arguments.seed, machine=provenance.machine(),
        command=command.arguments,
    )  # fmt: skip
    shutil.rmtree(paths.work)

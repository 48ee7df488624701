"""What a workflow would train, before it does: a table of runs in a dry run of many jobs, and their cost."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster.snakemake_internals import ColorizingTextHandler, LogEvent, attached_handler
from cluster.target_results import aligned
from contracts.run_file import Run, Stage
from system.errors import UserError

FEW = 30  # jobs that a dry run lists
HEAD = ("run", "to train", "on", "time limit", "GPU-hours published", "at most", "memory of a node")
REPLACED = (LogEvent.JOB_INFO, LogEvent.RUN_INFO, LogEvent.SHELLCMD)
LAST_SENTENCE = "This was a dry-run"


@dataclass
class RunPlan:
    """What is to be done for a run.

    Attributes:
        run: the run.
        stages: those to train, each as often as it is.
        seeds: of the trainings.
    """

    run: Run
    stages: list[Stage] = field(default_factory=list)
    seeds: set[str] = field(default_factory=set)

    @property
    def hours_at_most(self) -> float:
        """GPU-hours of all time limits."""
        return float(self.run.hardware["gpus"] * self.run.hardware["hours"] * len(self.stages))

    @property
    def hours_published(self) -> float:
        """GPU-hours as published, by the share of the steps that is to be trained; 0 where none are known."""
        share = sum(stage.steps for stage in self.stages) / sum(stage.steps for stage in self.run.stages)
        return float(self.run.hardware["gpus"] * self.run.hardware.get("expected_hours", 0) * share)

    def cells(self) -> tuple[str, ...]:
        """The row of the table, see HEAD."""
        hardware, count = self.run.hardware, len(self.stages)
        nodes, gpus = hardware.get("nodes", 1), hardware["gpus"]
        device = _counted(gpus // nodes, "GPU") if gpus else _counted(hardware["cpus"], "CPU")
        return (
            self.run.name,
            f"{_counted(count, 'stage')}, {_counted(len(self.seeds), 'seed')}",
            f"{nodes} nodes × {device}" if nodes > 1 else device,
            f"{hardware['hours']:g} h a stage",
            f"{self.hours_published:,.0f} h" if self.hours_published else "–",
            f"{self.hours_at_most:,.0f} h" if gpus else "–",
            f"{hardware['memory_gb']:,g} GB",
        )


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


def run_plans(jobs: Iterable[Any], runs: Mapping[str, Run]) -> list[RunPlan]:
    """The runs that are trained by Snakemake's jobs, in the order of `runs`.

    Args:
        jobs: to be run.
        runs: by name.
    """
    plans: dict[str, RunPlan] = {}
    for job in (job for job in jobs if job.rule.name == "train"):
        name = f"{job.wildcards.recipe}/{job.wildcards.run}"
        plan = plans.setdefault(name, RunPlan(runs[name]))
        plan.stages.append(plan.run.stages[int(job.wildcards.stage) - 1])
        plan.seeds.add(job.wildcards.seed)
    return [plans[name] for name in runs if name in plans]


def cost_text(plans: Sequence[RunPlan]) -> str:
    """How much training plans ask for, such as `2 runs, 320 GPU-hours as published, 640 at most`."""
    count = _counted(len(plans), "run")
    at_most = sum(plan.hours_at_most for plan in plans)
    if not at_most:
        return f"{count}, on CPUs"
    published = sum(plan.hours_published for plan in plans)
    return f"{count}, {published:,.0f} GPU-hours as published, {at_most:,.0f} at most"


def refusal_of_all(plans: Sequence[RunPlan], chosen: bool) -> UserError | None:
    """The error of training on GPUs every run that there is, without having said so.

    Args:
        plans: what would be trained.
        chosen: whether the command line says which runs.
    """
    if chosen or not any(plan.hours_at_most for plan in plans):
        return None
    return UserError(
        f"this would train {cost_text(plans)}: choose recipes or runs with --config reproduce='[openr1]', or say "
        "--config reproduce=all for all of them; `snakemake -n` with the same words lists what each takes",
        code="runs-not-chosen",
        runs=len(plans),
    )


def plan_table(jobs: Sequence[Any], runs: Mapping[str, Run]) -> str:
    """The table of runs, and what is done besides.

    Args:
        jobs: to be run.
        runs: by name.
    """
    plans = run_plans(jobs, runs)
    lines = aligned([HEAD, *(plan.cells() for plan in plans)], most=len(plans) + 1) if plans else []
    counts = Counter(job.rule.name for job in jobs)
    listed = ", ".join(f"{rule} {count}" for rule, count in counts.most_common())
    if plans:
        lines += ["", f"To be trained: {cost_text(plans)}."]
    return "\n".join(
        [*lines, f"{len(jobs)} jobs: {listed}. With -p (of crosszero: -- -p), each is listed with its command."]
    )


class PlanInsteadOfJobs(logging.Filter):
    """Shows the table on one handler in place of Snakemake's list of jobs, if that is long.

    Args:
        table: asked for the table at the end.
        applies: whether this is a dry run that lists no commands.
        lists_jobs: whether Snakemake would list the jobs; where it would not, the table is shown for few, too.
    """

    def __init__(self, table: Callable[[], str], applies: Callable[[], bool], lists_jobs: Callable[[], bool]) -> None:
        """Watch a handler."""
        super().__init__()
        self.table, self.applies, self.lists_jobs, self.is_long = table, applies, lists_jobs, False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether Snakemake's message is shown."""
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO:
            self.is_long = self.applies() and (record.__dict__["stats"]["total"] > FEW or not self.lists_jobs())
        if not self.is_long:
            return True
        if record.getMessage().startswith(LAST_SENTENCE):
            print(self.table())
        return event not in REPLACED and not record.getMessage().startswith("Reasons:")


def show(table: Callable[[], str], applies: Callable[[], bool], lists_jobs: Callable[[], bool]) -> None:
    """Show the table on Snakemake's terminal; see PlanInsteadOfJobs."""
    handler = attached_handler(ColorizingTextHandler)
    if handler and not any(isinstance(known, PlanInsteadOfJobs) for known in handler.filters):
        handler.addFilter(PlanInsteadOfJobs(table, applies, lists_jobs))

"""All that CrossZero uses of Snakemake beyond its documented interface; no other Python module imports from it.

A release may change any of it without notice. So cluster/snakemake_release.py refuses another release than the tested
one at start, and a test looks for each name of USED in the installed one (tests/unit/test_snakemake_internals.py).
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

from snakemake.common import NOTHING_TO_BE_DONE_MSG, overwrite_function_params
from snakemake.logging import ColorizingTextHandler, logger
from snakemake.resources import Resource
from snakemake.settings.enums import Quietness
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_logger_plugins.common import LogEvent

from system.errors import UserError

__all__ = ["NOTHING_TO_BE_DONE_MSG", "ColorizingTextHandler", "LogEvent", "Quietness", "SubmittedJobInfo", "logger"]
# Module and object, its attributes, and what uses them.
USED = (
    ("snakemake.workflow", "Workflow", "config_settings dag dryrun executor_settings get_rule global_resources "
     "is_local is_main_process local_exec nodes output_settings register_resource remote_exec rules dag_settings "
     "scheduler",
     "workflows/*.smk"),
    ("snakemake.dag", "DAG", "dependencies needrun needrun_jobs reason targetjobs", "workflows/*.smk"),
    ("snakemake.jobs", "Reason", "forced input_changed params_changed updated_input updated_input_run",
     "workflows/local_resources.smk"),
    ("snakemake.jobs", "Job", "attempt input is_local log output resources restart_times rule shellcmd wildcards",
     "workflows/*.smk"),
    ("snakemake.settings.types", "ConfigSettings", "config configfiles", "workflows/runs.smk"),
    ("snakemake.settings.types", "DAGSettings", "allowed_rules targets", "workflows/*.smk"),
    ("snakemake.rules", "Rule", "has_wildcards input norun params resources shellcmd",
     "cache_signatures, cluster/target_results.py"),
    ("snakemake.common", "overwrite_function_params", "", "cache_signatures"),
    ("snakemake.common", "NOTHING_TO_BE_DONE_MSG", "", "cluster/target_results.py"),
    ("snakemake.resources", "Resource", "evaluate _evaluator", "cache_signatures"),
    ("snakemake.io", "_IOFile", "_file", "cache_signatures"),
    ("snakemake.io", "AnnotatedString", "callable", "cache_signatures"),
    ("snakemake.exceptions", "InputFunctionException", "", "show_sentences_alone"),
    ("snakemake.executors.local", "Executor", "report_job_error", "cluster/retry_interrupted.py"),
    ("snakemake_executor_plugin_slurm", "Executor", "report_job_error __post_init__", "cluster/orphaned_jobs.py"),
    ("snakemake_executor_plugin_slurm", "Executor",
     "check_active_jobs next_seconds_between_status_checks report_job_success", "cluster/ended_jobs.py"),
    ("snakemake_executor_plugin_slurm", "Executor",
     "run_job report_job_submission _report_job_submission_threadsafe", "cluster/orphaned_jobs.py"),
    ("snakemake_executor_plugin_slurm", "Executor", "cancel shutdown", "cluster/submission.py"),
    ("snakemake_executor_plugin_slurm", "subprocess", "Popen", "cluster/submission.py"),
    ("snakemake_executor_plugin_slurm", "ExecutorSettings", "jobname_prefix array_jobs", "cluster/orphaned_jobs.py"),
    ("snakemake_executor_plugin_slurm", "ExecutorSettings", "keep_successful_logs init_seconds_before_status_checks",
     "cluster/ended_jobs.py"),
    ("snakemake_interface_executor_plugins.executors.base", "SubmittedJobInfo", "external_jobid",
     "cluster/orphaned_jobs.py"),
    ("snakemake.logging", "ColorizingTextHandler", "setStream", "cluster/live_view.py"),
    ("snakemake.logging", "logger", "addHandler handlers", "cluster/failed_jobs.py"),
    ("snakemake.settings.enums", "Quietness", "PROGRESS", "cluster/progress_lines.py"),
    ("snakemake_interface_logger_plugins.common", "LogEvent",
     "ERROR JOB_ERROR JOB_FINISHED JOB_INFO JOB_STARTED PROGRESS RUN_INFO", "cluster/progress.py"),
)  # fmt: skip
# How Snakemake prints a refusal (cluster/snakemake_release.py): in an input function, and while it reads our files.
REFUSALS = (
    re.compile(r"\AInputFunctionException in rule .*?\n  WorkflowError:\n    (.+?)\nWildcards:\n", re.DOTALL),
    re.compile(
        r'\AWorkflowError in file "[^"\n]*", line \d+:\n([^\n]*\[[a-z0-9]+(?:-[a-z0-9]+)+\])(?:\n  File [^\n]*)*\n*\Z'
    ),
)
Kind = TypeVar("Kind", bound=logging.Handler)


def attached_handler(kind: type[Kind]) -> Kind | None:
    """The handler of a kind that Snakemake's messages go to, such as that of its terminal; None if there is none."""
    return next((handler for handler in logger.handlers if isinstance(handler, kind)), None)


def sentence_of(printed: str) -> str | None:
    """The sentence of a refusal, from what Snakemake prints of it; None for another message."""
    matches = (pattern.match(printed) for pattern in REFUSALS)
    return next((match[1] for match in matches if match), None)


def show_sentences_alone() -> None:
    """Show a refusal on Snakemake's terminal as its sentence, without the places in our files where it was raised."""
    handler = attached_handler(ColorizingTextHandler)
    if not handler or any(getattr(known, "__name__", "") == "is_no_refusal" for known in handler.filters):
        return  # Snakemake reads the Snakefile more than once

    def is_no_refusal(record: logging.LogRecord) -> bool:
        sentence = sentence_of(record.getMessage())
        if sentence:
            handler.handle(logging.LogRecord(record.name, record.levelno, "", 0, f"Error: {sentence}", None, None))
        return not sentence

    handler.addFilter(is_no_refusal)


def show_warnings_alone(applies: Callable[[], bool]) -> None:
    """Print nothing of Snakemake's own messages but warnings and errors, where this applies.

    Args:
        applies: asked when something is printed, as Snakemake knows its targets only when it has read its files.
    """
    if handler := attached_handler(ColorizingTextHandler):
        handler.addFilter(lambda record: record.levelno >= logging.WARNING or not applies())


def missing_results(files: Iterable[str | Path], maker: str, allowed: Collection[str] | None) -> UserError | None:
    """The error of files that are not stored and may not be made; None if there are none.

    Args:
        files: that a target reads.
        maker: the rule that makes them.
        allowed: the value of --allowed-rules; empty or None for all rules.
    """
    if not allowed or maker in allowed:
        return None
    absent = [str(file) for file in files if not Path(file).exists()]
    if not absent:
        return None
    return UserError(
        f"{len(absent)} results are missing, the first is {absent[0]}, and --allowed-rules, which `crosszero report` "
        f"gives, leaves out {maker}, which makes them: make them with `crosszero reproduce` (snakemake: leave out "
        "--allowed-rules), or name other runs (reproduce, seeds)",
        code="missing-results",
        missing=len(absent),
        first=absent[0],
    )


def cache_signatures(rules: Iterable[Any]) -> None:
    """Look once at the arguments of the functions of all rules, which Snakemake does again for every job."""
    for rule in rules:
        for item in (*rule.input, *rule.params, *rule.resources.values()):
            if inspect.isfunction(function := _function_of(item)):
                overwrite_function_params(function, inspect.signature(function).parameters)
    overwrite_function_params(Resource.evaluate, inspect.signature(Resource.evaluate).parameters)


def _function_of(item: Any) -> Any:
    """The function in an input, a parameter or a resource of a rule, or what is there instead."""
    inner = getattr(item, "_evaluator", None) or getattr(item, "_file", item)
    return getattr(inner, "callable", None) or inner

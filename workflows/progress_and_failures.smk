# In a terminal, one live view shows what runs; elsewhere, a line for each job does. A failed job shows the end of its log
# once, also where rules are quiet. At the end are the results of the targets, or the command to resume.

from cluster import (
    failed_jobs,
    interrupt,
    live_view,
    progress_lines,
    run_plan,
    target_results,
)
from cluster.snakemake_internals import Quietness


def all_rules():
    """All rules in the order of the stages, and whether each only names what it depends on."""
    return {rule.name: rule.norun for rule in workflow.rules}


LIVE_VIEW = live_view.show(all_rules) if workflow.is_main_process else None
if workflow.is_main_process and LIVE_VIEW is None:
    progress_lines.show(all_rules, cluster=bool(config["cluster"]))


def printed_here(rule, command):
    """Whether a job of this rule and shell command shows its output on this terminal, too, besides its log."""
    seen = workflow.is_local(workflow.get_rule(rule)) and "| tee " in command
    return seen and LIVE_VIEW is None  # it keeps the lines of steps from the terminal


def is_interrupted():
    """Whether Ctrl-C was pressed (INTERRUPT of check_start.smk)."""
    return bool(INTERRUPT and INTERRUPT.was_pressed())


def target_jobs():
    """The jobs of the targets in the order of their rules; none in a dry run."""
    positions = list(all_rules())
    jobs = [] if workflow.dryrun else workflow.dag.targetjobs
    return sorted(jobs, key=lambda job: (positions.index(job.rule.name), job.output))


FAILED_JOBS = None
if workflow.is_main_process:
    FAILED_JOBS = failed_jobs.show(printed_here, is_interrupted)
    target_results.show(target_jobs)
    run_plan.show(
        lambda: run_plan.plan_table(
            list(workflow.dag.needrun_jobs(exclude_finished=False)), RUNS
        ),
        lambda: workflow.dryrun and not workflow.output_settings.printshellcmds,
        lambda: Quietness.RULES not in (workflow.output_settings.quiet or ()),
    )


onsuccess:
    if LIVE_VIEW:
        LIVE_VIEW.stop()
    target_results.print_at_exit(target_jobs())


onerror:
    if LIVE_VIEW:
        LIVE_VIEW.stop()  # so that what follows is last
    if is_interrupted():
        INTERRUPT.ignore()
        print(
            "Interrupted. What is finished is kept, and trainings resume from their newest checkpoint. This continues:"
            f" {failed_jobs.how_to_resume()}",
            file=sys.stderr,
        )
        sys.exit(interrupt.INTERRUPTED)
    if FAILED_JOBS and FAILED_JOBS.rules - set(failed_jobs.VERDICTS):
        print(
            "What is finished is kept. When the cause is removed, this continues:"
            f" {failed_jobs.how_to_resume()}",
            file=sys.stderr,
        )

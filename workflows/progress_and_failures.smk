# In a terminal, one live view shows what runs; elsewhere, a line for each job does. A failed job shows the end of its log
# once, also where rules are quiet, and the command to resume is shown at the end.

from cluster import failed_jobs, live_view, progress_lines


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


FAILED_JOBS = failed_jobs.show(printed_here) if workflow.is_main_process else None


onerror:
    if LIVE_VIEW:
        LIVE_VIEW.stop()  # so that what follows is last
    if FAILED_JOBS and FAILED_JOBS.rules - set(failed_jobs.VERDICTS):
        print(
            "What is finished is kept. When the cause is removed, this continues:"
            f" {failed_jobs.how_to_resume()}",
            file=sys.stderr,
        )

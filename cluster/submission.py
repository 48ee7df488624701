"""Refused submissions: sbatch is given again, with growing pauses, where the refusal passes; no job is queued twice.

On a busy cluster sbatch is refused for reasons that pass: the controller does not answer in time, or the user has as
many jobs as the site allows. The executor plugin takes each as the failure of the job. Here every sbatch of the plugin
has a mark of its own in the job's comment, by which a job is found that the controller has taken although sbatch says
that it did not answer.
"""

from __future__ import annotations

import re
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from cluster import slurm

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 120.0  # seconds; each pause is twice the one before
ANSWER_SECONDS = 600.0  # of one sbatch, which repeats some refusals itself
PATIENCE = 24 * 3600.0  # seconds, after which a refusal is final
# Texts of slurm_errno.c. After the first kind the controller may have taken the job all the same.
NO_ANSWER = re.compile(
    r"timed out|Unable to contact slurm controller|Unexpected message received|Zero Bytes were transmitted"
    r"|Connection (refused|reset)|Transport endpoint|Communication (connection failure|shutdown)|in standby mode"
    r"|Message (send|receive) failure|Insane message length|Header lengths|Received (zero length|message length)"
    r"|Failed to send entire message|Connection (rejected by|forced closed)|would block|shutting down|socket error",
    re.IGNORECASE,
)
# The site's limits, and what passes: a clock or an agent of munge, a name server, a full disk of the controller, a
# partition that is drained for maintenance.
FULL = re.compile(
    r"\w+Submit\w*Limit|MaxJobCount|Resource temporarily unavailable|temporarily unable to accept job|rate limit"
    r"|try again|please retry|currently (unavailable|not available)|Partition in DOWN state|Required node not available"
    r"|I/O error writing script|authentication (error|agent|credential)|Authentication credential|munge"
    r"|getaddrinfo|Unable to resolve|configuration (file|source)|not available now|inactive or drain|presently disabled"
    r"|submissions disabled|nodes are busy",
    re.IGNORECASE,
)
# What a user can do about a refusal that stays. The last text stands beside more specific ones.
REMEDIES = (
    (r"command line|unrecognized option|invalid option|reservation|license|wckey", "correct `extra`"),
    (r"Invalid account", "set `account`: `sacctmgr show associations user=$USER` lists yours"),
    (
        r"Invalid partition|partition name|(this|default) partition",
        "set `partition` and `gpu_partition`: `sinfo` lists them",
    ),
    (r"Invalid qos|QOS usage", "set `qos`: `sacctmgr show associations user=$USER format=account,qos` lists yours"),
    (r"Invalid feature", "set `gpu_constraint`: `sinfo -o %f` lists features"),
    (
        r"Requested time limit|time limit specification|Wall\w*Limit",
        "set `max_hours` and `gpu_max_hours` to the partition's limit",
    ),
    (
        r"node configuration|Requested nodes|gres|processors|CPU count|node count|memory spec",
        "set `gpu_type`, `max_cpus` and `max_memory_gb` to what nodes have",
    ),
    (r"violates accounting/QOS policy", "ask for less: `sacctmgr show qos` lists the limits"),
)
COMMENT = re.compile(r"--comment (?:'[^']*'(?:\"'\"'[^']*')*|[^\s']+)")  # a word as shlex.quote writes it


def refusal(error: str) -> str:
    """What kind of refusal it is.

    Args:
        error: what sbatch printed.

    Returns:
        `no answer` or `full`, which pass, or `final`.
    """
    if FULL.search(error):
        return "full"
    return "no answer" if NO_ANSWER.search(error) else "final"


def remedy(error: str) -> str:
    """What to do about a refusal that stays, as a sentence; empty if nothing is known."""
    for pattern, text in REMEDIES:
        if re.search(pattern, error, re.IGNORECASE):
            return f"In profiles/slurm/cluster.yaml, {text}. `snakemake preflight --profile slurm` checks it."
    return ""


class Submission:
    """An sbatch that is repeated until it is taken; what the plugin uses of subprocess.Popen.

    Args:
        call: of the plugin, for a shell.
        say: prints a line.
        stop: set when the workflow ends.
    """

    def __init__(self, call: str, say: Callable[[str], None], stop: threading.Event) -> None:
        """Submit nothing yet."""
        self.mark = f"cz{secrets.token_hex(8)}"
        self.call, count = COMMENT.subn(rf"\g<0>.{self.mark}", call, count=1)
        self.say, self.stop, self.returncode = say, stop, 0
        if not count:
            raise RuntimeError(f"sbatch without --comment: {call[:200]}")

    def communicate(self, input: str | None = None) -> tuple[str, str]:
        """Submit the job; returns what sbatch printed of it, and its errors."""
        started, pause, unanswered = time.monotonic(), FIRST_PAUSE, False
        done = self._sbatch(input)
        while done.returncode and (kind := refusal(done.stderr)) != "final" and time.monotonic() - started < PATIENCE:
            reason = done.stderr.strip().split("\n")[-1]
            self.say(f"Slurm takes no job just now ({reason}); next try in {pause:.0f} s")
            self.stop.wait(pause)
            unanswered = unanswered or kind == "no answer"
            if unanswered and (jobs := self.queued()):
                done = subprocess.CompletedProcess(self.call, 0, f"{jobs[0]}\n", "")
            elif self.stop.is_set():
                break
            else:
                done, pause = self._sbatch(input), min(2 * pause, LONGEST_PAUSE)
        if unanswered and done.returncode == 0:
            self.cancel_all_but(done.stdout.strip().partition(";")[0])
        self.returncode = done.returncode
        advice = f"\n{text}" if done.returncode and (text := remedy(done.stderr)) else ""
        return done.stdout, done.stderr.strip() + advice

    def _sbatch(self, input: str | None) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                self.call, shell=True, text=True, input=input, capture_output=True, check=False, timeout=ANSWER_SECONDS
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(self.call, 1, "", f"sbatch timed out after {ANSWER_SECONDS:.0f} s")

    def queued(self) -> list[str]:
        """Ids of the jobs that this submission has in the queue; waits until squeue answers."""
        pause = FIRST_PAUSE
        while True:
            status, output, _ = slurm.run(["squeue", "--me", "--noheader", "--states=all", "--format=%i %k"])
            if status == 0 or self.stop.is_set():
                lines = (line.split(maxsplit=1) for line in output.split("\n"))
                return sorted(
                    (fields[0] for fields in lines if fields[-1:] and fields[-1].endswith(self.mark)), key=len
                )
            self.say(f"squeue does not answer either; next try in {pause:.0f} s")
            self.stop.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def cancel_all_but(self, job: str) -> None:
        """Cancel what an earlier try has queued late."""
        if others := [other for other in self.queued() if other != job]:
            slurm.run(["scancel", *others])


class _Subprocess:
    """The plugin's module subprocess, whose sbatch is patient."""

    def __init__(self, say: Callable[[str], None], stop: threading.Event) -> None:
        self._say, self._stop = say, stop

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, call: Any, **options: Any) -> Any:
        if isinstance(call, str) and call.startswith("sbatch "):
            return Submission(call, self._say, self._stop)
        return subprocess.Popen(call, **options)


def be_patient(plugin: Any, say: Callable[[str], None]) -> None:
    """Have the plugin submit jobs so that refusals which pass are waited for, until the workflow ends.

    Args:
        plugin: the module of the executor plugin.
        say: prints a line.
    """
    if isinstance(plugin.subprocess, _Subprocess):  # Snakemake reads the Snakefile more than once
        return
    stop = threading.Event()
    plugin.subprocess = _Subprocess(say, stop)
    for name in ("cancel", "shutdown"):
        _stop_first(plugin.Executor, name, stop)


def _stop_first(executor: type[Any], name: str, stop: threading.Event) -> None:
    original: Callable[..., Any] = getattr(executor, name)

    def ended(self: Any, *arguments: Any, **named: Any) -> Any:
        stop.set()
        return original(self, *arguments, **named)

    setattr(executor, name, ended)

"""Run the commands that README, docs, studies and help texts show, and compare the figures that pages state.

    python -m tests.documented                        all that this machine can run: hours
    python -m tests.documented --cost quick seconds   those of seconds
    python -m tests.documented --part 2/7             one of seven parts; CI runs one a day
    python -m tests.documented --match 'crosszero translate' --again

They run in a copy of the project in work/documented, in the order of tests/documented/costs.yaml. What succeeded is not
run again until its text or a file of the project changes; `--again` runs it again. Prints a line for each: exit status,
seconds, command, and the first line of what failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from contracts.run_file import ROOT
from system.project_copy import copy_project
from tests.documented.commands import Documented, distinct_commands
from tests.documented.costs import COSTS, HERE, SECONDS, Rule, inputs, rule_of, rules, runnable_script
from tests.documented.figures import stale_figures

WORK = ROOT / "work" / "documented"
MIRROR = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    seconds: float
    output: str
    failure: str  # its first line; empty if there is none
    left_out: str = ""  # why it was not run


class Workplace:
    """A copy of the project with a folder of data beside it, in which commands run."""

    def __init__(self, folder: Path) -> None:
        """Copy what has changed."""
        self.project, self.record = folder / "project", folder / "outcomes.jsonl"
        self.project.mkdir(parents=True, exist_ok=True)
        files = copy_project(self.project)
        for link, target in {"mirror": MIRROR, "shared": MIRROR.parent}.items():
            if target.is_dir() and not (folder / link).is_symlink():
                (folder / link).symlink_to(target)
        if not (self.project / ".git").is_dir():
            subprocess.run(["git", "init", "--quiet"], cwd=self.project, check=True)
        self.programs = folder / "bin"
        self.programs.mkdir(exist_ok=True)
        program = self.programs / "crosszero"
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{self.project}" exec {sys.executable} -m cli.main "$@"\n')
        program.chmod(0o755)
        contents = b"".join((ROOT / file).read_bytes() for file in files if not file.endswith(".md"))
        self.version = hashlib.sha256(contents).hexdigest()[:12]

    def run(self, script: str, limit: float, interrupt: int | None = None) -> Outcome:
        """Run a script; after some seconds it gets Ctrl-C, or is ended where it takes too long."""
        path = os.pathsep.join([str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        began = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", f"set -o pipefail\n{script}"], cwd=self.project, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, "PATH": path},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what runs in the background ignores it
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=interrupt or limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT if interrupt else signal.SIGKILL)
            output, _ = process.communicate()
        except BaseException:  # Ctrl-C, or ended by another program
            os.killpg(process.pid, signal.SIGTERM)
            raise
        status = 0 if interrupt and process.returncode in (130, -signal.SIGINT, 0, 1) else process.returncode
        return Outcome(status, time.monotonic() - began, output, first_failure(output) if status else "")

    def make_inputs(self, names: Sequence[str]) -> Outcome | None:
        """Make what a command reads; returns the outcome of a command that lacks one."""
        for name in names:
            entry = inputs()[name]
            if (self.project / entry["file"]).exists():
                continue
            if lacking := self.make_inputs(entry.get("needs", ())):
                return lacking
            if "make" not in entry:
                return Outcome(-1, 0.0, "", "", left_out=f"there is no {entry['file']}")
            if (done := self.run(entry["make"], SECONDS["hours"])).status:
                return replace(done, failure=f"its input {name}: {done.failure}")
        return None

    def key(self, command: Documented) -> str:
        """What an outcome belongs to: the command, and the project as it is."""
        return hashlib.sha256(f"{command.script} {self.version}".encode()).hexdigest()[:16]

    def succeeded(self) -> set[str]:
        """Keys of the commands that need not run again."""
        if not self.record.is_file():
            return set()
        entries = [json.loads(line) for line in self.record.read_text(encoding="utf-8").split("\n") if line]
        return {entry["key"] for entry in entries if not (entry["failure"] or entry["left_out"])}

    def keep(self, command: Documented, outcome: Outcome) -> None:
        """Write down how a command ended."""
        how = {name: value for name, value in asdict(outcome).items() if name != "output"}
        entry = {"key": self.key(command), "command": command.script, "page": command.page, **how}
        with self.record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def first_failure(output: str) -> str:
    """The line of an output that says what failed: the first error, else the last line."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    marked = [line for line in lines if "Error" in line or "error:" in line]
    return (marked or lines[-1:] or ["no output"])[0][:300]


def run_documented(command: Documented, rule: Rule, workplace: Workplace) -> Outcome:
    """Run one command, its inputs first, and compare the figures that pages state of it."""
    if lacking := workplace.make_inputs(rule.needs):
        return lacking
    done = workplace.run(runnable_script(command, rule), SECONDS[rule.cost], rule.interrupt)
    if done.status in rule.status:
        stale = stale_figures(command.text, done.output, workplace.project)
        return Outcome(done.status, done.seconds, done.output, "; ".join(stale))
    return done


def chosen_commands(costs: Sequence[str], pattern: str, part: str) -> list[tuple[Documented, Rule]]:
    """Commands to run and their rules, in the order of the rules.

    Args:
        costs: of COSTS.
        pattern: that a command has, or nothing.
        part: such as 2/7: every seventh command, from the second on.
    """
    number, count = map(int, part.split("/"))
    by_rule = [(command, rule) for command in distinct_commands() if (rule := rule_of(command))]
    chosen = [pair for pair in by_rule if pair[1].cost in costs and pattern in pair[0].text]
    return sorted(chosen, key=lambda pair: rules().index(pair[1]))[(number - 1) % count :: count]


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.documented", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cost", nargs="+", choices=HERE, default=HERE, help="of the commands to run (default: all)")
    parser.add_argument("--match", default="", metavar="TEXT", help="only commands that have this text")
    parser.add_argument("--part", default="1/1", metavar="N/M", help="one of M parts")
    parser.add_argument("--again", action="store_true", help="also what succeeded before")
    parser.add_argument("--list", action="store_true", help="only list the commands with their costs")
    return parser.parse_args()


def main() -> None:
    """Run the chosen commands; exits with 1 if one failed or a stated figure is another."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    arguments = parse_arguments()
    if arguments.list:
        for command, rule in chosen_commands(COSTS, arguments.match, arguments.part):
            print(f"{rule.cost:8} {command.page}:{command.line}  {command.text}")
        return
    workplace, outcomes = Workplace(WORK), list[Outcome]()
    done_before: set[Any] = set() if arguments.again else workplace.succeeded()
    for command, rule in chosen_commands(arguments.cost, arguments.match, arguments.part):
        if workplace.key(command) in done_before:
            continue
        outcome = run_documented(command, rule, workplace)
        workplace.keep(command, outcome)
        outcomes.append(outcome)
        print(f"{outcome.status:4} {outcome.seconds:7.1f} s  {command.page}:{command.line}  {command.text}", flush=True)
        if reason := outcome.failure or outcome.left_out:
            print(f"                {reason}", flush=True)
    failed, left_out = sum(bool(one.failure) for one in outcomes), sum(bool(one.left_out) for one in outcomes)
    print(f"{len(outcomes) - left_out} commands run, {failed} failed, {left_out} left out: {workplace.record}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

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
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.run_file import ROOT
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


class Workplace:
    """A copy of the project with a folder of data beside it, in which commands run."""

    def __init__(self, folder: Path) -> None:
        """Copy what has changed."""
        self.project, self.record = folder / "project", folder / "outcomes.jsonl"
        self.project.mkdir(parents=True, exist_ok=True)
        listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, text=True)
        files = [file for file in listed.split("\0") if (ROOT / file).is_file() and not (ROOT / file).is_symlink()]
        for file in files:
            self._copy(file)
        for link, target in {"project/.envs": ROOT / ".envs", "mirror": MIRROR, "shared": MIRROR.parent}.items():
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

    def _copy(self, file: str) -> None:
        source, target = ROOT / file, self.project / file
        if not target.is_file() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def run(self, script: str, limit: float, interrupt: int | None = None) -> Outcome:
        """Run a script; after some seconds it gets Ctrl-C, or is ended where it takes too long."""
        path = os.pathsep.join([str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        began = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", f"set -o pipefail\n{script}"], cwd=self.project, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, "PATH": path},
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=interrupt or limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT if interrupt else signal.SIGKILL)
            output, _ = process.communicate()
        status = 0 if interrupt and process.returncode in (130, -signal.SIGINT, 0, 1) else process.returncode
        return Outcome(status, time.monotonic() - began, output, first_failure(output) if status else "")

    def missing_input(self, names: Sequence[str]) -> str:
        """Make the inputs of a command; returns why one is missing, else nothing."""
        for name in names:
            entry = inputs()[name]
            if (self.project / entry["file"]).exists():
                continue
            if reason := self.missing_input(entry.get("needs", ())):
                return reason
            if "make" not in entry:
                return f"needs {entry['file']}"
            if (outcome := self.run(entry["make"], SECONDS["hours"])).status:
                return f"input {name}: {outcome.failure}"
        return ""

    def key(self, command: Documented) -> str:
        """What an outcome belongs to: the command, and the project as it is."""
        return hashlib.sha256(f"{command.script} {self.version}".encode()).hexdigest()[:16]

    def succeeded(self) -> set[str]:
        """Keys of the commands that need not run again."""
        if not self.record.is_file():
            return set()
        entries = [json.loads(line) for line in self.record.read_text(encoding="utf-8").split("\n") if line]
        return {entry["key"] for entry in entries if not entry["failure"]}

    def keep(self, command: Documented, outcome: Outcome) -> None:
        """Write down how a command ended."""
        entry = {"key": self.key(command), "command": command.script, "page": command.page, "status": outcome.status,
                 "seconds": round(outcome.seconds, 1), "failure": outcome.failure}  # fmt: skip
        with self.record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def first_failure(output: str) -> str:
    """The line of an output that says what failed: the first error, else the last line."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    marked = [line for line in lines if "Error" in line or "error:" in line]
    return (marked or lines[-1:] or ["no output"])[0][:300]


def run_documented(command: Documented, rule: Rule, workplace: Workplace) -> Outcome:
    """Run one command, its inputs first, and compare the figures that pages state of it."""
    if reason := workplace.missing_input(rule.needs):
        return Outcome(-1, 0.0, "", reason)
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
    arguments = parse_arguments()
    if arguments.list:
        for command, rule in chosen_commands(COSTS, arguments.match, arguments.part):
            print(f"{rule.cost:8} {command.page}:{command.line}  {command.text}")
        return
    workplace, failed, ran = Workplace(WORK), 0, 0
    done_before: set[Any] = set() if arguments.again else workplace.succeeded()
    for command, rule in chosen_commands(arguments.cost, arguments.match, arguments.part):
        if workplace.key(command) in done_before:
            continue
        outcome = run_documented(command, rule, workplace)
        workplace.keep(command, outcome)
        ran, failed = ran + 1, failed + bool(outcome.failure)
        print(f"{outcome.status:4} {outcome.seconds:7.1f} s  {command.page}:{command.line}  {command.text}", flush=True)
        if outcome.failure:
            print(f"                {outcome.failure}", flush=True)
    print(f"{ran} commands run, {failed} failed; see {workplace.record.relative_to(ROOT)}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

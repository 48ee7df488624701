"""A copy of the project with another version of a package, in work/upgrade/; nothing outside it is changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from envs import build, pins
from system import durable
from system.errors import ROOT, UserError
from system.interruptible import run_interruptible
from system.project_copy import copy_project

SNAKEMAKE = "cluster.start_snakemake"
CODE = re.compile(r" \[[a-z0-9-]+\]$")  # of our errors
REASONS = ("cause: ", "Error: ", "error: ")  # begin what uv and our programs say of a failure, the best first


@dataclass(frozen=True)
class Outcome:
    """How a step ended for an environment.

    Attributes:
        step: its name.
        environment: a folder of envs/.
        sentence: what came out, or why it failed.
        failed: whether it failed.
        seconds: that it took.
        made_from: hash of what it was made from; another one, and it is done again.
        data: for the page, by step.
    """

    step: str
    environment: str
    sentence: str
    failed: bool
    seconds: float
    made_from: str = ""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """Another version of a package, in the environments whose requirements pin it.

    Attributes:
        package: its name.
        version: the new one.
        environments: folders of envs/.
        wheel: the file that has this version; None for a package index.
    """

    package: str
    version: str
    environments: tuple[str, ...]
    wheel: Path | None = None

    @property
    def folder(self) -> Path:
        """Of everything that is made."""
        return ROOT / "work" / "upgrade" / f"{pins.canonical(self.package)}-{self.version}"

    @property
    def project(self) -> Path:
        """The copy of the project."""
        return self.folder / "project"

    def locks(self, environment: str) -> Path:
        """Folder of the new locks of an environment."""
        return self.folder / "locks" / environment

    def output(self, name: str) -> Path:
        """A file or folder that a step writes."""
        (self.folder / "outputs").mkdir(parents=True, exist_ok=True)
        return self.folder / "outputs" / name

    def prepare(self) -> None:
        """Write the copy: the project as it is, the new version in its requirements, the locks made so far."""
        copy_project(self.project)
        pins.set_version(self.project / "envs", self.package, self.version, self.environments)
        for environment in self.environments:
            for lock in self.locks(environment).glob("*.lock"):
                shutil.copy(lock, self.project / "envs" / environment / lock.name)

    def python(self, environment: str, project: Path) -> Path:
        """The interpreter of an environment of a copy of the project, built or not."""
        command = [sys.executable, "envs/build.py", environment, "--where"]
        return project / subprocess.check_output(command, cwd=project, text=True).strip()

    def run_module(
        self, environment: str, module: str, arguments: Sequence[str | Path], log: str, project: Path | None = None
    ) -> None:
        """Run a module of a copy of the project in one of its environments; see `run`."""
        python = self.python(environment, project or self.project)
        self.run([python, "-m", module, *arguments], log, project, answered_later=module == SNAKEMAKE)

    def run(
        self, command: Sequence[str | Path], log: str, project: Path | None = None, *, answered_later: bool = False
    ) -> None:
        """Run a program in the folder of a copy of the project.

        Args:
            command: the program.
            log: name of the log without suffix.
            project: the copy; by default that with the new version.
            answered_later: see run_interruptible.

        Raises:
            UserError: it failed; with its own last sentence.
        """
        project = project or self.project
        path = os.pathsep.join([str(self.python("base", project).parent), os.environ.get("PATH", os.defpath)])
        variables = {**os.environ, **self._sources(), "PYTHONPATH": str(project), "PATH": path}
        file = self.folder / "logs" / f"{log}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as output:
            status = run_interruptible(
                [*map(str, command)], cwd=project, environment=variables, output=output, answered_later=answered_later
            )
        if status == 130:
            raise KeyboardInterrupt
        if status:
            sentence = last_sentence(file.read_text(encoding="utf-8", errors="replace"))
            raise UserError(sentence or f"it ended with status {status}", code="step-failed", log=str(file))

    def _sources(self) -> dict[str, str]:
        """Variables with which pip and uv find the wheel beside what they are configured with."""
        if self.wheel is None:
            return {}
        folder = str(self.wheel.parent)
        separators = {"PIP_FIND_LINKS": " ", "UV_FIND_LINKS": ","}
        return {
            name: separator.join(filter(None, [os.environ.get(name, ""), folder]))
            for name, separator in separators.items()
        }

    def made_from(self, step: str, environment: str) -> str:
        """Hash of what a step is made from: a lock of the project's requirements, others of the new lock."""
        if step == "lock":
            folder = ROOT / "envs" / environment
            files = [
                *sorted(folder.glob("*.in")),
                *sorted(folder.glob("*.lock")),
                *([self.wheel] if self.wheel else []),
            ]
        else:
            files = sorted(self.locks(environment).glob("*.lock"))
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()

    def outcomes(self) -> dict[tuple[str, str], Outcome]:
        """What has been done, by step and environment."""
        files = sorted((self.folder / "outcomes").glob("*.json"))
        stored = [Outcome(**json.loads(file.read_text(encoding="utf-8"))) for file in files]
        return {(one.step, one.environment): one for one in stored}

    def keep(self, outcome: Outcome) -> None:
        """Store how a step ended."""
        file = self.folder / "outcomes" / f"{outcome.step}-{outcome.environment}.json"
        durable.write_text(file, json.dumps(asdict(outcome)))

    def locked(self) -> list[str]:
        """The environments that have a new lock."""
        outcomes = self.outcomes()
        return [name for name in self.environments if (one := outcomes.get(("lock", name))) and not one.failed]

    def accept(self) -> list[str]:
        """Put the new version and the new locks in place; returns the environments that have one.

        Raises:
            UserError: there is no new lock, or the requirements have changed since it was made.
        """
        outcomes, locked = self.outcomes(), self.locked()
        if not locked:
            raise UserError(
                f"there is no new lock for {self.package} {self.version}: run the same command without --accept first",
                code="nothing-to-accept",
            )
        if stale := [n for n in locked if outcomes["lock", n].made_from != self.made_from("lock", n)]:
            raise UserError(
                f"the requirements of {', '.join(stale)} have changed since the new lock was made: run the same "
                "command without --accept again",
                code="stale-lock",
            )
        pins.set_version(build.ENVS, self.package, self.version, locked)
        for environment in locked:
            for lock in self.locks(environment).glob("*.lock"):
                durable.write_text(build.ENVS / environment / lock.name, lock.read_text(encoding="utf-8"))
        return locked


def last_sentence(log: str) -> str:
    """What a program said of its failure: a line that begins as REASONS do, or its last one."""
    lines = [line.strip() for line in log.split("\n") if line.strip()]
    for start in REASONS:
        if reasons := [line.removeprefix(start) for line in lines if line.startswith(start)]:
            return CODE.sub("", reasons[-1])
    return lines[-1] if lines else ""

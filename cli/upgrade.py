"""`crosszero upgrade PACKAGE VERSION`: what another version of a package would change, before it is put in place."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from analysis.upgrade import checks, page
from analysis.upgrade.candidate import Candidate, Outcome
from contracts.run_file import framework_names
from envs import build, pins
from system.errors import UserError, as_user_error
from system.unknown_names import unknown


@dataclass(frozen=True)
class Step:
    """A step of an upgrade.

    Attributes:
        name: for --step.
        title: for the line that is printed.
        environments: of folders of envs/, those that it is done for.
        work: does it.
        needs: the step that has to be done first for the same environment.
    """

    name: str
    title: str
    environments: Callable[[str], bool]
    work: Callable[[Candidate, str], checks.Finding]
    needs: str = "environment"


def any_environment(environment: str) -> bool:
    """Each is locked and built."""
    return True


def is_trainer(environment: str) -> bool:
    """A framework's."""
    return environment in framework_names()


STEPS = (
    Step("lock", "a new lock", any_environment, checks.make_lock, needs=""),
    Step("environment", "an environment beside the old one", any_environment, checks.build_environment, needs="lock"),
    Step("defaults", "the release's defaults", is_trainer, checks.compare_defaults),
    Step("run-files", "every run through the release's parser", is_trainer, checks.parse_runs),
    Step("conformance", "the same tensors through both releases", is_trainer, checks.compare_formulas),
    Step("verdicts", "the judge's verdicts", "base".__eq__, checks.compare_verdicts),
    Step("evaluation", "one evaluation", "eval".__eq__, checks.evaluate),
    Step("demo", "one demo run", is_trainer, checks.train_demo),
)


@click.command()
@click.argument("package")
@click.argument("version", metavar="VERSION|WHEEL")
@click.option(
    "--environment", "chosen", multiple=True, metavar="NAME", help="Only in these (default: all that pin PACKAGE)."
)
@click.option(
    "--step", "again", multiple=True, type=click.Choice([step.name for step in STEPS]),
    help="Only these steps, also where they are done already.",
)  # fmt: skip
@click.option("--accept", is_flag=True, help="Put the new version and its locks in place.")
def command(package: str, version: str, chosen: tuple[str, ...], again: tuple[str, ...], accept: bool) -> None:
    """Try another version of a package, and say on one page what it changes; nothing is replaced without --accept.

    VERSION is one of the package index; a wheel file stands for a branch's. In a copy of the project, each environment
    that pins the package is locked and built beside the old one. Then, as far as these environments reach: defaults
    that runs rely on, every run through the new parser, the frameworks' formulas, the judge's verdicts, one evaluation,
    one demo run of each framework. A step that fails says so in one sentence, and the others are done all the same. The
    same command goes on where it was stopped.
    """
    candidate, old = candidate_of(package, version, chosen)
    if accept:
        say_accepted(candidate, candidate.accept())
        return
    candidate.prepare()
    try:
        do_steps(candidate, again)
    except KeyboardInterrupt:
        click.echo("stopped: the same command goes on with this step")
        sys.exit(130)
    stored = candidate.outcomes()
    steps = {(step.name, name): stored.get((step.name, name)) for step, name in steps_of(candidate)}
    accepting = shlex.join(["crosszero", "upgrade", package, version, *_options("--environment", chosen), "--accept"])
    click.echo(f"what changes: {page.write(candidate, old, steps, accepting if candidate.locked() else '')}")
    if candidate.locked():
        click.echo(f"accept it:    {accepting}")
    sys.exit(any(one.failed for one in steps.values() if one))


def steps_of(candidate: Candidate) -> list[tuple[Step, str]]:
    """The steps that its environments call for, each with its environment, in order."""
    return [(step, name) for step in STEPS for name in candidate.environments if step.environments(name)]


def _options(name: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (name, value)]


def candidate_of(package: str, version: str, chosen: Sequence[str]) -> tuple[Candidate, str]:
    """What is to be tried, and the version that is pinned now, or several.

    Args:
        package: its name.
        version: a version, or a wheel file of it.
        chosen: environments; none for all that pin it.

    Raises:
        UserError: no environment pins the package, or there is no such wheel.
    """
    everywhere = pins.pins_of(build.ENVS, package)
    if not everywhere:
        raise unknown("pinned package", package, sorted({pin.name for pin in pins.pins(build.ENVS)}))
    names = dict.fromkeys(pin.environment for pin in everywhere)
    if missing := [name for name in chosen if name not in names]:
        raise unknown(f"environment that pins {package}", missing[0], names)
    pinned = [pin for pin in everywhere if pin.environment in (chosen or names)]
    old = ", ".join(dict.fromkeys(f"{pin.name} {pin.version}" for pin in pinned))
    wheel = Path(version).resolve() if version.endswith(".whl") else None
    if wheel:
        version = wheel_version(wheel, package)
    if all(pin.version == version for pin in pinned):
        raise UserError(f"{old} is pinned already", code="already-pinned", version=version)
    return Candidate(package, version, tuple(dict.fromkeys(pin.environment for pin in pinned)), wheel), old


def wheel_version(wheel: Path, package: str) -> str:
    """The version in a wheel's name (PEP 427); raises UserError if it is no wheel of the package."""
    name, _, rest = wheel.name.partition("-")
    if not wheel.is_file() or pins.canonical(name) != pins.canonical(package) or rest.count("-") < 3:
        raise UserError(
            f"{wheel} should be a wheel of {package}, such as {package}-1.0-py3-none-any.whl", code="no-wheel"
        )
    return rest.partition("-")[0]


def do_steps(candidate: Candidate, again: Sequence[str]) -> None:
    """Do what is missing, failed or made from something else, and what is to be done again.

    Args:
        candidate: the new version.
        again: names of steps; the others are left alone.
    """
    wanted = steps_of(candidate)
    for number, (step, name) in enumerate(wanted, 1):
        if again and step.name not in again:
            continue
        stored, made_from = candidate.outcomes(), candidate.made_from(step.name, name)
        done = stored.get((step.name, name))
        click.echo(f"[{number}/{len(wanted)}] {name}: {step.title} … ", nl=False)
        if done and not done.failed and done.made_from == made_from and not again:
            click.echo(f"done before: {done.sentence}")
            continue
        first = stored.get((step.needs, name))
        if step.needs and (first is None or first.failed):
            outcome = Outcome(step.name, name, f"not done: it needs the step {step.needs}", True, 0.0)
        else:
            outcome = do_step(candidate, step, name, made_from)
        candidate.keep(outcome)
        click.echo(f"{'failed' if outcome.failed else 'done'} after {outcome.seconds:.0f} s: {outcome.sentence}")


def do_step(candidate: Candidate, step: Step, environment: str, made_from: str) -> Outcome:
    """Do one step. Where it fails, the outcome has the sentence that says why."""
    started = time.monotonic()
    try:
        sentence, data = step.work(candidate, environment)
        failed = False
    except Exception as error:
        if (fixable := as_user_error(error)) is None:
            raise
        sentence, data, failed = str(fixable), {}, True
    return Outcome(step.name, environment, sentence, failed, time.monotonic() - started, made_from, data)


def say_accepted(candidate: Candidate, locked: Sequence[str]) -> None:
    """Say what was put in place, and what was not."""
    click.echo(f"{candidate.package} {candidate.version} is pinned and locked in: {', '.join(locked)}")
    if left := [name for name in candidate.environments if name not in locked]:
        click.echo(f"not in {', '.join(left)}, which has no new lock: see the page")
    for one in candidate.outcomes().values():
        if one.step not in ("lock", "environment") and one.failed:
            click.echo(f"{one.step} of {one.environment} failed: {one.sentence}")
    for name in filter(is_trainer, locked):
        click.echo(
            f"to be looked through: frameworks/{name}/defaults.yaml; then python -m frameworks.release_defaults {name}"
        )

"""What `snakemake check` was asked: each side a stored checkpoint, graded samples, a published row, or a model."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.gate import baselines
from contracts.errors import UserError
from contracts.run_file import Run
from eval import benchmark

STORED = re.compile(r"(?P<run>[^/]+/[^/]+)/seed-(?P<seed>\d+)/step-(?P<step>\d+)")


@dataclass(frozen=True)
class Wanted:
    """One side: `kind` is stored, graded, published, folder or hub."""

    kind: str
    name: str

    @property
    def slug(self) -> str:
        """A name for files, which no other side has."""
        words = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.")[-60:]
        return f"{words}-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"

    @property
    def is_model(self) -> bool:
        """Whether samples have to be made first."""
        return self.kind in ("folder", "hub")


def resolve(word: str, key: str, runs: Mapping[str, Run]) -> Wanted:
    """What a word of the configuration means.

    Args:
        word: the value of `checkpoint` or `baseline`.
        key: which of the two, for the error.
        runs: the configured runs by name.

    Raises:
        UserError: it is nothing that is known (with the nearest names), or a step that its run does not have.
    """
    path = Path(word)
    if path.is_dir() and (path / "config.json").is_file():
        return Wanted("folder", word)
    if path.exists():
        return Wanted("graded", word)
    if (stored := STORED.fullmatch(word)) and stored["run"] in runs:
        steps = runs[stored["run"]].checkpoint_steps
        if int(stored["step"]) not in steps:
            raise UserError(
                f"{key}={word}: {stored['run']} has no checkpoint of step {stored['step']}; there are: "
                f"{', '.join(map(str, steps))}"
            )
        return Wanted("stored", word)
    known = baselines.load()
    if key == "baseline" and word in known:
        return Wanted("published", word)
    groups = {name.split("/")[0] for name in [*known, *runs]}
    published = {name.split("/")[0] for name in known} if key == "baseline" else set()
    group = word.split("/")[0]
    mistyped = group in groups or difflib.get_close_matches(group.lower(), published, cutoff=0.8)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", word) and not mistyped:
        return Wanted("hub", word)
    stored_forms = [f"{run}/seed-0/step-0" for run in runs]
    near = baselines.nearest(word, [*(known if key == "baseline" else []), *stored_forms])
    raise UserError(
        f"{key}={word} should be a folder with a model, a hub id, graded samples, or a stored checkpoint such as "
        f"{(stored_forms or ['<recipe>/<run>/seed-0/step-0'])[0]}"
        + (", or a published baseline" if key == "baseline" else "")
        + (f"; the nearest names are: {', '.join(near)}" if near else "")
    )


def check_benchmarks(asked: Sequence[str], sides: Iterable[Wanted], runs: Mapping[str, Run]) -> None:
    """Raise UserError for a benchmark that there is not, or that the run of a stored side is not evaluated on."""
    benchmark.check_names(asked)
    for side in sides:
        if side.kind == "stored":
            given = runs[side.name.partition("/seed-")[0]].evaluation["benchmarks"]
            if lacking := [name for name in asked if name not in given]:
                raise UserError(f"{side.name} is evaluated on {', '.join(given)}, not on {', '.join(lacking)}")

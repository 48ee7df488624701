"""What `snakemake check` was asked: each side a stored checkpoint, graded samples, a published row, or a model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.check import baselines
from contracts.errors import UserError

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


def resolve(word: str, key: str, runs: Sequence[str]) -> Wanted:
    """What a word of the configuration means.

    Args:
        word: the value of `checkpoint` or `baseline`.
        key: which of the two, for the error.
        runs: names of the configured runs.

    Raises:
        UserError: it is nothing that is known; with the nearest names.
    """
    path = Path(word)
    if path.is_dir() and (path / "config.json").is_file():
        return Wanted("folder", word)
    if path.exists():
        return Wanted("graded", word)
    if (stored := STORED.fullmatch(word)) and stored["run"] in runs:
        return Wanted("stored", word)
    known = baselines.load()
    if key == "baseline" and word in known:
        return Wanted("published", word)
    groups = {name.split("/")[0] for name in [*known, *runs]}
    if re.fullmatch(r"[\w.-]+/[\w.-]+", word) and word.split("/")[0] not in groups:
        return Wanted("hub", word)
    stored_forms = [f"{run}/seed-0/step-0" for run in runs]
    near = baselines.nearest(word, [*(known if key == "baseline" else []), *stored_forms])
    raise UserError(
        f"{key}={word} should be a folder with a model, a hub id, graded samples, or a stored checkpoint such as "
        f"{(stored_forms or ['<recipe>/<run>/seed-0/step-0'])[0]}"
        + (", or a published baseline" if key == "baseline" else "")
        + (f"; the nearest names are: {', '.join(near)}" if near else "")
    )

"""What the configuration of `snakemake compare_checkpoints` compares, and where the graded samples of each side are."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis import reference
from analysis.compare_checkpoints import published_baselines
from contracts import model_folder, seeds, steps
from contracts.fingerprint import fingerprint
from contracts.paths import MODELS, ResultsFolder
from contracts.run_file import Run
from eval import benchmark, protocols
from eval.run_settings import protocol_of, sampling_settings
from system.errors import UserError
from system.unknown_names import nearest, unknown

STORED = re.compile(r"(?P<run>[^/]+/[^/]+)/seed-(?P<seed>\d+)/step-(?P<step>\d+)")
SIDES = ("checkpoint", "baseline")
OPTIONS = {  # of the comparing commands, by key of the configuration
    "benchmarks": "--benchmark",
    "accept": "--accept",
    "problems": "--problems",
    "margin": "--margin",
    "ties": "--ties",
    "rule": "--rule",
}
MODEL_FILES = ("config.json", "*.safetensors", "tokenizer*")  # any of them says that a folder is to be a model


@dataclass(frozen=True)
class Side:
    """One side of the comparison.

    `kind` is stored (a checkpoint of a run here), graded (samples), published, folder (a model) or hub (a model).
    """

    kind: str
    name: str

    @property
    def slug(self) -> str:
        """A unique name for files."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.")[-60:]
        return f"{readable}-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"

    @property
    def is_model(self) -> bool:
        """Whether samples have to be generated first."""
        return self.kind in ("folder", "hub")


def command_options(config: Mapping[str, Any], *keys: str) -> list[str]:
    """The options of OPTIONS that the configuration sets; the command has the defaults of the others."""
    options = []
    for key in keys:
        if (value := config.get(key)) is not None:
            options += [OPTIONS[key], *map(str, value if isinstance(value, list) else [value])]
    return options


def side_from_config(value: str, key: str, runs: Mapping[str, Run]) -> Side:
    """What a value of the configuration means.

    Args:
        value: of `checkpoint` or `baseline`.
        key: which of the two, for the error.
        runs: the configured runs by name.

    Raises:
        UserError: the value is unknown (the message has the nearest names), its run has no such step, or its model is
            cut or damaged.
    """
    path = Path(value)
    if path.is_dir() and any(file.match(pattern) for file in path.iterdir() for pattern in MODEL_FILES):
        model_folder.check_files(path)
        return Side("folder", value)
    if path.exists():
        return Side("graded", value)
    if (stored := STORED.fullmatch(value)) and stored["run"] in runs:
        steps = runs[stored["run"]].checkpoint_steps
        if int(stored["step"]) not in steps:
            raise UserError(
                f"{key}={value}: {stored['run']} has no checkpoint of step {stored['step']}; there are: "
                f"{', '.join(map(str, steps))}",
                code="unknown-step", key=key, step=int(stored["step"]),
            )  # fmt: skip
        return Side("stored", value)
    known = published_baselines.load() if key == "baseline" else {}
    if value in known:
        return Side("published", value)
    # An unknown name is a hub id, unless its first part is, or nearly is, that of a name here.
    group, published = value.split("/")[0], {name.split("/")[0] for name in known}
    groups = {name.split("/")[0] for name in [*published_baselines.load(), *runs]}
    mistyped = group in groups or difflib.get_close_matches(group.lower(), published, cutoff=0.8)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", value) and not mistyped:
        return Side("hub", value)
    stored_forms = [f"{run}/seed-0/step-0" for run in runs]
    close = nearest(value, [*known, *stored_forms])
    raise UserError(
        f"{key}={value} should be a folder with a model, a hub id, graded samples, or a stored checkpoint such as "
        f"{(stored_forms or ['<recipe>/<run>/seed-0/step-0'])[0]}"
        + (", or a published baseline" if key == "baseline" else "")
        + (f"; the nearest names are: {', '.join(close)}" if close else ""),
        code="unknown-name", key=key, name=value, nearest=close,
    )  # fmt: skip


class ComparisonRequest:
    """The comparison that the configuration asks for, or none.

    Args:
        config: of the workflow: checkpoint, baseline, and optionally benchmarks and protocol.
        runs: the configured runs by name.
        default_run: the run whose settings are used if neither side is a checkpoint of a run.
        results: folder of the results of the scale.

    Raises:
        UserError: a side, a benchmark or the protocol is unknown.
    """

    def __init__(
        self, config: Mapping[str, Any], runs: Mapping[str, Run], default_run: str, results: ResultsFolder
    ) -> None:
        """Check the names before the graph is built."""
        self.runs, self.default_run, self.results = runs, default_run, results
        self.sides = {key: side_from_config(str(config[key]), key, runs) for key in SIDES if config.get(key)}
        self.wanted: Sequence[str] = config.get("benchmarks") or []
        self.protocol: str | None = config.get("protocol")
        if self.protocol and self.protocol not in protocols.names():
            raise unknown("evaluation protocol", self.protocol, protocols.names()).within("config")
        try:
            self._check_benchmarks()
        except UserError as error:
            raise error.within("config: benchmarks") from None

    def _check_benchmarks(self) -> None:
        benchmark.check_names(self.wanted)
        for side in self.sides.values():
            if side.kind == "stored":
                evaluated = self.runs[seeds.run_of(side.name)].evaluation["benchmarks"]
                if absent := [name for name in self.wanted if name not in evaluated]:
                    raise UserError(
                        f"{side.name} is evaluated on {', '.join(evaluated)}, not on {', '.join(absent)}",
                        code="not-evaluated", missing=absent,
                    )  # fmt: skip

    def side(self, key: str) -> Side:
        """The checkpoint or the baseline. Raises UserError if the configuration does not name it."""
        if key not in self.sides:
            raise UserError(
                f"snakemake compare_checkpoints needs --config checkpoint=… baseline=…, but {key} is missing",
                code="missing-key", key=key,
            )  # fmt: skip
        return self.sides[key]

    @cached_property
    def run(self) -> Run:
        """The run whose protocol, benchmarks and device are used, with the configured protocol in place of its own.

        That of a side, or the default one. Without either a protocol or these benchmarks there, the first run that has
        the benchmarks, because the prompt and the answer's form go with them.
        """
        stored = [side.name for side in self.sides.values() if side.kind == "stored"]
        run = self.runs[seeds.run_of(stored[-1]) if stored else self.default_run]
        if self.protocol:
            return replace(run, evaluation=run.evaluation | {"protocol": self.protocol, "override": {}})
        with_benchmarks = (
            each for each in [run, *self.runs.values()] if {*self.wanted} <= {*each.evaluation["benchmarks"]}
        )
        return next(with_benchmarks, run)

    @property
    def benchmarks(self) -> Sequence[str]:
        """The benchmarks on which models are evaluated."""
        return self.wanted or self.run.evaluation["benchmarks"]

    def side_with_slug(self, slug: str) -> Side:
        """The side with this slug."""
        return next(side for side in map(self.side, SIDES) if side.slug == slug)

    def model_folder(self, slug: str) -> str:
        """The folder of the model of this slug: the given one, or where the hub's is downloaded to."""
        side = self.side_with_slug(slug)
        return side.name if side.kind == "folder" else str(self.results.path / "compare" / "models" / slug)

    def evaluation_id(self, key: str) -> str:
        """The id under which a model's samples are; it depends on everything that decides them.

        Raises UserError if the side is no model.
        """
        side = self.side(key)
        if not side.is_model:
            raise UserError(
                f"{key}={side.name} is {side.kind}, but a folder with a model or a hub id is needed; checkpoints of "
                "configured runs are evaluated without it: snakemake evaluate --config reproduce='[…]'",
                code="not-a-model", key=key, kind=side.kind,
            )  # fmt: skip
        settings = [sampling_settings(self.run, self.benchmarks), self.run.device]
        return f"{MODELS}{side.slug}-{fingerprint(settings)[:8]}"

    def graded(self, key: str) -> str | None:
        """The folder or file of a side's graded samples. None if it is published and has none."""
        side = self.side(key)
        if side.is_model:
            return str(self.results.run(self.evaluation_id(key)).graded)
        if side.kind == "stored":
            return str(self.results.run(side.name.rpartition("/")[0]).graded)
        return None if side.kind == "published" else side.name

    def model_to_sample(self, key: str) -> str:
        """The folder of a side's model, for sampling in rounds. Raises UserError if the side has samples alone."""
        side = self.side(key)
        if side.kind == "stored":
            run_id, _, step = side.name.rpartition("/step-")
            return str(self.results.run(run_id).checkpoint(step))
        if not side.is_model:
            raise UserError(
                f"sampling in rounds needs models, but {key}={side.name} is {side.kind}: name a folder with a model, a "
                "hub id or a stored checkpoint, or leave `sequential` out",
                code="not-a-model", key=key, kind=side.kind,
            )  # fmt: skip
        return self.model_folder(side.slug)

    def most_repeats(self, most: int) -> int:
        """The most completions per problem. Raises UserError if a benchmark's protocol gives the same one each time."""
        if protocol_of(self.run).temperature == 0:
            raise UserError(
                f"sampling in rounds needs a protocol with a temperature above 0, but {self.run.name} is evaluated "
                f"with {self.run.evaluation['protocol']}, which is greedy: leave `sequential` out",
                code="greedy-protocol", protocol=self.run.evaluation["protocol"],
            )  # fmt: skip
        return most

    def reference_content(self) -> dict[str, Any]:
        """What a comparison depends on besides the samples: the published row, and the patterns that are counted."""
        baseline = self.side("baseline")
        row = asdict(published_baselines.find(baseline.name)) if baseline.kind == "published" else None
        return {"baseline": row, "patterns": reference.page_content()["patterns"]}

    def compared_samples(self, key: str) -> str:
        """What `compare` is given for a side: a step of a run, graded samples, or a published name."""
        side, graded = self.side(key), self.graded(key)
        if side.kind == "stored":
            return f"{graded}/{side.name.rpartition('/')[2]}"
        return f"{graded}/{steps.folder(0)}" if side.is_model else side.name

"""What the configuration of `snakemake compare_checkpoints` compares, and where the graded samples of each side are."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis import reference
from analysis.compare_checkpoints import graded_checkpoint, published_baselines
from contracts import checkpoint_formats, model_folder, seeds, steps
from contracts.fingerprint import fingerprint
from contracts.paths import MODELS, ResultsFolder
from contracts.run_file import Run
from eval import benchmark, model_settings
from eval import subset as subsets
from eval.model_settings import Model, ModelSettings, Wishes
from eval.run_settings import protocol_of, sampling_settings
from system.errors import UserError
from system.unknown_names import nearest

STORED = re.compile(r"(?P<run>[^/]+/[^/]+)/seed-(?P<seed>\d+)/step-(?P<step>\d+)")
SIDES = ("checkpoint", "baseline")
LONGEST = 60  # characters of a model's name in the names of files
_PLAIN = re.compile(r"[^A-Za-z0-9.]+")
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
        """A unique name for files: the end of the path, by whole parts if they are short, and a hash."""
        whole = str(Path(self.name).resolve()) if self.kind == "folder" else self.name
        kept: list[str] = []
        for part in reversed([clean for part in whole.split("/") if (clean := _PLAIN.sub("-", part).strip("-."))]):
            if kept and len("-".join([part, *kept])) > LONGEST:
                break
            kept.insert(0, part[:LONGEST].strip("-."))
        return f"{'-'.join(kept)}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"

    @property
    def is_model(self) -> bool:
        """Whether it is a model that no run here has samples of."""
        return self.kind in ("folder", "hub")


def is_to_be_model(path: Path) -> bool:
    """Whether a folder is meant as a model: it has some of its files, or those of a trainer's checkpoint; or a file."""
    files = path.is_dir() and any(file.match(pattern) for file in path.iterdir() for pattern in MODEL_FILES)
    return files or checkpoint_formats.recognise(path) is not None


def command_options(config: Mapping[str, Any], *keys: str) -> list[str]:
    """The options of the comparing commands that a configuration sets; the commands have the defaults of the others."""
    options = []
    for key in keys:
        value = config.get(key)
        if value is None or value is False or value == ():
            continue
        values = list(value) if isinstance(value, list | tuple) else [] if value is True else [value]
        options += ["--benchmark" if key == "benchmarks" else f"--{key.replace('_', '-')}", *map(str, values)]
    return options


def wishes_of(config: Mapping[str, Any], scale: str) -> Wishes:
    """What the configuration says of how models are asked."""
    subset = subsets.choose(config.get("limit"), config.get("sample"), config.get("sample_seed"))
    device = config.get("device") or ("cuda" if scale == "full" else "cpu")
    named = {key: config.get(key) for key in ("protocol", "prompt", "max_tokens")}
    return Wishes(config.get("benchmarks") or (), device=device, subset=subset, **named)


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
    if is_to_be_model(path):
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
    if re.fullmatch(r"\w[\w.-]*/[\w.-]+", value) and not mistyped:
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
    """The comparison that the configuration asks for, or the evaluation of one model, or neither.

    Args:
        config: of the workflow: checkpoint, baseline, and what `wishes_of` reads.
        runs: the configured runs by name.
        results: folder of the results of the scale.

    Raises:
        UserError: a side, a benchmark, the protocol or the prompt is unknown, or how to ask a model is not decided.
    """

    def __init__(self, config: Mapping[str, Any], runs: Mapping[str, Run], results: ResultsFolder) -> None:
        """Check the names before the graph is built."""
        self.runs, self.results, self.scale = runs, results, str(config.get("scale", "demo"))
        self.sides = {key: side_from_config(str(config[key]), key, runs) for key in SIDES if config.get(key)}
        self.wishes = wishes_of(config, self.scale)
        try:
            benchmark.check_names(self.wishes.benchmarks)
        except UserError as error:
            raise error.within("config: benchmarks") from None
        if self._sampled:
            self._check_chat_templates(config.get("accept") or ())

    def _check_chat_templates(self, accepted: Sequence[str]) -> None:
        """Refuse two models whose chat templates differ before they are sampled: their prompts would differ, too."""
        folders = [side.name for side in self.sides.values() if side.kind == "folder"]
        if not protocol_of(self.settings).needs_chat_template() or "prompt" in accepted or len(folders) < 2:
            return
        if len({model_folder.chat_template(Path(folder)) for folder in folders}) > 1:
            raise UserError(
                f"{' and '.join(folders)} have different chat templates, so that they read different prompts: compare "
                "them all the same with --accept prompt (accept='[prompt]' in the configuration), or with a --prompt "
                "that needs no template",
                code="not-comparable",
            )

    @cached_property
    def _sampled(self) -> tuple[str, ...]:
        """The sides that are sampled by themselves: models, and checkpoints asked otherwise than by their run."""
        keys = [key for key, side in self.sides.items() if side.is_model or side.kind == "stored"]
        compared = len(self.sides) > 1
        return tuple(
            key for key in keys if self.sides[key].is_model or not (compared and self._is_asked_as_its_run(key))
        )

    def _is_asked_as_its_run(self, key: str) -> bool:
        """Whether the samples that a stored checkpoint's run makes are those that are to be compared."""
        wishes, run = self.wishes, self.runs[seeds.run_of(self.sides[key].name)]
        evaluated = set(wishes.benchmarks) <= set(run.evaluation["benchmarks"])
        return evaluated and not (wishes.protocol or wishes.prompt or wishes.max_tokens or wishes.subset)

    def _model(self, key: str) -> Model:
        side = self.sides[key]
        if side.kind == "stored":
            return Model(side.name, None, self.runs[seeds.run_of(side.name)])
        if side.kind == "graded":
            return Model(side.name, sampled_as=graded_checkpoint.recorded_evaluation(Path(side.name)))
        folder = Path(side.name) if side.kind == "folder" else None
        return Model(side.name, folder, model_settings.run_of_folder(folder, self.scale) if folder else None)

    @cached_property
    def settings(self) -> ModelSettings:
        """How the models are asked, all alike: also those whose run has samples already."""
        keys = [key for key, side in self.sides.items() if side.kind != "published"]
        return model_settings.decide([self._model(key) for key in keys], self.wishes)

    @property
    def benchmarks(self) -> Sequence[str]:
        """The benchmarks on which models are evaluated."""
        return self.settings.benchmarks

    def side(self, key: str) -> Side:
        """The checkpoint or the baseline. Raises UserError if the configuration does not name it."""
        if key not in self.sides:
            raise UserError(
                f"snakemake compare_checkpoints needs --config checkpoint=… baseline=…, but {key} is missing",
                code="missing-key", key=key,
            )  # fmt: skip
        return self.sides[key]

    @property
    def pair(self) -> str:
        """The name of the comparison's folder."""
        part = f"-{self.wishes.subset.folder}" if self.wishes.subset else ""
        return f"{self.side('checkpoint').slug}-against-{self.side('baseline').slug}{part}"

    def side_with_slug(self, slug: str) -> Side:
        """The side with this slug."""
        return next(side for side in self.sides.values() if side.slug == slug)

    def model_folder(self, slug: str) -> str:
        """The folder of the model of this slug: the given one, a run's checkpoint, or the download from the hub."""
        side = self.side_with_slug(slug)
        if side.kind == "stored":
            run_id, _, step = side.name.rpartition("/step-")
            return str(self.results.run(run_id).checkpoint(step))
        return side.name if side.kind == "folder" else str(self.results.path / "compare" / "models" / slug)

    def evaluation_id(self, key: str) -> str:
        """The id under which a model's samples are; it depends on everything that decides them.

        Raises UserError if the side is no model.
        """
        side = self.side(key)
        if side.kind not in ("stored", "folder", "hub"):
            raise UserError(
                f"{side.name} is no model's folder, which has config.json, weights and tokenizer: name one, a hub id "
                "or a stored checkpoint, or convert what a trainer has left (crosszero convert)"
                + checkpoint_formats.hint_inside(Path(side.name)),
                code="not-a-model", key=key, kind=side.kind,
            )  # fmt: skip
        subset = self.settings.subset
        settings = [sampling_settings(self.settings, self.benchmarks), self.settings.device]
        part = f"-{subset.folder}" if subset else ""
        return f"{MODELS}{side.slug}-{fingerprint(settings)[:8]}{part}"

    def graded(self, key: str) -> str | None:
        """The folder or file of a side's graded samples. None if it is published and has none."""
        side = self.side(key)
        if key in self._sampled:
            return str(self.results.run(self.evaluation_id(key)).graded)
        if side.kind == "stored":
            return str(self.results.run(side.name.rpartition("/")[0]).graded)
        return None if side.kind == "published" else side.name

    def model_to_sample(self, key: str) -> str:
        """The folder of a side's model, for sampling in rounds. Raises UserError if the side has samples alone."""
        side = self.side(key)
        if side.kind in ("graded", "published"):
            raise UserError(
                f"sampling in rounds needs models, but {key}={side.name} is {side.kind}: name a folder with a model, a "
                "hub id or a stored checkpoint, or leave `sequential` out",
                code="not-a-model", key=key, kind=side.kind,
            )  # fmt: skip
        return self.model_folder(side.slug)

    def most_repeats(self, most: int) -> int:
        """The most completions per problem. Raises UserError if a benchmark's protocol gives the same one each time."""
        if protocol_of(self.settings).temperature == 0:
            raise UserError(
                "sampling in rounds needs a protocol with a temperature above 0, but "
                f"{self.settings.evaluation['protocol']} is greedy ({self.settings.source}): name another, or leave "
                "`sequential` out",
                code="greedy-protocol", protocol=self.settings.evaluation["protocol"],
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
        if key in self._sampled:
            return f"{graded}/{steps.folder(0)}"
        return f"{graded}/{side.name.rpartition('/')[2]}" if side.kind == "stored" else side.name

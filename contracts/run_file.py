"""Run files: one published recipe with every choice made, checked against the schema and reduced to one scale.

The names in a run file are checked elsewhere: the training's in recipes.runs, the evaluation's in eval.run_settings.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema

from system.errors import UserError
from system.text_safety import one_line
from system.unknown_names import unknown
from system.yaml_files import display_path, read_yaml

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ROOT / "recipes"
SCHEMAS = ROOT / "config" / "schemas"
SCALES = ("demo", "small", "full")
EVERYWHERE = ("demo", "full")  # the scales that every run file has values for
STAGE_KEYS = (
    "dataset",
    "levels",
    "steps",
    "checkpoints",
    "batch",
    "rollout",
    "optimizer",
    "objective",
    "lora",
    "native",
)


@dataclass(frozen=True)
class Stage:
    """One native training call. Its steps and checkpoints count from the start of the stage."""

    number: int  # from 1
    steps_before: int  # of all stages before it
    dataset: str
    levels: tuple[dict[str, Any], ...]  # `level` and `weight` of each that is trained on; empty: the data set as it is
    steps: int
    checkpoints: tuple[int, ...]
    batch: dict[str, Any]
    rollout: dict[str, Any]
    optimizer: dict[str, Any]
    objective: dict[str, Any]
    lora: dict[str, Any]  # empty: all weights are trained
    native: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A run file at one scale."""

    name: str  # <recipe>/<run>
    file: Path
    scale: str
    title: str
    framework: str
    algorithm: str
    prompt: str
    reference: str | None
    deviations: tuple[dict[str, str], ...]  # what the pinned release cannot train as published
    rewards: tuple[dict[str, Any], ...]
    model: str
    stages: tuple[Stage, ...]
    hardware: dict[str, Any]
    evaluation: dict[str, Any]
    control: str | None = None  # kind of the reward in place of the recipe's (recipes.controls)
    control_of: str | None = None  # the run, <recipe>/<run>, beside which this control is read
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)  # variables of the model's chat template

    @property
    def device(self) -> str:
        """cuda if the run uses GPUs, else cpu: which environments it needs."""
        return "cuda" if self.hardware["gpus"] else "cpu"

    @property
    def checkpoint_steps(self) -> list[int]:
        """Steps of all checkpoints over all stages, the base model (0) first."""
        return [0, *(stage.steps_before + step for stage in self.stages for step in stage.checkpoints)]

    def stage_of(self, step: int) -> Stage:
        """The stage that makes the checkpoint of a step (> 0)."""
        return next(s for s in self.stages if s.steps_before < step <= s.steps_before + s.steps)


def _is_whole(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: Any, value: Any) -> bool:
    return _is_whole(_, value) or (isinstance(value, float) and math.isfinite(value))


# JSON Schema 2020-12, in which 1.0 is a whole number; for a count of steps or repeats it is none. YAML's .nan, which no
# limit holds back, and .inf are no numbers in JSON, and no setting means them.
Validator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_whole, "number": _is_number}
    ),
)


@cache
def _checker(schema: str) -> Any:
    return Validator(read_yaml(SCHEMAS / f"{schema}.schema.yaml"))


def switches(schema: str) -> set[str]:
    """The keys of config/schemas/<schema>.schema.yaml that are true or false."""
    properties = read_yaml(SCHEMAS / f"{schema}.schema.yaml")["properties"]
    return {key for key, rule in properties.items() if rule.get("enum") == [True, False]}


def validate(content: Any, schema: str, source: Path | str) -> None:
    """Check the content of a YAML file against a JSON schema.

    Args:
        content: what the file holds.
        schema: of config/schemas/<schema>.schema.yaml.
        source: the file, or words for a part of one, for messages.

    Raises:
        UserError: it breaks the schema; the message names the place and the keys.
    """
    errors = sorted(
        _checker(schema).iter_errors(content), key=lambda error: [str(part) for part in error.absolute_path]
    )
    if errors:
        label = display_path(source) if isinstance(source, Path) else source
        keys = [".".join(map(str, error.absolute_path)) for error in errors[:5]]
        raise UserError("; ".join(_explain(error, label) for error in errors[:5]), code="schema-broken", keys=keys)


def inherit(content: dict[str, Any], file: Path) -> dict[str, Any]:
    """The content of a run file, merged over that of the run that it `extends`, and each scale over that it is `like`.

    Settings under `native` mean something to one framework alone, so a run of another framework does not inherit them;
    batch, rollout, optimizer and objective mean the same in all. A null removes an inherited key.
    """
    merged = _extended(content, file)
    for scale in SCALES:
        if isinstance(values := merged.get(scale), dict) and "like" in values:
            own = {key: value for key, value in values.items() if key != "like"}
            merged = {**merged, scale: _deep_merge(_values_of(str(values["like"]), scale, merged, file), own)}
    return merged if merged is content else _without_nulls(merged)


def _values_of(name: str, scale: str, content: dict[str, Any], file: Path) -> dict[str, Any]:
    """The values of another recipe's run at a scale, without `native` where its framework is another."""
    other = RECIPES / f"{name}.yaml"
    if not re.fullmatch(r"[\w.+-]+/[\w.+-]+", name) or not other.is_file():
        names = [f"{one.parent.name}/{one.stem}" for one in sorted(RECIPES.glob("*/*.yaml"))]
        raise unknown("run", name, names).within(f"{display_path(file)}: {scale}.like")
    base = _extended(read_yaml(other), other)
    if scale not in base or "like" in base[scale]:
        raise UserError(
            f"{display_path(file)}: {scale}.like: {name} states no values for scale {scale}; name a run that does",
            code="missing-scale", scale=scale,
        )  # fmt: skip
    same = base.get("framework") == content.get("framework")
    return {key: value for key, value in base[scale].items() if same or key != "native"}


def _extended(content: dict[str, Any], file: Path) -> dict[str, Any]:
    if "extends" not in content:
        return content
    if not re.fullmatch(r"[\w.+-]+", str(content["extends"])):
        raise UserError(
            f"{display_path(file)}: extends: '{one_line(str(content['extends']))}' should name a run of the same "
            "recipe, without a folder",
            code="extends-elsewhere",
        )
    base = read_yaml(file.with_name(f"{content['extends']}.yaml"))
    if "extends" in base:
        raise UserError(
            f"{display_path(file)}: extends: '{content['extends']}' extends another run itself; extend that one",
            code="extends-twice",
        )
    if base.get("framework") != content.get("framework", base.get("framework")):
        scales = [base[scale] for scale in SCALES if isinstance(base.get(scale), dict)]
        for values in [*scales, *(stage for scale in scales for stage in scale.get("stages", []))]:
            values.pop("native", None)
    return _deep_merge(base, content)


def parse_run(content: dict[str, Any], name: str, file: Path, scale: str) -> Run:
    """A run from the content of its file.

    Args:
        content: as `read_yaml` gives it.
        name: `<recipe>/<run>`.
        file: where the content is from; a run that it extends is read from the same folder.
        scale: one of SCALES.

    Raises:
        UserError: the content breaks config/schemas/run.schema.yaml or contradicts itself, or there is no such scale.
    """
    return parse_whole_run(inherit(content, file), name, file, scale)


def parse_whole_run(content: dict[str, Any], name: str, file: Path, scale: str) -> Run:
    """As `parse_run`, from content that has what it inherits."""
    validate(content, "run", file)
    _check_content(content, file, scale)
    if scale not in content:
        raise UserError(
            f"{display_path(file)} has no values for scale {scale}: add them under `{scale}`, or name a run that has "
            f"them (crosszero runs --scale {scale})",
            code="missing-scale",
            scale=scale,
        )
    values, control = content[scale], content.get("control")
    return Run(
        name=name,
        file=file,
        scale=scale,
        title=content["title"],
        framework=content["framework"],
        algorithm=content["algorithm"],
        prompt=values.get("prompt", content["prompt"]),
        reference=content.get("reference"),
        deviations=tuple(content.get("deviations", ())),
        rewards=tuple(values.get("rewards", content["rewards"])),
        model=values["model"],
        stages=_stages(values, file, scale),
        hardware=values["hardware"],
        evaluation=values["evaluation"],
        control=control,
        chat_template_kwargs=content.get("chat_template_kwargs", {}),
        control_of=f"{name.partition('/')[0]}/{content['extends']}" if control else None,
    )


def _check_content(content: dict[str, Any], file: Path, scale: str) -> None:
    """Raise UserError for what the schema cannot say."""
    if scale not in SCALES:
        raise UserError(f"scale should be one of {', '.join(SCALES)}, not '{scale}'", code="unknown-name", kind="scale")
    _check_framework(content["framework"], file)
    if "sweep" in content:
        raise UserError(
            f"{display_path(file)}: sweep: a run has none; name the file of a sweep <sweep>.sweep.yaml",
            code="sweep-in-run",
        )
    if content.get("control") and "extends" not in content:
        raise UserError(
            f"{display_path(file)}: control: a control extends the run that it belongs to; add `extends`",
            code="control-without-run",
        )


def _stages(values: dict[str, Any], file: Path, scale: str) -> tuple[Stage, ...]:
    """The stages of a scale: what each states itself, over what the scale states for all."""
    stages: list[Stage] = []
    for number, own in enumerate(values.get("stages", [{}]), start=1):
        merged = {key: _merge(values.get(key, {}), own.get(key)) for key in STAGE_KEYS}
        steps_before = stages[-1].steps_before + stages[-1].steps if stages else 0
        merged["checkpoints"], merged["levels"] = tuple(merged["checkpoints"]), tuple(merged["levels"])
        stages.append(Stage(number=number, steps_before=steps_before, **merged))
        _check_checkpoints(stages[-1], file, scale)
    return tuple(stages)


def _merge(common: Any, own: Any) -> Any:
    if own is None:
        return common
    return {**common, **own} if isinstance(own, dict) else own


def _deep_merge(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _deep_merge(base[key], value) if both else value
    return merged


def _without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_nulls(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }


def framework_names() -> list[str]:
    """The frameworks that runs may name: the folders of frameworks/ with an adapter."""
    return sorted(adapter.parent.name for adapter in (ROOT / "frameworks").glob("*/adapter.py"))


def _check_framework(name: str, file: Path) -> None:
    if name not in framework_names():
        raise unknown("framework", name, framework_names()).within(f"{display_path(file)}: framework")


def _check_checkpoints(stage: Stage, file: Path, scale: str) -> None:
    steps = list(stage.checkpoints)
    if steps != sorted(steps) or steps[-1] != stage.steps:
        raise UserError(
            f"{display_path(file)}: {scale}.checkpoints should rise and end with the last step, {stage.steps}, but are "
            f"{steps}",
            code="checkpoints-unordered",
        )


def _explain(error: jsonschema.ValidationError, label: str) -> str:
    where = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties":
        known = cast(dict[str, Any], error.schema).get("properties", {})
        unknown = [key for key in cast(dict[str, Any], error.instance) if key not in known]
        keys = ", ".join(f"{where}.{key}" if where else key for key in unknown)
        return f"{label}: unknown key {keys}; known here are {', '.join(known)}"
    if error.validator == "anyOf":
        wanted = cast(dict[str, Any], error.schema).get("description", "something else")
        return f"{label}: {where} should be {wanted}, not {error.instance!r}"
    return f"{label}: {where or 'the file'}: {error.message}"

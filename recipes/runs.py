"""Load a run by name: recipes/<recipe>/<run>.yaml at one scale, its prompt, model and training sets looked up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from contracts.fingerprint import fingerprint
from contracts.run_file import EVERYWHERE, RECIPES, Run, Stage, inherit, parse_whole_run
from grading.extraction import BOX
from recipes import controls, models, rewards, sweeps, variants
from system.errors import UserError
from system.unknown_names import unknown
from system.yaml_files import display_path, read_yaml
from tasks import dataset_specs, prompts

SMOKE = "gpu_smoke"  # the recipe of `make gpu-smoke`


def run_names(scale: str = EVERYWHERE[0]) -> list[str]:
    """All runs, as <recipe>/<run>, in the order of their files; without those of sweeps and of `make gpu-smoke`.

    Args:
        scale: whose values they have.
    """
    files = [file for file in sorted(RECIPES.glob("*/*.yaml")) if file.parent.name != SMOKE]
    return [
        f"{file.parent.name}/{file.stem}"
        for file in files
        if not file.name.endswith(sweeps.SUFFIX) and (scale in EVERYWHERE or scale in inherit(read_yaml(file), file))
    ]


def smoke_run_names() -> list[str]:
    """The runs of `make gpu-smoke`, which reproduce nothing: made only where they are named."""
    return [f"{SMOKE}/{file.stem}" for file in sorted((RECIPES / SMOKE).glob("*.yaml"))]


def load_run(name: str, scale: str) -> Run:
    """Read and check recipes/<recipe>/<run>.yaml, or a run file elsewhere by its path, and take one scale of it.

    Args:
        name: `<recipe>/<run>`, `<recipe>/<sweep>@<number>` for a run of a sweep, or a variant's (recipes.variants).
        scale: one of SCALES.

    Raises:
        UserError: there is no such run, or no such scale of it, the file breaks the schema or contradicts itself, or a
            prompt, model or data set does not exist.
    """
    file = RECIPES / f"{name}.yaml"
    if variants.is_variant(name):
        return _load_variant(name, scale)
    if "@" in name:
        file = sweeps.sweep_file(name)
    elif name.endswith(".yaml") and Path(name).is_file():
        file = Path(name).absolute()
        name = f"{file.parent.name}/{file.stem}"
    elif file.parent.parent != RECIPES or file.name.endswith(sweeps.SUFFIX) or ".." in name or not file.is_file():
        raise unknown("run", name, run_names())
    return _checked_run(name, file, scale)


def _checked_run(name: str, file: Path, scale: str) -> Run:
    run = controls.apply_control(parse_whole_run(file_content(name, file, scale), name, file, scale))
    check_training(run)
    return run


def _load_variant(name: str, scale: str) -> Run:
    base = load_run(variants.base_run(name), scale)
    try:
        run = _checked_run(name, base.file, scale)
    except UserError as error:
        raise error.within(f"variant {variants.label(name)}") from None
    if replace(run, name=base.name) == base:
        raise UserError(
            f"{name} does not differ from {base.name} at scale {scale}, whose values these are already: set others",
            code="equal-settings",
            runs=[base.name, name],
        )
    return run


def load_sweep(name: str, scale: str) -> dict[str, Run]:
    """The runs of a sweep at one scale by name.

    Raises:
        UserError: as `load_run`, or two settings train in the same way.
    """
    members: dict[str, Run] = {}
    trained: dict[str, str] = {}
    for member in sweeps.run_names(name, scale):
        run = load_run(member, scale)
        settings = fingerprint([training_settings(run, stage) for stage in run.stages])
        if settings in trained:
            raise UserError(
                f"{display_path(run.file)}: sweep: settings should differ in how they train, but "
                f"{trained[settings]} and {member} do not at scale {scale}; a key that each stage states itself has no "
                "effect",
                code="equal-settings",
                runs=[trained[settings], member],
            )
        members[member], trained[settings] = run, member
    return members


def file_content(name: str, file: Path, scale: str) -> dict[str, Any]:
    """What a run's file holds and inherits; a sweep's setting's or a variant's values are in place of its own."""
    if variants.is_variant(name):
        return variants.apply(inherit(read_yaml(file), file), name, scale)
    return inherit(sweeps.run_content(name, scale) if "@" in name else read_yaml(file), file)


def training_settings(run: Run, stage: Stage) -> dict[str, Any]:
    """What decides a stage's training besides its inputs, its seed and the environment.

    The number of GPUs is among it, because native checkpoints are split over them; memory and time limits are not.
    """
    hardware = {key: run.hardware[key] for key in ("gpus", "nodes", "sharding") if key in run.hardware}
    own = asdict(stage)
    del own["dataset"]  # its problems are an input
    for added in ("lora", "levels"):
        if not own[added]:
            del own[added]  # results that were made before there was such a setting stay
    if (extraction := rewards.extraction_of(run)) != BOX:
        own["extraction"] = extraction
    if run.chat_template_kwargs:
        own["chat_template_kwargs"] = run.chat_template_kwargs
    return {
        **own,
        "framework": run.framework,
        "algorithm": run.algorithm,
        "prompt": prompts.load(run.prompt).text_fields(),
        "rewards": run.rewards,
        "model": run.model,
        "hardware": hardware,
    }


def check_training(run: Run) -> None:
    """Raise UserError, with the file and the key, for a prompt, model or training set that does not exist."""
    _check_name(run, "prompt", "prompt", run.prompt, prompts.library())
    _check_name(run, f"{run.scale}.model", "model", run.model, _models())
    for stage in run.stages:
        _check_name(run, f"{run.scale}.dataset", "training set", stage.dataset, _training_sets())


def _check_name(run: Run, key: str, what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise unknown(what, name, known).within(f"{display_path(run.file)}: {key}")


# Read once: a workflow checks all runs, and the files do not change meanwhile.
_models, _training_sets = cache(models.names), cache(dataset_specs.training_sets)

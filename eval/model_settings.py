"""How a model is asked that is evaluated by itself: as the user says, else as its run was, else as benchmarks have it.

A checkpoint's record names its run, wherever the folder is. Where these do not decide, the user is asked: a UserError
`undecided-settings` with the choices. Nothing is taken from a run that has nothing to do with the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from contracts import model_folder, provenance, seeds
from contracts.run_file import SCALES, Run
from eval import benchmark, protocols
from eval.run_settings import generation_gpus
from eval.subset import Subset
from recipes.runs import load_run
from system.errors import UserError
from system.unknown_names import unknown
from tasks import prompts

OPTIONS = "with --protocol and --prompt, or protocol=… and prompt=… in the configuration"


@dataclass(frozen=True)
class ModelSettings:
    """How models are evaluated by themselves; `evaluation`, `hardware` and `device` are as those of a Run.

    Attributes:
        source: where the settings are from, for readers.
        benchmarks: that are asked.
        evaluation: protocol and override, as in a run file.
        hardware: gpus and cpus.
        subset: the part of the benchmarks; None: all problems.
    """

    source: str
    benchmarks: tuple[str, ...]
    evaluation: dict[str, Any]
    hardware: dict[str, Any]
    subset: Subset | None = None

    @property
    def device(self) -> str:
        """Where vLLM runs: cuda or cpu."""
        return "cuda" if self.hardware["gpus"] else "cpu"


@dataclass(frozen=True)
class Model:
    """A model that is to be evaluated, or the samples of one, with which it is compared.

    Attributes:
        name: as the user wrote it.
        folder: where it is; None while it has to be downloaded or trained.
        run: that it is a checkpoint of; None if its record names none.
        sampled_as: `evaluation` by which samples were made, with their benchmarks; None for models.
    """

    name: str
    folder: Path | None = None
    run: Run | None = None
    sampled_as: dict[str, Any] | None = None

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """How its record says that it is asked; None if it does not."""
        return self.run.evaluation if self.run else self.sampled_as

    @property
    def source(self) -> str:
        """What its record is of, for readers."""
        return f"{self.run.name}, by the model's record" if self.run else f"the samples of {self.name}"


@dataclass(frozen=True)
class Wishes:
    """What the user says: all of it may be missing."""

    benchmarks: Sequence[str] = ()
    protocol: str | None = None
    prompt: str | None = None
    max_tokens: int | None = None
    device: str = "cpu"
    subset: Subset | None = None


def undecided(sentence: str, **facts: Any) -> NoReturn:
    """Ask the user."""
    raise UserError(f"{sentence}: say which, {OPTIONS}", code="undecided-settings", **facts)


def run_of_folder(folder: Path, scale: str) -> Run | None:
    """The run whose checkpoint a folder is, by the record in it; None if that names none.

    Args:
        folder: of a model; it may be a copy.
        scale: looked at first, for records that do not say at which scale the run was.

    Raises:
        UserError: the run is not here, so that its prompt and protocol are unknown.
    """
    record = provenance.read(folder)
    name = record.get("run")
    if not isinstance(name, str) or "step" not in record:
        return None
    scales = [record["scale"]] if "scale" in record else [scale, *(other for other in SCALES if other != scale)]
    candidates = []
    for each in scales:
        try:
            candidates.append(load_run(seeds.run_of(name), each))
        except UserError:
            continue
    if not candidates:
        return None if record.get("step") == 0 else _unknown_run(folder, name)
    return next((run for run in candidates if run.model == record.get("model")), candidates[0])


def _unknown_run(folder: Path, name: str) -> NoReturn:
    undecided(
        f"{folder} is a checkpoint of {name}, a run that is not here: its prompt and protocol are unknown", run=name
    )


def _with_prompt(protocol: str, override: Mapping[str, Any], prompt: str | None) -> dict[str, Any]:
    """`evaluation` of a run file; a prompt that is the protocol's own is not repeated."""
    values = dict(override) | ({"prompt": prompt} if prompt else {})
    if values.get("prompt") == protocols.load(protocol).prompt:
        del values["prompt"]
    return {"protocol": protocol, "override": values}


def prompt_of(evaluation: Mapping[str, Any]) -> str:
    """The prompt of `evaluation`."""
    return protocols.load(evaluation["protocol"], evaluation.get("override")).prompt


def describe(evaluation: Mapping[str, Any]) -> str:
    """Protocol, prompt and what else is overridden, for readers."""
    more = {key: value for key, value in (evaluation.get("override") or {}).items() if key != "prompt"}
    changed = "".join(f", {key} {value}" for key, value in more.items())
    return f"protocol {evaluation['protocol']}, prompt {prompt_of(evaluation)}{changed}"


def misfits(prompt: str, benchmarks: Sequence[str]) -> list[str]:
    """The benchmarks that a prompt does not ask for: it belongs to another task, or theirs has prompts of its own."""
    owner = prompts.task_of_prompt(prompt)
    return [
        name
        for name in benchmarks
        if (task := benchmark.task_of(name)) != owner and (owner is not None or prompts.prompts_of_task(task))
    ]


def _choices(evaluations: Mapping[str, Mapping[str, Any]]) -> str:
    return "; ".join(f"{name}: {describe(evaluation)}" for name, evaluation in evaluations.items())


def _agreed(evaluations: Mapping[str, dict[str, Any]], what: str) -> dict[str, Any]:
    """The one evaluation that all have; asks the user where they differ."""
    distinct = {json.dumps(evaluation, sort_keys=True) for evaluation in evaluations.values()}
    if len(distinct) > 1:
        undecided(f"{what} ({_choices(evaluations)})", choices=sorted(evaluations))
    return next(iter(evaluations.values()))


def _benchmarks(models: Sequence[Model], wishes: Wishes) -> tuple[str, ...]:
    """Those that the user names, else those of the models' runs."""
    if wishes.benchmarks:
        return tuple(dict.fromkeys(wishes.benchmarks))
    lists = [model.evaluation["benchmarks"] for model in models if model.evaluation]
    common = [name for name in (lists[0] if lists else []) if all(name in each for each in lists)]
    if not common:
        raise UserError(
            f"on which benchmarks should {' and '.join(model.name for model in models)} be evaluated? Name some with "
            f"--benchmark, such as gsm8k, or benchmarks='[gsm8k]' in the configuration; all are in eval/benchmarks",
            code="missing-benchmarks",
        )  # fmt: skip
    return tuple(common)


def _evaluation(models: Sequence[Model], benchmarks: Sequence[str], wishes: Wishes) -> tuple[dict[str, Any], str]:
    """`evaluation` of a run file, and where it is from."""
    by_run = {
        model.name: _with_prompt(model.evaluation["protocol"], model.evaluation.get("override", {}), wishes.prompt)
        for model in models
        if model.evaluation
    }
    if wishes.protocol:
        return _with_protocol(wishes.protocol, by_run, benchmarks, wishes.prompt), "as named"
    if by_run:
        agreed = _agreed(by_run, "the two sides are asked in different ways")
        named = " and ".join(dict.fromkeys(model.source for model in models if model.evaluation))
        return agreed, f"as {named}" + (", with the named prompt" if wishes.prompt else "")
    defaults = {}
    for name in benchmarks:
        protocol, prompt = benchmark.default_settings(name)
        defaults[name] = _with_prompt(protocol, {}, wishes.prompt or prompt)
    agreed = _agreed(
        defaults, "the benchmarks are asked in different ways, so evaluate them one at a time, or all alike"
    )
    tasks = ", ".join(dict.fromkeys(benchmark.task_of(name) for name in benchmarks))
    return agreed, f"the default of {tasks}" + (", with the named prompt" if wishes.prompt else "")


def _with_protocol(
    protocol: str, by_run: Mapping[str, dict[str, Any]], benchmarks: Sequence[str], prompt: str | None
) -> dict[str, Any]:
    """A named protocol with the named prompt, or its own; where that is of another task, the run's or the task's."""
    candidates = [protocols.load(protocol).prompt, *map(prompt_of, by_run.values())]
    defaults = {benchmark.default_settings(name)[1] for name in benchmarks}
    candidates += list(defaults) if len(defaults) == 1 else []
    fitting = (name for name in candidates if not misfits(name, benchmarks))
    return _with_prompt(protocol, {}, prompt or next(fitting, candidates[0]))


def decide(models: Sequence[Model], wishes: Wishes) -> ModelSettings:
    """How to ask models: all alike.

    Args:
        models: one, or the two sides of a comparison.
        wishes: what the user says.

    Raises:
        UserError: a name is unknown, a model has no chat template, or the settings are not decided.
    """
    for what, name, known in (
        ("evaluation protocol", wishes.protocol, protocols.names()), ("prompt", wishes.prompt, list(prompts.library()))
    ):  # fmt: skip
        if name and name not in known:
            raise unknown(what, name, known)
    benchmark.check_names(wishes.benchmarks)
    benchmarks = _benchmarks(models, wishes)
    evaluation, source = _evaluation(models, benchmarks, wishes)
    if wishes.max_tokens:
        evaluation = evaluation | {"override": evaluation["override"] | {"max_tokens": wishes.max_tokens}}
    prompt = prompt_of(evaluation)
    if not wishes.prompt and (others := misfits(prompt, benchmarks)):
        own = {name: benchmark.default_settings(name)[1] for name in others}
        undecided(
            f"the settings are {source} with the prompt {prompt}, which does not ask for what "
            f"{' and '.join(f'{name} (its own: {own[name]})' for name in others)} needs",
            prompt=prompt, benchmarks=others,
        )  # fmt: skip
    for model in models:
        _check_template(model, evaluation, benchmarks)
    gpus = max((generation_gpus(model.run) for model in models if model.run), default=0) or 1
    hardware = {"gpus": gpus, "cpus": 8 * gpus} if wishes.device == "cuda" else {"gpus": 0, "cpus": 1}
    return ModelSettings(source, benchmarks, evaluation, hardware, wishes.subset)


def _check_template(model: Model, evaluation: Mapping[str, Any], benchmarks: Sequence[str]) -> None:
    """Ask the user for another prompt where the model's tokenizer has no chat template, and the prompt needs one."""
    protocol = protocols.load(evaluation["protocol"], evaluation.get("override"))
    if model.folder is None or not protocol.needs_chat_template() or model_folder.chat_template(model.folder):
        return
    raw = [name for name, prompt in prompts.library().items() if prompt.raw and not misfits(name, benchmarks)]
    undecided(
        f"{model.name} has no chat template, like many base models, and the prompt {protocol.prompt} needs one; "
        f"prompts that need none are {', '.join(raw)}",
        prompt=protocol.prompt, choices=raw,
    )  # fmt: skip

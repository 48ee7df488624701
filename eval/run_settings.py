"""How run files are evaluated: `python -m eval.run_settings` checks that of every run at both scales, without a GPU."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Protocol

from contracts.run_file import SCALES, Run
from eval import benchmark, protocols
from grading.extraction import BOX, rule_of_prompt
from grading.verdicts import GRADERS, version
from recipes.runs import load_run, run_names
from system.errors import UserError, run_command
from system.unknown_names import unknown
from system.yaml_files import display_path
from tasks import prompts, registry


class Evaluated(Protocol):
    """What says how something is evaluated: a Run, or eval.model_settings.ModelSettings."""

    @property
    def evaluation(self) -> dict[str, Any]:
        """Protocol, override and benchmarks, as in a run file."""

    @property
    def hardware(self) -> dict[str, Any]:
        """Its gpus and cpus."""

    @property
    def device(self) -> str:
        """Either cuda or cpu."""


def check_evaluation(run: Run) -> None:
    """Raise UserError, with the file and the key, for a benchmark, protocol or override that does not exist."""
    where = f"{display_path(run.file)}: {run.scale}.evaluation"
    for name in run.evaluation["benchmarks"]:
        if name not in benchmark.names():
            raise unknown("benchmark", name, benchmark.names()).within(f"{where}.benchmarks")
    protocol = run.evaluation["protocol"]
    if protocol not in protocols.names():
        raise unknown("evaluation protocol", protocol, protocols.names()).within(f"{where}.protocol")
    try:
        _check_extraction(protocols.load(protocol, run.evaluation.get("override")))
    except UserError as error:
        raise error.within(f"{where}.override") from None


def _check_extraction(protocol: protocols.Protocol) -> None:
    """Raise UserError for an extraction rule that does not look where the prompt asks; all look in a box first."""
    rule = rule_of_prompt(prompts.load(protocol.prompt), protocol.extraction)
    if rule not in (BOX, protocol.extraction):
        raise UserError(
            f"extraction: the prompt '{protocol.prompt}' asks for the answer where {rule} looks, and "
            f"{protocol.extraction} does not: leave `extraction` out",
            code="extraction-does-not-see-answer",
            prompt=protocol.prompt,
            extraction=protocol.extraction,
        )


def check_regrading(grader: str | None, extraction: str | None) -> None:
    """Raise UserError for a configured grader or extraction rule that does not exist."""
    for key, name, known in (("grader", grader, GRADERS), ("extraction", extraction, protocols.EXTRACTIONS)):
        if name not in (None, *known):
            raise unknown(key, str(name), known).within("config")


def protocol_of(run: Evaluated) -> protocols.Protocol:
    """The protocol of a run's evaluation, with what the run overrides."""
    return protocols.load(run.evaluation["protocol"], run.evaluation.get("override"))


def benchmarks_as_evaluated(run: Evaluated) -> list[str]:
    """The benchmarks of a run in order, each with its protocol and what the run changes in that: equal if alike."""
    released, own = protocols.load(run.evaluation["protocol"]), protocol_of(run)
    changed = {
        one.name: value for one in fields(own) if (value := getattr(own, one.name)) != getattr(released, one.name)
    }
    texts = [
        f"{key} {value if isinstance(value, str) else json.dumps(value, sort_keys=True)}"
        for key, value in sorted(changed.items())
    ]
    protocol = own.name + (f" ({', '.join(texts)})" if texts else "")
    return sorted(f"{name} by {protocol}" for name in run.evaluation["benchmarks"])


def generation_gpus(run: Evaluated) -> int:
    """GPUs for sampling, one vLLM process on each; 0 without any."""
    gpus: int = run.evaluation.get("gpus", min(run.hardware["gpus"], 8))
    return gpus


def sampling_settings(run: Evaluated, benchmarks: Iterable[str]) -> dict[str, Any]:
    """What decides the samples besides the checkpoints, the problems, the seed and the environment.

    Args:
        run: says how it is evaluated.
        benchmarks: on which.
    """
    protocol = protocol_of(run)
    decoding = {**protocol.decoding(), "prompt": prompts.load(protocol.prompt).text_fields()}
    repeats = {name: protocol.repeats_of(name) for name in benchmarks}
    return {"protocol": protocol.name, "decoding": decoding, "repeats": repeats}


def grading_settings(tasks: Iterable[str]) -> dict[str, str]:
    """What decides the verdicts besides samples, problems, extraction and packages: the graders' versions, by task."""
    return {task: version(registry.get(task)) for task in tasks}


def main() -> None:
    """Check every run at every scale that it has values for."""
    for scale in SCALES:
        for name in run_names(scale):
            check_evaluation(load_run(name, scale))
    print(f"the evaluations of {len(run_names())} runs name benchmarks and protocols that exist")


if __name__ == "__main__":
    run_command(main)

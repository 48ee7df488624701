"""Keys in a framework's settings by its adapter, what it refuses, and what was changed so that it can train them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts.run_file import Run, Stage
from frameworks.command_parser import CommandParser
from frameworks.command_settings import Flags
from frameworks.run_settings import Refused
from system.errors import UserError

ADJUSTED = ("batch.prompts_per_update", "rollout.gpus")  # refusals that other GPUs, or fewer at once, may mend
MOST_CHANGES = 200  # each leaves a key out, fills one in, or fits the batch
DEPENDENT = {  # by key, those that mean nothing, or something else, without it
    "objective.policy_loss": tuple(f"objective.{part}" for part in ("clip_ratio", "clip_ratio_high", "dual_clip")),
    "objective.sampler_correction": tuple(f"objective.correction_{part}" for part in ("form", "low", "high")),
}
OFF = {"objective.kl_coefficient": 0.0}  # by key, what is stated where its value is refused
GROUPS = ("batch", "rollout", "optimizer", "objective", "lora")


def as_run(common: Mapping[str, Any], framework: str, name: str = "translated") -> tuple[Run, Stage]:
    """A run of one stage with the values of the keys."""
    grouped: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for key, value in common.items():
        group, _, rest = key.partition(".")
        if group in GROUPS:
            grouped[group][rest] = value
    steps, every = int(common.get("steps", 1)), int(common.get("checkpoints", 0))
    hardware = {
        name: common[f"hardware.{name}"] for name in ("gpus", "nodes", "sharding") if f"hardware.{name}" in common
    }
    stage = Stage(
        number=1, steps_before=0, dataset=str(common.get("dataset", "data")), levels=(), steps=steps,
        checkpoints=(every or steps,), native={}, **grouped,
    )  # fmt: skip
    run = Run(
        name=name, file=Path(name), scale="full", title=name, framework=framework, algorithm=common["algorithm"],
        prompt="", reference=None, deviations=(), rewards=(), model=str(common.get("model", "model")), stages=(stage,),
        hardware={"gpus": 1, **hardware}, evaluation={},
    )  # fmt: skip
    return run, stage


class Rendering:
    """The keys in a framework's settings, with what it refuses."""

    def __init__(self, parser: CommandParser, common: Mapping[str, Any]) -> None:
        """Renders; raises UserError for what cannot be left out or changed."""
        self.parser, self.common = parser, dict(parser.own_values(common))
        self.refused: dict[str, str] = {}
        self.notes = {key: note for key, note in parser.notes.items() if key in common}
        release = parser.tables["release"]
        if self.common["algorithm"] not in parser.algorithms:
            if self.common["batch.samples_per_prompt"] == 1:
                raise self._one_completion(
                    f"it trains {', '.join(parser.algorithms)} alone, from groups of completions"
                )
            self.refused["algorithm"] = f"{release} trains {', '.join(parser.algorithms)} alone"
            self.common["algorithm"] = parser.algorithms[0]
        for key in parser.not_in_command.keys() & self.common.keys():
            self.refused[key] = parser.not_in_command[key]
            del self.common[key]
        flags = self._flags()
        extra = parser.extra_settings(self.common)
        for key in self.common:
            if key.startswith("more.") and key not in {source for _, source in extra.values()}:
                self.refused[key] = parser.why_without.get(key, f"{release} has no setting for it")
        for key, setting in parser.unconverted.items():
            value = self.common.get(key)
            if isinstance(value, list):
                value = value[0] if len(value) == 1 else parser.several_datasets(value)
            part = isinstance(value, float) and not value.is_integer()
            if part and type(parser.defaults.get(setting)) is int:
                self.refused[key] = f"{release} takes whole numbers alone"
            elif value is not None:
                flags[setting] = (int(value) if isinstance(value, float) and not part else value, key)
            elif key in self.common:
                self.refused[key] = f"{release} takes one"
            if key in self.refused:
                flags.pop(setting, None)
        self.flags: Flags = flags | extra
        self.refused = {key: reason + self._what_acts(key) for key, reason in self.refused.items()}

    def _what_acts(self, key: str) -> str:
        """The defaults in place of a key that is refused; empty if there are none."""
        settings = [name for name in self.parser.one_to_one.get(key, ()) if name not in self.flags]
        acting = [f"{name} is {self.parser.defaults[name]}" for name in settings if self.parser.defaults.get(name)]
        return f"; there {', '.join(acting)} by default" if acting else ""

    def _one_completion(self, reason: str) -> UserError:
        return UserError(
            f"{self.common['algorithm']} with one completion per prompt cannot be expressed in "
            f"{self.parser.tables['release']}: {reason}",
            code="one-completion-per-prompt",
        )

    def _flags(self) -> Flags:
        for _ in range(MOST_CHANGES):
            try:
                self.launcher, stated = self._command(self.common)
                flags = {name: (value, key.removeprefix("full.")) for name, (value, key) in stated.items()}
                missing = {"steps", "checkpoints"} - self.common.keys()
                return {name: (value, key) for name, (value, key) in flags.items() if key not in missing}
            except Refused as refusal:
                if refusal.key in ADJUSTED and self._fit():
                    continue
                if refusal.key == "batch.samples_per_prompt" and refusal.key in self.common:
                    raise self._one_completion(refusal.reason) from None
                if refusal.key == "hardware.nodes" and self.common.get("rollout.engine") == "vllm-server":
                    self.common["rollout.engine"] = "vllm-colocated"
                    self.common.pop("rollout.gpus")
                    self.notes["rollout.engine"] = "vllm-server in the text, which several nodes do not have here"
                elif refusal.key in self.common and refusal.key != ADJUSTED[0]:
                    for key in (refusal.key, *DEPENDENT.get(refusal.key, ())):
                        if (value := self.common.pop(key, None)) is not None:
                            self.refused[key] = refusal.reason
                        if value and key in OFF:
                            self.common[key] = OFF[key]
                            self.notes[key] = "the text's value cannot be expressed"
                else:
                    self._fill(refusal)
        raise UserError(
            f"no settings of {self.parser.tables['release']} fit the text after {MOST_CHANGES} changes; correct its "
            "batch and GPUs",
            code="no-fit",
        )

    def _command(self, common: Mapping[str, Any]) -> tuple[list[str], Flags]:
        run, stage = as_run(common, self.parser.framework)
        return self.parser.launcher(run, stage), self.parser.stated_settings(run, stage)

    def _fill(self, refusal: Refused) -> None:
        """Take the framework's own default for what it needs and the text does not have."""
        settings = self.parser.one_to_one.get(refusal.key, ())
        if refusal.key not in self.parser.one_to_one and refusal.key != "batch.samples_per_device":
            raise refusal
        default = next(
            (self.parser.defaults[name] for name in settings if self.parser.defaults.get(name) is not None), None
        )
        if refusal.key == "batch.samples_per_device":
            default = 1
        if default is None:
            raise refusal
        self.common[refusal.key] = default
        self.notes[refusal.key] = (
            "needed there and not stated in the text: its default" if default != 1 else "not stated in the text"
        )

    def _fit(self) -> bool:
        """Take as many GPUs, and then as many completions at once, as divide the batch: neither changes an update."""
        gpus, at_once = self.common["hardware.gpus"], self.common.get("batch.samples_per_device", 1)
        for count in range(gpus, 0, -1):
            for size in (size for size in range(at_once, 0, -1) if at_once % size == 0):
                nodes = min(self.common.get("hardware.nodes", 1), count)
                changed = {"hardware.gpus": count, "hardware.nodes": nodes, "batch.samples_per_device": size}
                if count % nodes == 0 and self._fits(changed):
                    self.common |= changed
                    for key, before in (("hardware.gpus", gpus), ("batch.samples_per_device", at_once)):
                        if changed[key] != before:
                            self.notes[key] = f"{before} in the text, by which the batch does not divide here"
                    return True
        return False

    def _fits(self, changed: Mapping[str, Any]) -> bool:
        """Whether the batch divides with changed values, whatever else the framework refuses."""
        trial = {**self.common, **changed}
        for _ in range(len(trial) + 1):
            try:
                self._command(trial)
            except Refused as refusal:
                if refusal.key in ADJUSTED or refusal.key not in trial:
                    return refusal.key not in ADJUSTED
                del trial[refusal.key]
            else:
                return True
        return False

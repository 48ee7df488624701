"""Every setting of a cited script, and every default that it relied on, beside the run that was made of it.

results/reference/script_settings.yaml holds by run, or by `<run> stage-2` where a later stage has a script of its own,

source     the script, a name in fidelity.yaml
release    of the framework, whose defaults the script relied on
flags      how many settings the script states, counted in its text
settings   each with its value, as the script has it
reasons    by setting or key, why it is another here, or not there, where fidelity.yaml does not say it
keys       of a trainer that is no framework here: by setting, the key that it is in the run file
means      of such a trainer: by setting, the run file's word for its value
defaults   of such a trainer: its name in `relied_on`

and under `relied_on`, by framework, what scripts leave to it that has no key, or none in every release:

key        of the run file, or of such a trainer; where it is stated, there is a row for it already
setting    under its name of today, from which the value here is, and then, if it was no other
here       the value here, of what is no setting
then       the value of its release, where no table of earlier defaults has it
read       where `then` was read
for        algorithms or estimators
why        the value here is another

Script and run are read by the translator, in the same keys; of a trainer that is no framework here, by `keys`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from analysis.reference import SCRIPTS
from contracts.run_file import Run
from frameworks import command_parser
from frameworks.command_parser import CommandParser
from frameworks.command_reading import Reading
from frameworks.earlier_releases import chosen_release, defaults_then
from frameworks.run_settings import values
from system.errors import UserError
from system.yaml_files import read_yaml
from translate.translation import first_reason, read_settings, same_value

SAME, DEVIATION, NOT_APPLICABLE = "same", "documented deviation", "not applicable"
OURS_OTHERWISE = {  # keys whose values have other names here, or follow from others
    **dict.fromkeys(("model", "dataset"), "by this project's name"),
    **dict.fromkeys(
        ("batch.samples_per_device", "hardware.gpus", "hardware.nodes", "hardware.sharding", "rollout.engine",
         "rollout.gpus"), "does not change the update"),
    "seed": "each seed is its own training", "epochs": "run files count steps", "more.max_samples": "steps say it",
    "checkpoints": "those that are evaluated",
}  # fmt: skip


class ScriptRow(NamedTuple):
    """One setting of a script, or one default that it relied on."""

    key: str
    here: Any
    published: Any
    verdict: str
    why: str


def registered() -> dict[str, Any]:
    """By run, or run and stage, what its script says."""
    runs: dict[str, Any] = read_yaml(SCRIPTS)["runs"]
    return runs


def names_of(run: Run) -> list[str]:
    """The entries of `registered` that are of a run."""
    return [name for name in registered() if name.partition(" ")[0] == run.name]


def rows(name: str, run: Run, published: Mapping[str, Any], here: Mapping[str, Any]) -> list[ScriptRow]:
    """A row for each setting of a script and for each default of its time that has a key.

    Args:
        name: one of `names_of`.
        run: at full scale.
        published: by key, the entry of fidelity.yaml.
        here: by key, the run's own value.

    Raises:
        UserError: a value differs without a reason.
    """
    script, later = registered()[name], name.partition(" ")[2]
    if later:
        number = int(later.removeprefix("stage-"))
        run = dataclasses.replace(run, stages=run.stages[number - 1 : number])
        of_stage = {
            key.removeprefix(f"{later}."): entry for key, entry in published.items() if key.startswith(f"{later}.")
        }
        published = {**published, **of_stage}
    if "keys" in script:
        return _rows_of_another_trainer(run, script, published, here)
    parser = command_parser.load(run.framework)
    then = defaults_then(parser, chosen_release(parser, str(script["release"])))
    stated = script["settings"]
    reading, labels = read_settings(parser, stated, parser.meant_then(stated, then))
    own, _ = read_settings(parser, {name: value for name, (value, _) in _own_settings(parser, run).items()})
    comparison = _Comparison(run, parser, reading, own, script.get("reasons", {}), published)
    of_flags = [comparison.row_of_flag(name, ", ".join(texts)) for name, texts in labels.items()]
    unstated = [key for key, names in reading.settings.items() if not any(name in labels for name in names)]
    of_keys = [comparison.row_of_key(key, f"{key}, a default of {script['release']}") for key in unstated]
    has_row, defaults = {*labels, *reading.settings, *here}, {**parser.defaults, **then}
    return of_flags + of_keys + _rows_relied_on(run, run.framework, defaults, str(script["release"]), has_row)


def _rows_of_another_trainer(
    run: Run, script: Mapping[str, Any], published: Mapping[str, Any], here: Mapping[str, Any]
) -> list[ScriptRow]:
    """A row for each setting: its value, in the run file's words, beside that of its key, or why it has no key.

    Raises:
        UserError: a value differs without a reason.
    """
    table_rows = list[ScriptRow]()
    for name, value in script["settings"].items():
        key, text = script["keys"].get(name), f"{name}={value}"
        if key is None:
            if not (reason := script["reasons"].get(name)):
                raise _unexplained(run, name)
            table_rows.append(ScriptRow(text, None, value, NOT_APPLICABLE, reason))
        elif same_value(script["means"].get(name, value), here[key]):
            table_rows.append(ScriptRow(text, here[key], value, SAME, key))
        elif key in published and published[key].why:
            table_rows.append(ScriptRow(text, here[key], value, DEVIATION, published[key].why))
        else:
            raise _unexplained(run, name)
    return table_rows + _rows_relied_on(run, script["defaults"], {}, script["defaults"], {*here, *script["settings"]})


def _rows_relied_on(
    run: Run, trainer: str, defaults: Mapping[str, Any], release: str, has_row: Collection[str]
) -> list[ScriptRow]:
    """A row for each default of `relied_on` that the script does not state.

    Raises:
        UserError: a value differs without a reason.
    """
    parser = command_parser.load(run.framework)
    own = {**parser.defaults, **{name: value for name, (value, _) in _own_settings(parser, run).items()}}
    estimator = run.stages[0].objective.get("estimator", run.algorithm)
    table_rows = list[ScriptRow]()
    for name, entry in read_yaml(SCRIPTS)["relied_on"][trainer].items():
        setting = entry.get("setting")
        if entry.get("key") in has_row or setting in has_row or estimator not in entry.get("for", [estimator]):
            continue
        here = own[setting] if setting else entry["here"]
        value = entry["then"] if "then" in entry else defaults[setting]
        same = same_value(here, value)
        if not same and "why" not in entry:
            raise _unexplained(run, name)
        verdict, why = (SAME, f"read in {entry['read']}") if same else (NOT_APPLICABLE, entry["why"])
        table_rows.append(ScriptRow(f"{name}, a default of {release}", here, value, verdict, why))
    return table_rows


def _unexplained(run: Run, name: str) -> UserError:
    return UserError(
        f"{run.name}: {name} of its script has no row; add it to the run, or the reason to "
        f"results/reference/{SCRIPTS.name}",
        code="unexplained-deviation", run=run.name, key=name,
    )  # fmt: skip


def _own_settings(parser: CommandParser, run: Run) -> Mapping[str, tuple[Any, str]]:
    flags = parser.stated_settings(run, run.stages[0])
    gpus = {parser.gpus: (run.hardware["gpus"] - run.stages[0].rollout.get("gpus", 0), "")} if parser.gpus else {}
    return {name.lstrip("+"): setting for name, setting in {**flags, **gpus}.items()}


class _Comparison:
    """One script beside its run."""

    def __init__(
        self, run: Run, parser: CommandParser, reading: Reading, own: Reading,
        reasons: Mapping[str, str], published: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.run, self.parser, self.reading, self.own, self.reasons = run, parser, reading, own, reasons
        self.published = published
        self.in_file = {**values(run.stages[0]), "model": run.model, "dataset": run.stages[0].dataset}

    def row_of_flag(self, name: str, text: str) -> ScriptRow:
        """A setting that the script states."""
        keys = [key for key, settings in self.reading.settings.items() if name in settings]
        differing = [key for key in keys if self._differs(key)]
        if keys:
            return self.row_of_key((differing or keys)[0], text)
        here = self.own.stated.get(name, self.parser.defaults.get(name))
        value = self.reading.stated.get(name)
        if self.parser.is_machine(name) or name.startswith("export "):
            return ScriptRow(text, None, value, NOT_APPLICABLE, "of the machine, files and logs alone")
        if name in self.reading.idle:
            return ScriptRow(text, here, value, SAME, self.reading.idle[name])
        if name in self.parser.defaults and same_value(here, value):
            return ScriptRow(text, here, value, SAME, "")
        reason = self.reasons.get(name) or first_reason(self.parser.tables["cannot"], name)
        return ScriptRow(text, here, value, NOT_APPLICABLE, self._needed(name, reason))

    def row_of_key(self, key: str, text: str) -> ScriptRow:
        """A value that has a key."""
        here, value = self._here(key), self.reading.common[key]
        if not self._differs(key):
            return ScriptRow(text, here, value, SAME, "")
        entry = self.published.get(key)
        reason = self.reasons.get(key) or (entry.why if entry else "")
        if not reason and key in OURS_OTHERWISE:
            return ScriptRow(text, here, value, NOT_APPLICABLE, OURS_OTHERWISE[key])
        if not reason and entry and same_value(entry.published, here):
            reason = f"another source states it: {entry.source} {entry.location}"
        return ScriptRow(text, here, value, DEVIATION, self._needed(key, reason))

    def _differs(self, key: str) -> bool:
        return not same_value(self._here(key), self.reading.common[key])

    def _here(self, key: str) -> Any:
        """The run file's value, or what its command amounts to without one."""
        return self.in_file.get(key, self.own.common.get(key))

    def _needed(self, name: str, reason: str | None) -> str:
        if not reason:
            raise _unexplained(self.run, name)
        return reason

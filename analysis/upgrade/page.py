"""The page "what changes": how each step ended, then defaults by run, formulas, verdicts, gains and packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis.pages import page
from analysis.pages.table_texts import interval_text, percent, points
from analysis.upgrade.candidate import Candidate, Outcome
from eval.statistics import Estimate
from system import durable

MOST_ROWS = 200  # of a table


class Section(NamedTuple):
    """A table of the page; without rows, the sentence stands alone."""

    title: str
    sentence: str
    table: pd.DataFrame


def write(candidate: Candidate, old: str, steps: Mapping[tuple[str, str], Outcome | None], accept: str) -> Path:
    """Write index.html into the candidate's folder; returns the file.

    Args:
        candidate: the new version.
        old: the version that is pinned, or several.
        steps: the outcome by name and environment, in order; None where it was not begun.
        accept: the command that puts the version in place; empty where there is no new lock.
    """
    outcomes = [one for one in steps.values() if one]
    sections = [
        section
        for make in (_defaults, _other_defaults, _formulas, _verdicts, _evaluations, _gains, _packages)
        if (section := make(outcomes)) is not None
    ]
    text = page.environment().get_template("upgrade.html.j2").render(
        css=page.css(), candidate=candidate, old=old, accept=accept, steps=page.plain(_steps(steps)),
        failed=sum(one.failed for one in outcomes), missing=len(steps) - len(outcomes),
        sections=[(one.title, one.sentence, page.plain(one.table.head(MOST_ROWS)), len(one.table)) for one in sections],
        most=MOST_ROWS,
    )  # fmt: skip
    file = candidate.folder / "index.html"
    durable.write_text(file, text)
    return file


def _steps(steps: Mapping[tuple[str, str], Outcome | None]) -> pd.DataFrame:
    rows = [
        (*key, "failed" if one.failed else "done", f"{one.seconds:.0f}", one.sentence)
        if one else (*key, "not begun", "", "")
        for key, one in steps.items()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["step", "environment", "ended", "seconds", "what came out"])


def _data(outcomes: Sequence[Outcome], key: str) -> list[tuple[Outcome, Any]]:
    """What steps have under a key of their data, for those that have it."""
    return [(one, one.data[key]) for one in outcomes if key in one.data]


def _packages(outcomes: Sequence[Outcome]) -> Section | None:
    if not (parts := _data(outcomes, "packages")):
        return None
    places: dict[tuple[str, str, str], list[str]] = {}
    for one, devices in parts:
        for device, rows in devices.items():
            for name, before, after in rows:
                places.setdefault((name, before or "–", after or "–"), []).append(f"{one.environment} ({device})")
    rows = [(*change, ", ".join(where)) for change, where in sorted(places.items())]
    return Section(
        "Packages", "What differs between the committed and the new locks.",
        pd.DataFrame(rows, columns=["package", "before", "after", "environments"]),
    )  # fmt: skip


def _defaults(outcomes: Sequence[Outcome]) -> Section | None:
    if not (parts := _data(outcomes, "drifts")):
        return None
    rows = [
        (
            one.environment,
            drift["setting"],
            repr(drift["stated"]),
            repr(drift["released"]),
            ", ".join(drift["runs"]) or "–",
        )
        for one, drifts in parts
        for drift in drifts
    ]
    rows += [(one.environment, name, "–", "new", "may be any") for one, _ in parts for name in one.data["unknown"]]
    sentence = (
        "Runs state what they depend on or rely on these defaults: with the new version, the runs in the last column "
        "train something else. frameworks/<name>/defaults.yaml, or the runs, have to say what is meant."
        if rows
        else "No default that a run relies on has changed, and no setting of the objective is new."
    )
    columns = ["framework", "setting", "runs rely on", "now", "changes the runs"]
    return Section("Defaults by run", sentence, pd.DataFrame(rows, columns=columns))


def _other_defaults(outcomes: Sequence[Outcome]) -> Section | None:
    if not (parts := _data(outcomes, "settings")):
        return None
    rows = []
    for one, settings in parts:
        rows += [(one.environment, name, repr(old), repr(new)) for name, (old, new) in settings["changed"].items()]
        rows += [(one.environment, name, "–", repr(new)) for name, new in settings["new"].items()]
        rows += [(one.environment, name, repr(old), "–") for name, old in settings["gone"].items()]
    sentence = (
        "Defaults that differ, settings that are new, and settings that are gone." if rows else "None has changed."
    )
    return Section(
        "All settings of the parser", sentence,
        pd.DataFrame(rows, columns=["framework", "setting", "before", "after"]),
    )  # fmt: skip


def _formulas(outcomes: Sequence[Outcome]) -> Section | None:
    if not (parts := _data(outcomes, "formulas")):
        return None
    rows = [row for _, rows in parts for row in rows]
    sentence = (
        "Largest difference from the reference in value / gradient / AdamW step, on the same tensors."
        if rows
        else "Each formula has the value, gradient and step that it had, on the same tensors."
    )
    return Section("Formulas", sentence, pd.DataFrame(rows, columns=["formula", "framework", "before", "after"]))


def _verdicts(outcomes: Sequence[Outcome]) -> Section | None:
    if not (parts := _data(outcomes, "verdicts")):
        return None
    rows = [
        [*row[:2], *(verdict.replace("_", " ") for verdict in row[2:4]), row[4]] for _, rows in parts for row in rows
    ]
    pairs = sum(one.data["pairs"] for one, _ in parts)
    return Section(
        "Verdicts",
        f"{len(rows)} of {pairs:,} verdicts differ: pairs written by hand, and the answers of all stored samples.",
        pd.DataFrame(rows, columns=["gold answer", "answer", "before", "after", "label"]),
    )


def _interval(parts: Sequence[float] | None, in_points: bool = False) -> str:
    return "other problems" if parts is None else interval_text(Estimate(*parts), points if in_points else percent)


def _evaluations(outcomes: Sequence[Outcome]) -> Section | None:
    if not (parts := _data(outcomes, "evaluations")):
        return None
    rows = [
        (
            row["benchmark"], _interval(row["before"]), _interval(row["after"]), _interval(row["change"], True),
            row["same"],
        )
        for _, rows in parts for row in rows
    ]  # fmt: skip
    return Section(
        "Evaluation", f"Accuracy of {parts[0][0].data['of']} in percent: the same weights, sampled again.",
        pd.DataFrame(rows, columns=["benchmark", "before", "after", "change in points", "same completions"]),
    )  # fmt: skip


def _gains(outcomes: Sequence[Outcome]) -> Section | None:
    if not (parts := _data(outcomes, "gains")):
        return None
    rows = [
        (
            one.data["run"], row["benchmark"], _interval(row["base_after"]), _interval(row["gain_before"], True),
            _interval(row["gain_after"], True), _interval(row["change"], True),
        )
        for one, rows in parts for row in rows
    ]  # fmt: skip
    columns = [
        "run", "benchmark", "base model (%)", "gain in points, before", "gain, after", "change at the end",
    ]  # fmt: skip
    return Section(
        "Gains of demo runs",
        "From the same base model and seed. One training is one draw: a change that its interval does not reach "
        "may still be the seed's (crosszero compare RUN RUN --seeds 0,1,2).",
        pd.DataFrame(rows, columns=columns),
    )

"""What several sections of the report share, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from analysis.claims import table as claims_table
from analysis.measures import bad_cases, diagnostics, reasoning_patterns
from analysis.measures.reasoning_patterns import PatternList, load_lists
from analysis.pages import run_titles
from analysis.pages.table_texts import Table
from analysis.report.pair_verdicts import PagePairs
from analysis.results import RunResults
from analysis.statistics.accuracy_rows import CheckpointRow, run_rows
from analysis.statistics.training_seeds import Recipe, by_recipe
from contracts import seeds
from recipes import runs as run_files
from system.errors import UserError


@dataclass(frozen=True)
class RunFacts:
    """What a run is, from its run file. A dash or None means that it has none, such as imported generations."""

    framework: str = "–"
    algorithm: str = "–"
    model: str = "–"
    reference: str | None = None
    control: str | None = None
    control_of: str | None = None


def run_facts(run: RunResults, scale: str) -> RunFacts:
    """Look a run up in recipes/ by its name, <recipe>/<run>/seed-<n>."""
    try:
        run_file = run_files.load_run(seeds.run_of(run.name), scale)
    except UserError:
        record = next((r for name, r in run.provenance.items() if name.startswith("training_log")), {})
        return RunFacts(framework=str(record.get("framework", "–")))
    return RunFacts(
        run_file.framework,
        run_file.algorithm,
        run_file.model,
        run_file.reference,
        run_file.control,
        run_file.control_of,
    )


@dataclass(frozen=True)
class ReportData:
    """The runs of a report, and what several of its sections need of them.

    Attributes:
        runs: those with samples, in the order of the page.
        logs: imported training logs without samples, drawn beside those of the runs.
        title: of the page.
        scale: its name, shown on the page.
        titles: what the page calls each of runs and logs, by name.
        overlap: the CSV table of tasks.overlap, if there is one.
    """

    runs: list[RunResults]
    logs: list[RunResults]
    title: str
    scale: str
    titles: dict[str, str]
    overlap: Path | None = None

    @classmethod
    def of_runs(cls, results: Sequence[RunResults], title: str, scale: str, overlap: Path | None = None) -> ReportData:
        """Give each run its title. Runs without samples are logs."""
        titles = run_titles.titles([run.name for run in results], scale)
        titles |= {run.name: run_titles.with_quantisation(titles[run.name], run.quantised) for run in results}
        titled = [run if titles[run.name] == run.name else replace(run, title=titles[run.name]) for run in results]
        runs, logs = ([run for run in titled if run.evaluated == evaluated] for evaluated in (True, False))
        return cls(runs, logs, title, scale, titles, overlap)

    @cached_property
    def rows(self) -> dict[str, list[CheckpointRow]]:
        """The accuracy rows of each run."""
        return {run.name: run_rows(run) for run in self.runs}

    @cached_property
    def facts(self) -> dict[str, RunFacts]:
        """What each run is."""
        return {run.name: run_facts(run, self.scale) for run in self.runs}

    @cached_property
    def _recipes_and_logs(self) -> list[Recipe]:
        return [*by_recipe(self.runs), *by_recipe(self.logs)]

    @cached_property
    def recipes(self) -> list[Recipe]:
        """The runs by recipe: those that differ in their training seed alone are together."""
        return self.recipes_of(self.runs)

    def recipes_of(self, runs: Sequence[RunResults]) -> list[Recipe]:
        """Some of the runs and logs by recipe, so that their seeds are drawn together."""
        names = {run.name for run in runs}
        parts = [Recipe([run for run in recipe.runs if run.name in names]) for recipe in self._recipes_and_logs]
        return [part for part in parts if part.runs]

    @cached_property
    def repeated_recipes(self) -> list[Recipe]:
        """The recipes with several training seeds."""
        return [recipe for recipe in self.recipes if recipe.has_several_seeds]

    @cached_property
    def pairs(self) -> PagePairs:
        """The runs and the recipes against each other, with one correction."""
        return PagePairs.compared(self.runs, self.repeated_recipes)

    @cached_property
    def trained(self) -> list[RunResults]:
        """The runs with a training log."""
        return [run for run in self.runs if run.trained]

    @cached_property
    def warnings(self) -> list[diagnostics.Diagnostic]:
        """The warnings about all runs and logs."""
        return [warning for run in [*self.runs, *self.logs] for warning in diagnostics.diagnose(run)]

    @cached_property
    def claims(self) -> Table:
        """The table of claims, decided by these runs."""
        return claims_table.table(self.runs, self.scale)

    @cached_property
    def keyword_lists(self) -> list[PatternList]:
        """The keyword lists of reasoning patterns."""
        return load_lists()

    @cached_property
    def pattern_counts(self) -> pd.DataFrame:
        """Matches of the keyword lists in all completions; slow, so that the page has a fork count them."""
        counts = [reasoning_patterns.table(run, self.keyword_lists) for run in self.runs]
        return pd.concat(counts, ignore_index=True)

    @cached_property
    def matched_lists(self) -> list[PatternList]:
        """The keyword lists that pages show: those with a match, and the published ones."""
        matched = set(self.pattern_counts.loc[self.pattern_counts["matches"] > 0, "pattern"])
        return [item for item in self.keyword_lists if item.always or item.name in matched]

    @cached_property
    def wrong_answers(self) -> dict[str, tuple[pd.DataFrame, list[bad_cases.BadCase]]]:
        """Counts and examples of completions that are not correct, of each run; slow."""
        return {run.name: bad_cases.count(run) for run in self.runs}

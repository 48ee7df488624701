"""Test what a report decides besides the gate: claims, pairs, clusters, sweeps, training logs, what was read before.

    crosszero study gate_validation page_verdicts --output FILE.md --mirror ../shared/data    about 4 minutes

Runs are drawn without a difference, or with a known one. `before` is the rule up to commit 270d049, which is repeated
here; `now` is the product's own function; the second implementation has scipy's t tests, Holm's steps and a jackknife
over clusters, and nothing of the project. Without a mirror the last rows are left out.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from analysis import comparability, hash_order
from analysis.claims import verdicts
from analysis.measures import training_log
from analysis.pages.table_texts import markdown
from analysis.report.pair_verdicts import PagePairs
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, mean_intervals, training_seeds
from analysis.statistics.training_seeds import Recipe
from analysis.sweep.settings import Setting, choose_best
from eval import contamination, statistics
from eval.statistics import clusters, significance
from system import durable
from system.command_line import argument_parser
from system.errors import run_command
from tasks import dataset_specs
from tasks.load_problems import load

PROBLEMS, REPEATS, SPREAD = 200, 2, 0.018  # spread over seeds, a standard deviation
Floats = npt.NDArray[np.float64]
Line = tuple[str, str, str, str, str]  # item, setting, before, now, second implementation
NONE = "–"


def stored_run(name: str, level: float, difficulty: Floats, random: np.random.Generator) -> RunResults:
    """A run whose last checkpoint solves each problem with its probability, moved so that the mean is this level."""
    chances = np.clip(difficulty + level - difficulty.mean(), 0, 1)
    right = random.random((len(chances), REPEATS)) < chances[:, None]
    count = right.size
    graded = pd.DataFrame(
        {
            "step": 1, "benchmark": "sums", "problem_id": np.repeat([f"{i:03d}" for i in range(len(chances))], REPEATS),
            "repeat": np.tile(np.arange(REPEATS), len(chances)), "prompt": "p", "gold": "1", "grader": "g",
            "protocol": "p", "verdict": np.where(right.ravel(), "correct", "wrong"), "completion": "",
            "completion_tokens": np.ones(count),
        }
    )  # fmt: skip
    scores = pd.DataFrame({"step": [1], "benchmark": ["sums"]})
    log = pd.DataFrame({"step": [1]})
    return RunResults(name, log, {}, scores, graded, {})


def recipe_runs(
    name: str, seeds: int, gain: float, difficulty: Floats, random: np.random.Generator
) -> list[RunResults]:
    """One run per training seed, whose levels differ."""
    return [
        stored_run(f"{name}/seed-{seed}", 0.5 + gain + random.normal(0, SPREAD), difficulty, random)
        for seed in range(seeds)
    ]


def share(hits: int, times: int) -> str:
    """A share in percent with 1.96 Monte Carlo errors."""
    part = hits / times
    return f"{100 * part:.1f} ± {196 * (part * (1 - part) / times) ** 0.5:.1f}"


def shares(hits: Iterable[int], times: int) -> tuple[str, str, str]:
    """Shares of three counts."""
    before, now, second = (share(count, times) for count in hits)
    return before, now, second


def second_holm(p_values: Sequence[float]) -> bool:
    """Whether Holm's first step decides anything."""
    return len(p_values) * min(p_values) <= 0.05


def second_recipes(a: Sequence[RunResults], b: Sequence[RunResults]) -> float:
    """p-value that two recipes differ, by scipy's t tests on the means of seeds, of which both have to agree."""
    sides = [[run.graded["verdict"].eq("correct").mean() for run in side] for side in (a, b)]
    p = max(stats.ttest_ind(*sides, equal_var=equal).pvalue for equal in (True, False))
    return float(p) * (2 if min(map(len, sides)) == 2 else 1)


def second_pair(first: RunResults, second: RunResults) -> float:
    """p-value that two runs differ, by scipy's paired t test over problems."""
    means = [
        run.graded["verdict"].eq("correct").groupby(run.graded["problem_id"]).mean().to_numpy()
        for run in (first, second)
    ]
    return float(stats.ttest_rel(*means).pvalue)


def jackknife(values: Floats, codes: npt.NDArray[np.int64]) -> tuple[float, float]:
    """95 % interval of a mean, leaving out one cluster at a time."""
    groups = [values[codes == code] for code in np.unique(codes)]
    total, count, g = values.sum(), len(values), len(groups)
    left_out = np.array([(total - group.sum()) / (count - len(group)) for group in groups])
    half = stats.t.ppf(0.975, g - 1) * np.sqrt((g - 1) / g * ((left_out - left_out.mean()) ** 2).sum())
    return float(values.mean() - half), float(values.mean() + half)


RULE = {"measure": "heldout_between", "run": "b/run", "against": "a/run", "step": "last", "against_step": "last",
        "at_least": 0.0}  # fmt: skip


def claims(times: int, random: np.random.Generator) -> Iterator[Line]:
    """A claim that one recipe is better: by the hull over all pairs of seeds, and now; beside `compare recipes`."""
    for gain, seeds in itertools.product((0.04, 0.0), (1, 2, 3, 5, 10)):
        before, now, recipes, again = 0, 0, 0, 0
        for _ in range(times):
            difficulty = random.beta(2, 2, PROBLEMS)
            a, b = (
                recipe_runs(name, seeds, own, difficulty, random) for name, own in (("a/run", 0.0), ("b/run", gain))
            )
            gaps = [checkpoint_difference.between_runs(one, two, ["sums"]) for one, two in itertools.product(a, b)]
            low, high = min(gap.low for gap in gaps), max(gap.high for gap in gaps)
            before += low >= 0 or high < 0
            judged = verdicts.finding({"scale": "any", "rules": [RULE]}, verdicts.runs_by_name([*a, *b]), "full")
            now += judged.verdict in (verdicts.SUPPORTED, verdicts.CONTRADICTED)
            if seeds > 1:
                recipes += training_seeds.compare(Recipe(a), Recipe(b), ["sums"]).verdict != "cannot tell"
                again += second_recipes(a, b) <= significance.ALPHA
        what = f"{100 * gain:g} points better" if gain else "equal recipes"
        text = f"{share(now, times)} (compare recipes {share(recipes, times)})" if seeds > 1 else share(now, times)
        yield (
            "claims decided (%)",
            f"{what}, {seeds} seeds",
            share(before, times),
            text,
            share(again, times) if seeds > 1 else NONE,
        )


def pairs(times: int, random: np.random.Generator) -> Iterator[Line]:
    """Pages of equal runs, and of equal recipes with three seeds, with any false verdict on their pairs."""
    for count in (2, 4, 6, 10):
        before, now, again = 0, 0, 0
        for _ in range(times):
            difficulty = random.beta(2, 2, PROBLEMS)
            runs = [stored_run(f"r/{n}/seed-0", 0.5, difficulty, random) for n in range(count)]
            decided = PagePairs.compared(runs)
            before += any(pair.difference and pair.difference.change != "cannot tell" for pair in decided.runs)
            now += any(pair.change != "cannot tell" for pair in decided.runs)
            again += second_holm([second_pair(*two) for two in itertools.combinations(runs, 2)])
        yield "pages with a false pair (%)", f"{count} equal runs", *shares((before, now, again), times)
    before, now, again = 0, 0, 0
    for _ in range(times):
        difficulty = random.beta(2, 2, PROBLEMS)
        recipes = [Recipe(recipe_runs(f"r/{n}", 3, 0.0, difficulty, random)) for n in range(8)]
        decided = PagePairs.compared([], recipes)
        before += any(pair.p_value <= significance.ALPHA for pair in decided.recipes)
        now += any(pair.change != "cannot tell" for pair in decided.recipes)
        again += second_holm([second_recipes(a.runs, b.runs) for a, b in itertools.combinations(recipes, 2)])
    yield "pages with a false pair (%)", "8 equal recipes × 3 seeds", *shares((before, now, again), times)


def shared_texts(times: int, random: np.random.Generator) -> Iterator[Line]:
    """Coverage of a score's interval, and false verdicts on a difference, where problems share texts or templates."""
    layouts = {
        "Minerva: 160 problems alone, 43 texts of 2 to 11": [1] * 160 + [11, 5, 5, 4] + [3] * 9 + [2] * 30,
        "20 templates of 10": [10] * 20,
    }
    for title, sizes in layouts.items():
        codes = np.repeat(np.arange(len(sizes)), sizes).astype(np.int64)
        inside, false = np.zeros(3, dtype=int), np.zeros(3, dtype=int)
        for _ in range(times):
            level = random.beta(1, 1, len(sizes))[codes]
            moved = 0.15 * random.standard_normal(len(sizes))[codes]
            right, other = (random.random((2, len(codes))) < np.stack([level, np.clip(level + moved, 0, 1)])).astype(
                float
            )
            for position, own in enumerate((None, codes)):
                estimate = statistics.mean_over_problems(clusters.linearised(right, own))
                inside[position] += estimate.low <= 0.5 <= estimate.high
                gap = statistics.mean_difference(clusters.linearised(other - right, own))
                false[position] += gap.change != "cannot tell"
            score, change = jackknife(right, codes), jackknife(other - right, codes)
            inside[2] += score[0] <= 0.5 <= score[1]
            false[2] += not change[0] <= 0 <= change[1]
        yield "coverage of a score (%)", title, *shares(inside, times)
        yield "false differences (%)", title, *shares(false, times)


def sweeps(times: int, random: np.random.Generator) -> Iterator[Line]:
    """What the best of eight equal settings with three seeds seems to gain over the first."""
    before, now = [], []
    for _ in range(times):
        difficulty = random.beta(2, 2, PROBLEMS)
        settings = [
            Setting(number, {"key": str(number)}, recipe_runs(f"s/{number}", 3, 0.0, difficulty, random), {})
            for number in range(1, 9)
        ]
        chosen = choose_best(settings)
        assert chosen and chosen.difference
        now.append(100 * chosen.difference.value)
        right = np.stack([[run.correct(1, "sums").mean(axis=1) for run in setting.runs] for setting in settings])
        half = np.array([hash_order.half(name) for name in settings[0].runs[0].problems("sums")])
        gains = [
            right[right[:, :, half != side].mean(axis=(1, 2)).argmax()][:, half == side].mean()
            - right[0][:, half == side].mean()
            for side in (0, 1)
        ]
        before.append(100 * float(np.mean(gains)))
    texts = [f"{np.mean(part):+.2f} ± {1.96 * np.std(part) / times**0.5:.2f}" for part in (before, now)]
    yield "gain of the best by choosing it (points)", "8 equal settings × 3 seeds", texts[0], texts[1], NONE


def _blocks(values: Floats) -> statistics.Estimate:
    blocks = [float(block.mean()) for block in np.array_split(values, min(5, len(values)))]
    return max(mean_intervals.mean(values), mean_intervals.mean(blocks), key=lambda one: one.high - one.low)


def logs(times: int, random: np.random.Generator) -> Iterator[Line]:
    """Two windows of one training log with one level, whose neighbouring steps are correlated."""
    for width in (10, 20, 30):
        hits = np.zeros(2, dtype=int)
        for _ in range(times):
            values = random.standard_normal(60 + 4 * width)
            for step in range(1, len(values)):
                values[step] += 0.8 * values[step - 1]
            ends = values[50 : 50 + width], values[-width:]
            run = RunResults("r/x/seed-0", pd.DataFrame({"step": np.arange(2 * width), "kl": np.concatenate(ends)}), {},
                             pd.DataFrame(), pd.DataFrame(), {})  # fmt: skip
            old = mean_intervals.difference(*map(_blocks, ends))
            new = training_log.training_change(run, "kl", [0, width - 1], [width, 2 * width - 1])
            hits += [old.change != "cannot tell", new.change != "cannot tell"]
        yield (
            "false changes in a log, correlation 0.8 (%)",
            f"{width} steps",
            share(hits[0], times),
            share(hits[1], times),
            NONE,
        )


@dataclass
class SixGrams:
    """Continues a text by the most frequent next word after the longest known end of at most five words."""

    texts: Sequence[str]

    def __post_init__(self) -> None:
        """Count."""
        self.counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for text in self.texts:
            tokens = ["<s>", *text.split(), "</s>"]
            for end, size in itertools.product(range(1, len(tokens)), range(1, 6)):
                if size <= end:
                    self.counts[tuple(tokens[end - size : end])][tokens[end]] += 1

    def complete(self, start: str, count: int) -> str:
        """So many words at most."""
        tokens = ["<s>", *start.split()]
        for _ in range(count):
            known = (tuple(tokens[-size:]) for size in range(5, 0, -1))
            following = next((self.counts[end] for end in known if end in self.counts), None)
            if following is None or (best := following.most_common(1)[0][0]) == "</s>":
                break
            tokens.append(best)
        return " ".join(tokens[len(start.split()) + 1 :])


def read_before(mirror: Path) -> Iterator[Line]:
    """Whether a model of word sequences in MATH's training problems, without MATH500's, counts as a reader of these."""
    problems, known = (
        [problem.question for problem in load(dataset_specs.find(name), mirror)[0]]
        for name in ("math500", "math_level3to5")
    )
    model = SixGrams([text for text in known if text not in set(problems)])
    twins = contamination.Twin(problems, 0)
    for part in contamination.SHARES:
        cut = [contamination.split_question(question, part) for question in problems]
        done = [contamination.completes(model.complete(start, len(rest.split())), rest) for start, rest in cut]
        whole = statistics.avg_at_k(np.array(done)[:, None])
        gap = statistics.independent_difference(statistics.avg_at_k(np.zeros((len(done), 1), dtype=bool)), whole)
        pairs = [
            (hit, twins.like(*sides)) for hit, sides in zip(done, cut, strict=True) if contamination.is_specific(*sides)
        ]
        other = [
            contamination.completes(model.complete(start, len(rest.split())), rest) for _, (start, rest, _) in pairs
        ]
        counts = np.array([hit for hit, _ in pairs], dtype=np.int64) - np.array(other, dtype=np.int64)
        p = significance.permutation(counts)
        yield (
            "a 6-gram model that has not read MATH500", f"{part} % of the question",
            f"{sum(done)} of {len(done)} completed: {'read before' if gap.change == 'rose' else 'cannot tell'}",
            f"{int(counts.sum())} of {len(pairs)}: {'read before' if 3 * p <= significance.ALPHA else 'cannot tell'} "
            f"(p {p:.2f})", NONE,
        )  # fmt: skip


PARTS: tuple[Callable[[int, np.random.Generator], Iterator[Line]], ...] = (claims, pairs, shared_texts, sweeps, logs)


def page(times: int, seed: int, mirror: Path | None, only: str | None = None) -> str:
    """The table as Markdown."""
    random = np.random.default_rng(seed)
    with mock.patch.object(comparability, "differences", return_value=[]):  # all are drawn alike; to look takes long
        lines: list[Any] = [line for part in PARTS if only in (None, part.__name__) for line in part(times, random)]
    lines += read_before(mirror) if mirror else []
    return markdown(pd.DataFrame(lines, columns=["what", "setting", "before", "now", "second implementation"]))


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS], help="one part of the table")
    parser.add_argument("--mirror", type=Path, help="with MATH500 and MATH's training problems")
    arguments = parser.parse_args()
    durable.write_text(arguments.output, page(arguments.times, arguments.seed, arguments.mirror, arguments.only))


if __name__ == "__main__":
    run_command(main)

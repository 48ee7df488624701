"""Draws of what a page decides besides the gate: claims, pairs, clusters, sweeps, logs, what was read; what held.

Runs are drawn without a difference, or with a known one. `before` is the rule up to commit 270d049, which is repeated
here; `now` is the product's own function; the second implementation is in second_implementation.py.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from analysis.claims import verdicts
from analysis.compare_checkpoints import paired_answers
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.measures import training_log
from analysis.report.pair_verdicts import PagePairs
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, mean_intervals, training_seeds
from analysis.statistics.training_seeds import Recipe
from analysis.sweep.settings import Setting, choose_best
from eval import contamination, statistics
from eval.statistics import clusters, significance
from studies.gate_validation import second_implementation
from tasks import dataset_specs
from tasks.load_problems import load

PROBLEMS, REPEATS, SPREAD = 200, 2, 0.018  # spread over seeds, a standard deviation
Floats = npt.NDArray[np.float64]
Line = tuple[int, str, str, str, str, str]  # item, what, setting, before, now, second implementation
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


def right(run: RunResults) -> Floats:
    """Accuracies by problem, by the graded rows alone."""
    solved = run.graded["verdict"].eq("correct").to_numpy(float).reshape(-1, REPEATS)
    return np.asarray(solved.mean(axis=1))


def recipes_again(a: Sequence[RunResults], b: Sequence[RunResults]) -> float:
    """p-value that two recipes differ, by the second implementation."""
    first, second = ([np.stack([right(run) for run in side])] for side in (a, b))
    return second_implementation.recipes(first, second)[0]


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
                again += recipes_again(a, b) <= significance.ALPHA
        what = f"{100 * gain:g} points better" if gain else "equal recipes"
        text = f"{share(now, times)} (compare recipes {share(recipes, times)})" if seeds > 1 else share(now, times)
        yield (
            2, "claims decided (%)",
            f"{what}, {seeds} seeds",
            share(before, times),
            text,
            share(again, times) if seeds > 1 else NONE,
        )  # fmt: skip


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
            gates = [
                second_implementation.gate(right(one), right(two), 0.0, random)
                for one, two in itertools.combinations(runs, 2)
            ]
            again += min(second_implementation.holm(gates)) <= significance.ALPHA
        yield 7, "pages with a false pair (%)", f"{count} equal runs", *shares((before, now, again), times)
    before, now, again = 0, 0, 0
    for _ in range(times):
        difficulty = random.beta(2, 2, PROBLEMS)
        recipes = [Recipe(recipe_runs(f"r/{n}", 3, 0.0, difficulty, random)) for n in range(8)]
        decided = PagePairs.compared([], recipes)
        before += any(pair.p_value <= significance.ALPHA for pair in decided.recipes)
        now += any(pair.change != "cannot tell" for pair in decided.recipes)
        both = [recipes_again(a.runs, b.runs) for a, b in itertools.combinations(recipes, 2)]
        again += min(second_implementation.holm(both)) <= significance.ALPHA
    yield 7, "pages with a false pair (%)", "8 equal recipes × 3 seeds", *shares((before, now, again), times)


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
            solved, other = (random.random((2, len(codes))) < np.stack([level, np.clip(level + moved, 0, 1)])).astype(
                float
            )
            for position, own in enumerate((None, codes)):
                estimate = statistics.mean_over_problems(clusters.linearised(solved, own))
                inside[position] += estimate.low <= 0.5 <= estimate.high
                gap = statistics.mean_difference(clusters.linearised(other - solved, own))
                false[position] += gap.change != "cannot tell"
            score, change = (second_implementation.jackknife(part, codes) for part in (solved, other - solved))
            inside[2] += score[0] <= 0.5 <= score[1]
            false[2] += not change[0] <= 0 <= change[1]
        yield 10, "coverage of a score (%)", title, *shares(inside, times)
        yield 10, "false differences (%)", title, *shares(false, times)


def sweeps(times: int, random: np.random.Generator) -> Iterator[Line]:
    """What the best of eight equal settings with three seeds seems to gain over the first."""
    before, now, again = [], [], []
    for _ in range(times):
        difficulty = random.beta(2, 2, PROBLEMS)
        settings = [
            Setting(number, {"key": str(number)}, recipe_runs(f"s/{number}", 3, 0.0, difficulty, random), {})
            for number in range(1, 9)
        ]
        chosen = choose_best(settings)
        assert chosen and chosen.difference
        now.append(100 * chosen.difference.value)
        solved = np.stack([[right(run) for run in setting.runs] for setting in settings])
        half = settings[0].runs[0].halves("sums")
        again.append(100 * second_implementation.gain_of_best(solved, half))
        gains = [
            solved[solved[:, :, half != side].mean(axis=(1, 2)).argmax()][:, half == side].mean()
            - solved[0][:, half == side].mean()
            for side in (0, 1)
        ]
        before.append(100 * float(np.mean(gains)))
    texts = [f"{np.mean(part):+.2f} ± {1.96 * np.std(part) / times**0.5:.2f}" for part in (before, now, again)]
    yield 14, "gain of the best by choosing it (points)", "8 equal settings × 3 seeds", texts[0], texts[1], texts[2]


def _blocks(values: Floats) -> statistics.Estimate:
    blocks = [float(block.mean()) for block in np.array_split(values, min(5, len(values)))]
    return max(mean_intervals.mean(values), mean_intervals.mean(blocks), key=lambda one: one.high - one.low)


def logs(times: int, random: np.random.Generator) -> Iterator[Line]:
    """Two windows of one training log with one level, whose neighbouring steps are correlated."""
    for width in (10, 20, 30):
        hits = np.zeros(3, dtype=int)
        for _ in range(times):
            values = random.standard_normal(60 + 4 * width)
            for step in range(1, len(values)):
                values[step] += 0.8 * values[step - 1]
            ends = values[50 : 50 + width], values[-width:]
            run = RunResults("r/x/seed-0", pd.DataFrame({"step": np.arange(2 * width), "kl": np.concatenate(ends)}), {},
                             pd.DataFrame(), pd.DataFrame(), {})  # fmt: skip
            old = mean_intervals.difference(*map(_blocks, ends))
            new = training_log.training_change(run, "kl", [0, width - 1], [width, 2 * width - 1])
            hits += [old.change != "cannot tell", new.change != "cannot tell", second_implementation.logs_differ(*ends)]
        yield 15, "false changes in a log, correlation 0.8 (%)", f"{width} steps", *shares(hits, times)


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
        second = stats.binomtest(int((counts > 0).sum()), max(1, int((counts != 0).sum()))).pvalue
        yield (
            6, "a 6-gram model that has not read MATH500", f"{part} % of the question",
            f"{sum(done)} of {len(done)} completed: {'read before' if gap.change == 'rose' else 'cannot tell'}",
            f"{int(counts.sum())} of {len(pairs)}: {'read before' if 3 * p <= significance.ALPHA else 'cannot tell'} "
            f"(p {p:.2f})", f"p {second:.2f}",
        )  # fmt: skip


def held(times: int, random: np.random.Generator) -> Iterator[Line]:
    """What was right before: intervals of single scores and of differences, unequal repeats, and `needed`."""
    grid = list(itertools.product((30, 100, 500), (1, 4, 16), (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)))
    inside = np.zeros((len(grid), 2))
    for row, (n, k, mean) in enumerate(grid):
        for _ in range(times):
            solved = random.random((n, k)) < random.beta(mean, 1 - mean, n)[:, None]
            estimate, shares_solved = statistics.avg_at_k(solved), solved.mean(axis=1)
            half = stats.t.ppf(0.975, n - 1) * shares_solved.std(ddof=1) / n**0.5
            inside[row] += [estimate.low <= mean <= estimate.high, abs(solved.mean() - mean) <= half]
    inside /= times
    worst = [f"{np.sum(part >= 0.93)} of {len(grid)} (lowest {100 * part.min():.0f} %)" for part in inside.T]
    yield (
        0,
        "intervals of one score that cover 93 % or more",
        "30 to 500 × 1 to 16, 2 to 98 %",
        NONE,
        worst[0],
        (f"Student's t: {worst[1]}"),
    )
    hits = np.zeros(2, dtype=int)
    for _ in range(times):
        chance = random.beta(0.5, 0.5, 200)
        few, many = random.random((200, 4)) < chance[:, None], random.random((200, 16)) < chance[:, None]
        kept = PairedAnswers(few, many[:, :4], np.zeros_like(few), np.zeros_like(few))
        hits += [
            paired_answers.p_value([kept], 0.0) <= significance.ALPHA,
            second_implementation.gate(few.mean(axis=1), many[:, :4].mean(axis=1), 0.0, random) <= significance.ALPHA,
        ]
    yield 0, "false differences (%)", "200 × 4 beside 200 × 16", NONE, share(hits[0], times), share(hits[1], times)
    parts = significance.assumed_spread(0.5, 0.5, 0.1)
    need, hits = significance.needed(500, 0.04, parts, significance.ALPHA), np.zeros(2, dtype=int)
    k = need.repeats or 64
    for _ in range(times):
        chance = random.beta(0.5, 0.5, 500)
        after = (chance + random.normal(0, 0.1, 500)).clip(0, 1)
        after = (after + 0.04 - (after - chance).mean()).clip(0, 1)
        one, two = (random.random((500, k)) < side[:, None] for side in (chance, after))
        pair = PairedAnswers(one, two, np.zeros_like(one), np.zeros_like(two))
        hits += [
            paired_answers.p_value([pair], 0.0) <= significance.ALPHA,
            second_implementation.gate(one.mean(axis=1), two.mean(axis=1), 0.0, random) <= significance.ALPHA,
        ]
    yield (
        0,
        "gain of 4 points found (%)",
        f"500 × {k}, as needed says",
        NONE,
        share(hits[0], times),
        share(hits[1], times),
    )


PARTS: dict[int, Callable[[int, np.random.Generator], Iterator[Line]]] = {
    0: held, 2: claims, 7: pairs, 10: shared_texts, 14: sweeps, 15: logs,
}  # fmt: skip

"""False verdicts of this gate and of others, on the same simulated checkpoints between which nothing differs.

    python3.12 -m venv other-gates && other-gates/bin/pip install evalsig==0.1.2 'nemo-evaluator[stats]==0.3.0'
    crosszero study other_gates study --python other-gates/bin/python --times 100

A problem is solved with probability p from Beta(a, 1 - a) for accuracy a, as in studies.gate_validation.simulation. The
checkpoint has the same p, or changed ones but not on average: dense (4/5 p + 1/5 of another draw) or sparse (another
draw on 5 % of the problems). The others' own functions decide, in their own Python, with their documented defaults.
`nel compare` and `nel gate` came with nemo-evaluator 0.3.0, which needs Python 3.12; 0.2.8 has neither.
"""

from __future__ import annotations

import datetime
import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.compare_checkpoints import graded_checkpoint, paired_answers
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.pages.table_texts import markdown
from analysis.statistics import recipe_difference
from eval.statistics import significance
from studies.gate_validation.simulation import FAMILY, Floats
from system.command_line import argument_parser
from system.errors import UserError, run_command

SIZES = tuple(size for size in FAMILY if size <= 500)
SEEDS = 4  # training runs a side, for the question about recipes
Verdicts = dict[str, list[bool]]
Drawn = tuple[list[pd.DataFrame], list[pd.DataFrame]]  # runs of either side on one benchmark


NOTES = f"""\
- `nel compare` asks only for a loss, one-sided at 5 % per benchmark: counted are BLOCK and WARN (`--max-drop 0.05`).
- `nel gate` asks another question: is a loss above 1.5 points shown (NO-GO)? Left out: whether its GO is right.
- evalsig has no repeats: it takes the first one. `compare` is two-sided per benchmark; "holm" adds its own
  correction, which its command line does not apply. Its `gate` asks only for a gain (ALLOW), at the 0.5
  points of its README.
- Two percentages: they differ as printed with one decimal.
- Another seed: ours compares recipes with {SEEDS} trainings a side. The others take one training a side, so they answer
  another question: whether these two checkpoints differ, which with a spread above 0 they do.
- Neither of the others knows ungradable answers: they count as wrong there."""


class Case(NamedTuple):
    """A row: what differs between two checkpoints, though neither is better."""

    name: str
    repeats: tuple[int, int] = (1, 1)  # of baseline and checkpoint
    accuracy: float = 0.5
    change: str = ""  # dense or sparse
    ungradable: float = 0.0  # share of the checkpoint's completions
    spread: float | None = None  # of the accuracy over training seeds, a fraction


CASES = (
    *(Case(f"1 against 1, {a} %", accuracy=a / 100) for a in (3, 50, 97)),
    *(Case(f"1 against 16, {a} %", (1, 16), a / 100) for a in (3, 50, 97)),
    *(
        Case(f"{k} against {k}, {change} changes", (k, k), change=change)
        for k in (1, 4)
        for change in ("dense", "sparse")
    ),
    Case("4 % of the checkpoint ungradable", ungradable=0.04),
    *(Case(f"another seed, spread of {100 * s:g} points", spread=s) for s in (0.0, 0.015, 0.03)),
)


def _chances(n: int, case: Case, random: np.random.Generator) -> tuple[Floats, Floats]:
    first = random.beta(case.accuracy, 1 - case.accuracy, n)
    other = random.beta(case.accuracy, 1 - case.accuracy, n)
    changed = {"": first, "dense": 0.8 * first + 0.2 * other, "sparse": np.where(random.random(n) < 0.05, other, first)}
    return first, changed[case.change]


def _shifted(chances: Floats, gain: float, accuracy: float) -> Floats:
    """The chances after a gain or loss on average that keeps them between 0 and 1."""
    return chances + gain * ((1 - chances) / (1 - accuracy) if gain > 0 else chances / accuracy)


def _table(chances: Floats, k: int, ungradable: float, random: np.random.Generator) -> pd.DataFrame:
    verdict = np.where(random.random((len(chances), k)) < chances[:, None], "correct", "incorrect").astype(object)
    verdict[random.random(verdict.shape) < ungradable] = "ungradable"
    places = {"problem_id": np.repeat(np.arange(len(chances)), k), "repeat": np.tile(np.arange(k), len(chances))}
    return pd.DataFrame({**places, "verdict": verdict.ravel()})


def draw(case: Case, random: np.random.Generator) -> list[Drawn]:
    """Graded tables of one comparison: per benchmark, the runs of either side (one without a spread over seeds)."""
    runs = 1 if case.spread is None else SEEDS
    gains = random.normal(0, case.spread or 0, (2, runs))
    drawn = []
    for n in SIZES:
        chances = _chances(n, case, random)
        sides = [
            [
                _table(_shifted(chances[i], gain, case.accuracy), case.repeats[i], case.ungradable * i, random)
                for gain in gains[i]
            ]
            for i in (0, 1)
        ]
        drawn.append((sides[0], sides[1]))
    return drawn


def ours(drawn: list[Drawn], case: Case) -> list[bool]:
    """Verdicts of this gate on each benchmark and on their mean: recipes are compared if there are several seeds."""
    if case.spread is not None:
        a, b = (
            {str(i): [graded_checkpoint.correct(run) for run in part[side]] for i, part in enumerate(drawn)}
            for side in (0, 1)
        )
        return [line.verdict != "cannot tell" for line in recipe_difference.compare(a, b)]
    parts = [PairedAnswers.read(graded_checkpoint.same_repeats(first[0], second[0])) for first, second in drawn]
    return [p <= significance.ALPHA for p in paired_answers.adjusted_p_values(parts)]


def ask(python: Path, comparisons: list[Any]) -> tuple[dict[str, str], list[Verdicts]]:
    """Versions and verdicts of the other tools.

    Args:
        python: of an environment that has them.
        comparisons: see `other_gates_verdicts`.

    Raises:
        UserError: the environment lacks them.
    """
    command = [str(python), str(Path(__file__).with_name("package_verdicts.py"))]
    done = subprocess.run(command, input=json.dumps(comparisons), capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise UserError(
            f"{python} should have evalsig and nemo-evaluator (nel), but stopped with {last}; --help "
            "says how to install them",
            code="missing-package",
        )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer["versions"], answer["verdicts"]


def rates(times: int, python: Path | None, seed: int) -> tuple[dict[str, str], pd.DataFrame]:
    """Versions of the others, and per case and tool the comparisons with any false verdict, in percent.

    Args:
        times: comparisons per case.
        python: of the others; None leaves them out.
        seed: of the simulation.
    """
    random, versions, rows = np.random.default_rng(seed), dict[str, str](), []
    for case in CASES:  # one at a time, for memory's sake
        drawn = [draw(case, random) for _ in range(times)]
        pairs = [
            [[graded_checkpoint.correct(side[0]).astype(int) for side in part] for part in parts] for parts in drawn
        ]
        others = [Verdicts() for _ in pairs]
        if python:
            versions, others = ask(python, [[[side.tolist() for side in part] for part in parts] for parts in pairs])
        false_verdicts = []
        for tables, parts, other in zip(drawn, pairs, others, strict=True):
            cells = [[f"{100 * side.mean():.1f}" for side in part] for part in parts]
            verdicts = {"ours": ours(tables, case), **other, "two percentages": [one != two for one, two in cells]}
            false_verdicts.append({tool: 100.0 * any(decided) for tool, decided in verdicts.items()})
        rows.append({"repeats, accuracy": case.name, **pd.DataFrame(false_verdicts).mean()})
    return versions, pd.DataFrame(rows)


def page(times: int, python: Path | None, seed: int) -> str:
    """The table of `rates` with its date, versions and margin of error, as Markdown."""
    versions, table = rates(times, python, seed)
    named = " and ".join(f"{name} {number}" for name, number in versions.items())
    error = 100 * 1.96 * np.sqrt(0.05 * 0.95 / times)
    display = table.map(lambda value: value if isinstance(value, str) else f"{value:.1f}")
    return (
        f"Comparisons with a false verdict on any of {len(SIZES)} benchmarks ({', '.join(map(str, SIZES))} problems), "
        f"in percent; ours also on the mean. {times} comparisons per row: at 5 % the margin of error is ±{error:.0f}. "
        f"{datetime.date.today()}{f', with {named}' if named else ''}.\n\n{markdown(display)}\n"
        f"{NOTES if named else ''}\n"
    )


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--python", type=Path, help="Python of an environment with both tools; without it, ours alone")
    parser.add_argument("--times", type=int, default=100, help="comparisons per row (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(page(arguments.times, arguments.python, arguments.seed), end="")


if __name__ == "__main__":
    run_command(main)

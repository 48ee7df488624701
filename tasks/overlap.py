"""Do training problems occur in the benchmarks? Exact and n-gram overlap, counted and listed.

    crosszero overlap --train FILE… --benchmark FILE… --output overlap.csv

Writes overlap.csv (one row for each pair of files), overlap.md (the same as a table to read) and overlap.pairs.csv
(problems side by side that are the same, share a rare window of 13 words, or share half of their windows). All files
are PROBLEM tables; only the questions are compared.

exact   the same words, numbers and operators in the same order: case, punctuation, dollar signs, braces and LaTeX's
        spacing and sizing commands do not count
gram13  at least one window of 13 words in common (Brown et al., arXiv:2005.14165, appendix C); words are runs of
gram8   letters or of digits, names of LaTeX commands included. 8 words is a stricter window.
_rare   counts only windows that occur in at most `--common` different training problems; more frequent ones are phrases
_half   one training problem has at least half of the problem's windows, common ones not counted: the same problem in
        other words or with other numbers, not only a phrase ("where m and n are relatively prime positive …")
Problems shorter than the window cannot overlap; the columns `too_short` count them.

Reads 70,000 training problems in seconds: windows are 64-bit hashes in arrays.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from contracts import provenance, tables
from system import durable, markdown
from system.command_line import argument_parser
from system.errors import UserError, run_command

WINDOWS = (13, 8)
COMMON = 10  # Brown et al., appendix C, leave out windows found in more than 10 training documents
HALF = 0.5
LISTED_FROM = 13  # words; pairs that share only shorter windows are listed if they share half of them
_LAYOUT = re.compile(r"\\(?:left|right|displaystyle|text|mathrm|q?quad)(?![a-z])")
_DOTS = re.compile(r"\\[cl]dots(?![a-z])")
_FRAC = re.compile(r"\\[dt]frac(?![a-z])")
_WORD = re.compile(r"\d+|[^\W\d_]+")
_SYMBOL = re.compile(r"\d+|[^\W\d_]+|[-+*/=<>|!^_%]")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that a word's place in the window matters and no bits are lost

Hashes = npt.NDArray[np.uint64]


@dataclass
class Questions:
    """The questions of one file with a hash of each word: question i has `word_hashes[starts[i]:starts[i+1]]`."""

    name: str
    ids: list[str]
    texts: list[str]
    exact: list[str]
    word_hashes: Hashes
    starts: npt.NDArray[np.int64]

    def windows(self, n: int) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """Hash of every window of n words, and the index of its question; windows never span two questions."""
        count = len(self.word_hashes) - n + 1
        if count <= 0:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        hashes = np.zeros(count, np.uint64)
        for offset in range(n):
            hashes = hashes * _MULTIPLIER + self.word_hashes[offset : offset + count]
        question = np.repeat(np.arange(len(self.ids)), np.diff(self.starts))
        whole = question[:count] == question[n - 1 :]
        return hashes[whole], question[:count][whole]


def exact_form(text: str) -> str:
    """Words, numbers and operators of a text, one space between them; equal for texts that are the same."""
    return " ".join(_SYMBOL.findall(_unified_text(text)))


def _unified_text(text: str) -> str:
    return _DOTS.sub(" dots ", _FRAC.sub(" frac", _LAYOUT.sub(" ", text.casefold())))


def questions(name: str, ids: Sequence[str], texts: Sequence[str]) -> Questions:
    """Questions prepared for comparison."""
    numbers: dict[str, int] = {}
    flat: list[int] = []
    starts = [0]
    for text in texts:
        for word in _WORD.findall(_unified_text(text)):
            number = numbers.get(word)
            if number is None:
                number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
                numbers[word] = number
            flat.append(number)
        starts.append(len(flat))
    forms = [exact_form(text) for text in texts]
    return Questions(name, list(ids), list(texts), forms, np.array(flat, np.uint64), np.array(starts))


def read_questions(path: Path) -> Questions:
    """The questions (all user messages) of a PROBLEM table, named after the file."""
    table = tables.read(path, tables.PROBLEM).select(["problem_id", "messages"]).to_pydict()
    texts = ["\n".join(m["content"] for m in messages if m["role"] == "user") for messages in table["messages"]]
    return questions(path.stem, table["problem_id"], texts)


def compare(
    train: Questions, benchmark: Questions, windows: Iterable[int] = WINDOWS, common: int = COMMON
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Counts for one pair of files, and the pairs of problems that share a text or a rare window.

    Counts of problems are of the benchmark; `train_…` are of the training set. Shares are of the benchmark's problems.
    """
    total = len(benchmark.ids)
    counts: dict[str, Any] = {
        "train": train.name, "benchmark": benchmark.name, "train_rows": len(train.ids), "problems": total,
    }  # fmt: skip
    pairs: dict[tuple[int, int], dict[str, Any]] = {}
    of_text = defaultdict(list)
    for row, text in enumerate(train.exact):
        of_text[text].append(row)
    same = [(problem, row) for problem, text in enumerate(benchmark.exact) for row in of_text.get(text, ())]
    for pair in same:
        pairs[pair] = {"exact": True}
    _add_count(counts, "exact", {problem for problem, _ in same}, total)
    counts["exact_train_rows"] = len({row for _, row in same})
    for n in windows:
        shared, rare, rows, too_short = _shared_windows(train, benchmark, n, common)
        _add_count(counts, f"gram{n}", shared, total)
        _add_count(counts, f"gram{n}_rare", {problem for problem, _ in rare}, total)
        _add_count(counts, f"gram{n}_half", {problem for (problem, _), share in rare.items() if share >= HALF}, total)
        counts[f"gram{n}_train_rows"] = rows
        counts[f"gram{n}_too_short"] = too_short
        for pair, share in rare.items():
            if n >= LISTED_FROM or share >= HALF or pair in pairs:
                pairs.setdefault(pair, {})[f"gram{n}_share"] = round(share, 4)
    listed = [
        {
            "train": train.name, "train_id": train.ids[row], "benchmark": benchmark.name,
            "benchmark_id": benchmark.ids[problem], "exact": overlap.get("exact", False),
            **{f"gram{n}_share": overlap.get(f"gram{n}_share", 0) for n in windows},
            "benchmark_question": benchmark.texts[problem], "train_question": train.texts[row],
        }
        for (problem, row), overlap in pairs.items()
    ]  # fmt: skip
    return counts, sorted(listed, key=lambda pair: [pair["exact"], *(pair[f"gram{n}_share"] for n in windows)])[::-1]


def _add_count(counts: dict[str, Any], kind: str, problems: set[int], total: int) -> None:
    counts[kind] = len(problems)
    counts[f"{kind}_share"] = round(len(problems) / total, 4) if total else 0.0


def _shared_windows(
    train: Questions, benchmark: Questions, n: int, common: int
) -> tuple[set[int], dict[tuple[int, int], float], int, int]:
    """Problems that share a window; for rare windows, pairs (problem, row) with the share of the problem's windows.

    And how many training rows share a window, and how many problems are too short to have one.
    """
    problem_hashes, problem_of = benchmark.windows(n)
    windows_of = np.bincount(problem_of, minlength=len(benchmark.ids))
    train_hashes, row_of = train.windows(n)
    hit = np.isin(train_hashes, problem_hashes)
    rows_with: dict[int, set[int]] = defaultdict(set)
    for key, row in zip(train_hashes[hit].tolist(), row_of[hit].tolist(), strict=True):
        rows_with[key].add(row)
    shared: set[int] = set()
    windows_shared: dict[tuple[int, int], set[int]] = defaultdict(set)
    for key, problem in zip(problem_hashes.tolist(), problem_of.tolist(), strict=True):
        rows = rows_with.get(key, set())
        if rows:
            shared.add(problem)
        if len({train.exact[row] for row in rows}) <= common:  # a problem that is repeated is one problem
            for row in rows:
                windows_shared[problem, row].add(key)
    rare = {
        (problem, row): min(1.0, len(keys) / windows_of[problem]) for (problem, row), keys in windows_shared.items()
    }
    return shared, rare, len(set(row_of[hit].tolist())), int((windows_of == 0).sum())


def to_markdown(counts: Sequence[dict[str, Any]], windows: Sequence[int] = WINDOWS, common: int = COMMON) -> str:
    """The table to read: a number and its share of the benchmark in each cell, `0` where nothing overlaps."""
    kinds = ["exact", *(kind for n in windows for kind in (f"gram{n}", f"gram{n}_half"))]
    titles = ["exact", *(title for n in windows for title in (f"{n} words", f"{n} words, half"))]
    rows = [
        [f"{row['train']} ({row['train_rows']:,})", row["benchmark"], f"{row['problems']:,}"]
        + [f"{row[kind]:,} ({row[f'{kind}_share']:.1%})" if row[kind] else "0" for kind in kinds]
        for row in counts
    ]
    note = (
        "Problems of the benchmark that occur in the training set. Exact: the same words, numbers, operators. Words: "
        "at least one window of so many words in common. Half: one training problem has at least half of the windows, "
        f"those that stand in more than {common} training problems not counted."
    )
    return f"{markdown.table(['training set', 'benchmark', 'problems', *titles], rows)}\n{note}\n"


def main() -> None:
    """Command line: --train FILE… --benchmark FILE… --output overlap.csv."""
    parser = argument_parser(__doc__)
    parser.add_argument("--train", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--benchmark", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="overlap.csv; two more beside it")
    parser.add_argument("--common", type=int, default=COMMON, help="windows in more training rows are not counted")
    arguments = parser.parse_args()
    for path in (*arguments.train, *arguments.benchmark):
        if not path.is_file():
            raise UserError(
                f"{path} does not exist: make it with `crosszero problems NAME --output {path}`",
                code="missing-file",
                path=str(path),
            )
    benchmarks = [read_questions(path) for path in arguments.benchmark]
    counts: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for path in arguments.train:
        train = read_questions(path)
        for benchmark in benchmarks:
            counted, listed = compare(train, benchmark, common=arguments.common)
            counts.append(counted)
            pairs += listed
    text = to_markdown(counts, common=arguments.common)
    durable.write_text(arguments.output.with_suffix(".md"), text)
    fields = ["train", "train_id", "benchmark", "benchmark_id", "exact", *(f"gram{n}_share" for n in WINDOWS)]
    texts = ["benchmark_question", "train_question"]
    listing = pd.DataFrame(pairs, columns=[*fields, *texts]).to_csv(index=False)
    durable.write_text(arguments.output.with_suffix(".pairs.csv"), listing)
    durable.write_text(arguments.output, pd.DataFrame(counts).to_csv(index=False))
    inputs = {str(path): provenance.sha256(path) for path in (*arguments.train, *arguments.benchmark)}
    provenance.write(arguments.output, windows=WINDOWS, common=arguments.common, inputs=inputs)
    print(text, end="")


if __name__ == "__main__":
    run_command(main)

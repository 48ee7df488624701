"""Match generations made elsewhere to the problems of one of our benchmarks, so that our gold answers are used."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from eval.benchmark import question
from system.errors import UserError
from tasks import registry

WAYS = ("question", "id", "order")
OPERATORS = frozenset("+-*/<>=^")
DASHES = str.maketrans("–—−", "---")
NO_CONTENT = re.compile(r"\\(?:left|right|displaystyle|[,;!: ])")  # of LaTeX: spaces and sizes
WORD = re.compile(r"\w+")
FEWEST_WORDS = 3  # of a question that is compared with another
SAME_WORDS = 0.6  # share of a question's words that a text with it has, however a harness writes formulas
LONG = 40  # characters of a question that is recognised inside a text although it is written differently


def _letters(text: str) -> str:
    """The text without white space, in which harnesses differ."""
    return "".join(text.split())


@lru_cache(maxsize=100_000)  # each row is looked up in several benchmarks
def _plain(text: str) -> str:
    """What stays of a question however a harness writes it: letters, digits and operators, in one case and font."""
    text = unicodedata.normalize("NFKC", text).casefold().translate(DASHES)
    text = NO_CONTENT.sub("", text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac"))
    return "".join(character for character in text if character.isalnum() or character in OPERATORS)


def _row_text(row: dict[str, Any], same_options: bool) -> str:
    """What a row was asked; with the options, which may stand in the prompt alone."""
    first, second = ("prompt", "question") if same_options else ("question", "prompt")
    return str(row.get(first) or row.get(second) or "")


def _same_options(problems: Sequence[dict[str, Any]]) -> bool:
    """Whether answers mean another thing where the question has its options in another order."""
    return bool(problems) and registry.get(problems[0]["task"]).same_options


def _question(problem: dict[str, Any]) -> str:
    """What other harnesses ask, too."""
    return registry.get(problem["task"]).without_instruction(question(problem))


def _first_index(texts: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """The first problem with each question, and the questions, the longest first."""
    index_of = {text: index for index, text in reversed([*enumerate(texts)]) if text}
    return index_of, sorted(index_of, key=len, reverse=True)


class Questions:
    """The questions of a benchmark, by which rows are matched: exactly, then however they are written.

    Args:
        problems: rows of a problem table (PROBLEM).
    """

    def __init__(self, problems: Sequence[dict[str, Any]]) -> None:
        """Index the questions."""
        self._same_options = _same_options(problems)
        texts = [_question(problem) for problem in problems]
        self._by_spelling = {spelling: _first_index(list(map(spelling, texts))) for spelling in (_letters, _plain)}
        self._known: dict[str, int | None] = {}

    def index_in(self, row: dict[str, Any]) -> int | None:
        """The problem whose question the row was asked, else the one with the longest question that its text contains.

        What only looks alike after `_plain` has to be long, so that no short question is seen in another one.
        """
        text = _row_text(row, self._same_options)
        if text not in self._known:
            self._known[text] = self._problem_in(text)
        return self._known[text]

    def _problem_in(self, text: str) -> int | None:
        for spelling, (index_of, _) in self._by_spelling.items():
            if (whole := spelling(text)) in index_of:
                return index_of[whole]
        for spelling, (index_of, longest_first) in self._by_spelling.items():
            whole, least = spelling(text), LONG if spelling is _plain else 1
            for known in longest_first:
                if len(known) >= least and known in whole:
                    return index_of[known]
        return None


def indices_by_question(rows: Sequence[dict[str, Any]], problems: Sequence[dict[str, Any]]) -> list[int | None]:
    """Per row, the index of the problem with its question (`Questions`).

    Problems may share a question: the file's first id of that question is then the first of them, and so on.
    """
    questions = Questions(problems)
    indices = [questions.index_in(row) for row in rows]
    twins: dict[str, list[int]] = {}
    for index, problem in enumerate(problems):
        twins.setdefault(_letters(_question(problem)), []).append(index)
    for first, *others in twins.values():
        if others:
            ids = dict.fromkeys(row["problem_id"] for row, index in zip(rows, indices, strict=True) if index == first)
            twin_of = dict(zip(ids, [first, *others], strict=False))
            pairs = zip(rows, indices, strict=True)
            indices = [twin_of.get(row["problem_id"], first) if index == first else index for row, index in pairs]
    return indices


def _by_order(
    rows: Sequence[dict[str, Any]], problems: Sequence[dict[str, Any]], allow_missing: bool
) -> list[int | None]:
    order = {name: index for index, name in enumerate(dict.fromkeys(row["problem_id"] for row in rows))}
    if allow_missing:
        return [order[row["problem_id"]] if order[row["problem_id"]] < len(problems) else None for row in rows]
    if len(order) != len(problems):
        raise UserError(
            f"to match by order there should be as many problems as in the benchmark, {len(problems)}, but the "
            f"generations have {len(order)}; use --match question or id, or --allow-missing to import the first ones",
            code="other-problems",
            problems=len(order),
        )
    return [order[row["problem_id"]] for row in rows]


def _advice(rows: Sequence[dict[str, Any]], problems: Sequence[dict[str, Any]], by: str, lost: int) -> str:
    """What would match more generations."""
    advice = ""
    for way in WAYS:
        if way != by:
            matched = len(rows) - _problem_indices(rows, problems, way, allow_missing=True).count(None)
            advice += f", or try --match {way}, which matches {matched}" if matched > len(rows) - lost else ""
    return advice + (f", or import the other {len(rows) - lost} with --allow-missing" if lost < len(rows) else "")


def _problem_indices(
    rows: Sequence[dict[str, Any]], problems: Sequence[dict[str, Any]], by: str, allow_missing: bool
) -> list[int | None]:
    if by == "question":
        return indices_by_question(rows, problems)
    if by == "id":
        ids = {problem["problem_id"]: index for index, problem in enumerate(problems)}
        return [ids.get(row["problem_id"]) for row in rows]
    indices = _by_order(rows, problems, allow_missing)
    # Where the options count, too, `_check_options` compares both
    return indices if _same_options(problems) else _without_other_questions(rows, problems, indices)


def _without_other_questions(
    rows: Sequence[dict[str, Any]], problems: Sequence[dict[str, Any]], indices: Sequence[int | None]
) -> list[int | None]:
    """The indices, without those of rows whose own question is another: most words of the problem's are not in it."""
    kept: list[int | None] = []
    for row, index in zip(rows, indices, strict=True):
        text = f"{row.get('question') or ''} {row.get('prompt') or ''}"
        if index is not None and text.strip():
            wording = set(WORD.findall(_question(problems[index]).casefold()))
            shared = wording & set(WORD.findall(text.casefold()))
            if len(wording) >= FEWEST_WORDS and len(shared) < SAME_WORDS * len(wording):
                index = None
        kept.append(index)
    return kept


def _check_options(
    rows: Sequence[dict[str, Any]], problems: Sequence[dict[str, Any]], indices: Sequence[int | None]
) -> None:
    """Raise UserError if a row does not show its problem's options in their order: its letter means another one."""
    odd = [
        row["problem_id"]
        for row, index in zip(rows, indices, strict=True)
        if index is not None and _letters(_question(problems[index])) not in _letters(_row_text(row, same_options=True))
    ]
    if odd:
        raise UserError(
            f"the benchmark's answers are letters of options, but {len(odd)} of {len(rows)} generations do not show "
            f"the options of their problem in its order, the first is that of {odd[0]}: generate them from the "
            "benchmark's own questions, or import those that match with --match question --allow-missing",
            code="other-options",
            count=len(odd),
        )


def count_matched(rows: Sequence[dict[str, Any]], table: pa.Table) -> int:
    """How many of the rows have the question of a problem in the table (PROBLEM)."""
    return len(rows) - indices_by_question(rows, table.to_pylist()).count(None)


def match(
    rows: Sequence[dict[str, Any]], table: pa.Table, by: str, *, allow_missing: bool = False
) -> list[dict[str, Any]]:
    """Rows with the problem_id and the gold answer of our benchmark instead of their own.

    Args:
        rows: as eval.importers.formats gives them.
        table: the benchmark's problems (PROBLEM).
        by: one of WAYS: `question` (its text, or a prompt that contains it), `id`, or `order` (of first appearance).
        allow_missing: leave out rows that fit no problem, and list them on stderr.

    Raises:
        UserError: a row fits no problem; or, with `allow_missing`, none does. Or answers are letters of options, and a
            row was asked with the options in another order.
    """
    problems = table.to_pylist()
    indices = _problem_indices(rows, problems, by, allow_missing)
    if by != "question" and _same_options(problems):
        _check_options(rows, problems, indices)
    lost = [row["problem_id"] for row, index in zip(rows, indices, strict=True) if index is None]
    if lost and allow_missing and len(lost) < len(rows):
        names = list(dict.fromkeys(map(str, lost)))
        print(f"Left out: {len(lost)} generations of {len(names)} problems: {', '.join(names)}", file=sys.stderr)
    elif lost:
        own = " and by their own questions, which are compared" if by == "order" else ""
        raise UserError(
            f"{len(lost)} of {len(rows)} generations match no problem of the benchmark by {by}{own}, the first is that "
            f"of {lost[0]}; check the benchmark{_advice(rows, problems, by, len(lost))}",
            code="unmatched-generations",
            count=len(lost),
            matched=len(rows) - len(lost),
        )
    return [
        {**row, "problem_id": problems[index]["problem_id"], "gold": problems[index]["answer"]}
        for row, index in zip(rows, indices, strict=True)
        if index is not None
    ]

"""Check the reasoning of Knights and Knaves: tries as in demo_traces.py, and the statements that each is checked by.

A try is right if it is the next one in their order. A check is right if it quotes the statement, judges each claim as
the try has it, and finds the contradiction (`fails`) or none (`fits`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from tasks.knights_knaves.puzzles import Statement, read_question, statement_text
from tasks.problems import Problem
from tasks.reasoning_steps import Step, judged_step, numbered_lines

RIGHT_HABITS: dict[str, Any] = {"thorough": 1.0, "two": 0.0, "unchecked": 0.0, "slip": 0.0}  # traces without a fault
_TRY = re.compile(r"(\d{1,3})((?: [A-Z][a-z]+ kn(?:ight|ave))+)")
_CHECK = re.compile(r"([A-Z][a-z]+): ([^.]+)\.(.*) ([A-Z][a-z]+) (knight|knave) (fits|fails)")
_CLAIM = re.compile(r" ([A-Z][a-z]+ is (?:not )?a kn(?:ight|ave)) (yes|no)")


def check(completion: str, problem: Problem) -> list[Step] | None:
    """The steps of a completion; see Task.check_steps."""
    try:
        names, statements = read_question(problem.question)
    except (ValueError, IndexError):
        return None
    tries = list(itertools.product((True, False), repeat=len(names)))
    steps, number, assigned = [], 0, dict[str, bool]()
    for at, text in numbered_lines(completion):
        faults = None
        if tried := _TRY.fullmatch(text):
            stated = re.findall(r"([A-Z][a-z]+) (knight|knave)", tried[2])
            number, before, assigned = int(tried[1]), number, {name: kind == "knight" for name, kind in stated}
            faults = [] if number == before + 1 else [f"after try {before} comes {before + 1}"]
            expected = dict(zip(names, tries[number - 1], strict=True)) if 0 < number <= len(tries) else {}
            if assigned != expected or len(stated) != len(names):
                faults.append(f"try {number} is not this one")
        elif (checked := _CHECK.fullmatch(text)) and set(assigned) == set(names) and checked[1] in names:
            knights = [assigned[name] for name in names]
            faults = _check_faults(checked, names, statements[names.index(checked[1])], knights)
        steps.append(judged_step(at, text, faults))
    return steps


def _check_faults(
    line: re.Match[str], names: Sequence[str], statement: Statement, knights: Sequence[bool]
) -> list[str]:
    """Faults of the check of one statement under a try."""
    faults = [] if line[2] == statement_text(statement, names) else [f"{line[1]} does not say this"]
    form = "not" if statement.form == "not" else "is"
    claims = [Statement(form, (claim,)) for claim in statement.claims]
    judged = [(statement_text(claim, names), "yes" if claim.holds(knights) else "no") for claim in claims]
    if _CLAIM.findall(line[3]) != judged:
        faults.append("judged should be" + "".join(f" {claim} {verdict}" for claim, verdict in judged))
    speaker = names.index(line[1])
    if line[4] != line[1] or (line[5] == "knight") != knights[speaker]:
        faults.append(f"the try has {line[1]} as a {'knight' if knights[speaker] else 'knave'}")
    if (line[6] == "fits") != (statement.holds(knights) == knights[speaker]):
        faults.append("this is a contradiction" if line[6] == "fits" else "this is no contradiction")
    return faults

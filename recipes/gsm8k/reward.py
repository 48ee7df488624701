r"""The five rewards of the GSM8K notes (section 7.2.6), as published and as meant.

A run file gives each a weight: 2 for a right answer, 0.5 for digits, 0.5 for each format, and `tag_count` up to 0.5.
What is published differs from what its comments say (`*_as_meant` does what they say):

- `.` matches no line end, and the strict pattern wants one after the last tag. Reasoning of several lines has neither
  format, and a completion that simply ends with its last tag never has the strict one.
- Without a line end after the last tag, `tag_count` takes 0.001 off for every character of the whole completion.
- Without an answer tag the whole completion is taken as the answer: `72` alone is right.
- The answer is compared as text with the data set's own, in which some thousands have a comma: `1000` is then wrong.
- `²` is a digit, and -5 or 1,000 is none.

Both versions count a completion as a format error where it does not begin with the two tags, each closed, whatever the
format rewards pay for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from grading.extraction import last_tag
from recipes.rewards import Reward, correctness, tagged_verdicts
from tasks.problems import Problem

STRICT = re.compile(r"<reasoning>\n.*?\n</reasoning>\n<answer>\n.*?\n</answer>\n$")
STRICT_AS_MEANT = re.compile(r"<reasoning>\n.*?\n</reasoning>\n<answer>\n.*?\n</answer>\n?\Z", re.DOTALL)
BETWEEN = re.compile(r"</reasoning>\s*+<answer>")
INTEGER = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)", re.ASCII)
TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
OF_A_TAG, OF_A_CHARACTER = 0.125, 0.001


def published_answer(completion: str) -> str:
    """What stands after the last `<answer>` up to `</answer>`; without tags, the whole completion."""
    return completion.rpartition("<answer>")[2].partition("</answer>")[0].strip()


def _published_gold(problem: Problem) -> str | None:
    """The data set's own text, with its commas; a generated problem has none but its answer."""
    _, marks, tail = str(problem.meta.get("answer", "")).partition("####")
    return tail.partition("####")[0].strip() if marks else problem.answer


def right(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the answer is the data set's, letter by letter, else 0; None where the data set has none."""
    rewards = []
    for completion, problem in zip(completions, problems, strict=True):
        gold = _published_gold(problem)
        same = published_answer(completion) == gold
        verdict = "correct" if same else "wrong" if last_tag(completion) else "format_error"
        rewards.append(Reward(float(same), verdict) if gold else Reward(None, "ungradable"))
    return rewards


def digits(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the answer is digits alone, else 0."""
    return [Reward(float(published_answer(completion).isdigit())) for completion in completions]


def _matches_at_start(pattern: re.Pattern[str]) -> Callable[[str], float]:
    return lambda completion: float(pattern.match(completion) is not None)


def _begins_with_tags(text: str, *, across_lines: bool = False) -> bool:
    r"""Whether `<reasoning>.*?</reasoning>\s*<answer>.*?</answer>` matches at the start, in linear time.

    The first place between the tags leaves most room for `</answer>`; only the last one in a line can lead to another
    line.
    """
    if not text.startswith("<reasoning>"):
        return False
    first_line = len(text) if across_lines else len(text.partition("\n")[0])
    between = [match.end() for match in BETWEEN.finditer(text, len("<reasoning>")) if match.start() < first_line]
    for start in {*between[:1], *between[-1:]}:
        end = -1 if across_lines else text.find("\n", start)
        if text.find("</answer>", start, len(text) if end < 0 else end) >= 0:
            return True
    return False


def _format_rewards(value: Callable[[str], float], completions: Sequence[str]) -> list[Reward]:
    return [
        Reward(float(value(text)), format_error=not _begins_with_tags(text, across_lines=True)) for text in completions
    ]


def strict_format(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the completion is the two tags on lines of their own, one line in each, and a line end; else 0."""
    return _format_rewards(_matches_at_start(STRICT), completions)


def soft_format(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the completion begins with the two tags, each closed in its own line, else 0."""
    return _format_rewards(_begins_with_tags, completions)


def _tag_count(text: str) -> float:
    value = 0.0
    for tag in ("<reasoning>\n", "\n</reasoning>\n"):
        value += OF_A_TAG * (text.count(tag) == 1)
    if text.count("\n<answer>\n") == 1:
        value += OF_A_TAG - OF_A_CHARACTER * len(text.split("\n</answer>\n")[-1])
    if text.count("\n</answer>") == 1:
        value += OF_A_TAG - OF_A_CHARACTER * (len(text.split("\n</answer>")[-1]) - 1)
    return value


def tag_count(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """An eighth for each of the four tags that stands once on its line, less what follows the last; at most 0.501."""
    return [Reward(_tag_count(completion)) for completion in completions]


def right_as_meant(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the number in the answer tag is right by the evaluation's own grader, else 0."""
    answers = [last_tag(completion) for completion in completions]
    return [correctness(verdict) for verdict in tagged_verdicts(answers, problems)]


def integer_as_meant(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if a whole number stands in the answer tag, with a sign or commas where it has them, else 0."""
    return [Reward(float(INTEGER.fullmatch(last_tag(completion) or "") is not None)) for completion in completions]


def _strict_as_meant(text: str) -> float:
    return float(all(text.count(tag) == 1 for tag in TAGS) and STRICT_AS_MEANT.match(text) is not None)


def strict_format_as_meant(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the completion is the two tags on lines of their own with any number of lines in each, and no more."""
    return _format_rewards(_strict_as_meant, completions)


def soft_format_as_meant(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the completion begins with the two tags, with any number of lines in each, else 0."""
    return _format_rewards(partial(_begins_with_tags, across_lines=True), completions)


def _tag_count_as_meant(text: str) -> float:
    value = 0.0
    for tag in ("<reasoning>\n", "\n</reasoning>\n", "\n<answer>\n", "\n</answer>"):
        value += OF_A_TAG * (text.count(tag) == 1)
    after = text.rpartition("\n</answer>")[2].removeprefix("\n") if "\n</answer>" in text else ""
    return value - OF_A_CHARACTER * len(after)


def tag_count_as_meant(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """An eighth for each of the four tags that stands once on its line, less 0.001 for a character after the last."""
    return [Reward(_tag_count_as_meant(completion)) for completion in completions]

"""How many imported completions have no answer where the grader looks first, and which rule would find theirs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from grading.extraction import ANSWER_IS, RULES, extract, extract_tagged
from tasks import registry

MOST = 0.2  # share without an answer above which the score would say little
EXAMPLES, TAIL = 3, 80  # completions, and characters of the end of each


def without_answer(completions: Sequence[str | None], task: str, rule: str = "none") -> str:
    """A sentence for the user: the share without an answer, examples, and the rule that finds most of them.

    Args:
        completions: what the model wrote.
        task: the benchmark's task, which says where an answer stands.
        rule: the extraction rule (grading.extraction.RULES) by which they were, or will be, graded.
    """
    lost, rule = lost_texts(completions, task, rule)
    tagged = _is_tagged(task)
    where = "an answer tag or a box" if tagged else "a box" if rule == "none" else f"a box or by {rule}"
    share = 100 * len(lost) / max(len(completions), 1)
    sentence = f"Without an answer in {where}: {len(lost)} of {len(completions)} ({share:.1f} %)"
    if not lost:
        return sentence
    examples = "".join(f"\n    … {json.dumps(text[-TAIL:])}" for text in lost[:EXAMPLES])
    best, count = ("", 0) if tagged else best_rule(lost)
    advice = f"\n  --extraction {best} finds {count} of them" if count else "\n  no rule finds them"
    if len(lost) > MOST * len(completions):
        advice += "\n*** WARNING: they count as wrong, so the score will say little ***"
    return f"{sentence}, such as{examples}{advice}"


def _is_tagged(task: str) -> bool:
    return registry.get(task).answer_format == "tagged"


def lost_texts(completions: Sequence[str | None], task: str, rule: str = "none") -> tuple[list[str], str]:
    """The completions without an answer, and the extraction rule by which it was looked for.

    Args:
        completions: what the model wrote.
        task: the benchmark's, which may have a rule of its own.
        rule: else this one (grading.extraction.RULES).
    """
    rule = registry.get(task).own_grader.extraction or rule
    tagged, texts = _is_tagged(task), [text or "" for text in completions]
    return [text for text in texts if (extract_tagged(text) if tagged else extract(text, rule)).answer is None], rule


def best_rule(texts: Sequence[str]) -> tuple[str, int]:
    """The extraction rule that finds answers in most of some texts, and in how many."""
    counts = {rule: sum(extract(text, rule).answer is not None for text in texts) for rule in RULES}
    counts["answer-is"] = sum(any(phrase in text for phrase in ANSWER_IS) for text in texts)
    # A number stands in almost any text, so that rule comes last
    best = max(counts, key=lambda rule: (rule != "last-number" and counts[rule] > 0, counts[rule]))
    return best, counts[best]


def rule_for(completions: Sequence[str | None], task: str) -> str:
    """The extraction rule by which completions made elsewhere are graded where the user names none.

    Boxes alone, unless many completions have none and one rule finds an answer in most of those.
    """
    lost, rule = lost_texts(completions, task)
    if rule != "none" or _is_tagged(task) or len(lost) <= MOST * len(completions):
        return "none"
    best, count = best_rule(lost)
    return best if 2 * count > len(lost) else "none"

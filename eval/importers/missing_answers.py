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
    resolved = registry.get(task)
    tagged = resolved.answer_format == "tagged"
    rule = resolved.own_grader.extraction or rule
    texts = [text or "" for text in completions]
    lost = [text for text in texts if (extract_tagged(text) if tagged else extract(text, rule)).answer is None]
    where = "an answer tag or a box" if tagged else "a box" if rule == "none" else f"a box or by {rule}"
    sentence = (
        f"Without an answer in {where}: {len(lost)} of {len(texts)} ({100 * len(lost) / max(len(texts), 1):.1f} %)"
    )
    if not lost:
        return sentence
    examples = "".join(f"\n    … {json.dumps(text[-TAIL:])}" for text in lost[:EXAMPLES])
    counts = {} if tagged else {rule: sum(extract(text, rule).answer is not None for text in lost) for rule in RULES}
    if counts:
        counts["answer-is"] = sum(any(phrase in text for phrase in ANSWER_IS) for text in lost)
    # A number stands in almost any text, so that rule comes last
    best = max(counts, key=lambda rule: (rule != "last-number" and counts[rule] > 0, counts[rule]), default="")
    advice = (
        f"\n  --extraction {best} of eval.grade finds {counts[best]} of them"
        if counts.get(best)
        else "\n  no rule finds them"
    )
    if len(lost) > MOST * len(texts):
        advice += "\n*** WARNING: they count as wrong, so the score will say little ***"
    return f"{sentence}, such as{examples}{advice}"

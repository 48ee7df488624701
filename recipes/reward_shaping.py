r"""Length and repetition terms that any run file may add to its rewards, by weight:

    - {function: recipes.reward_shaping.soft_over_long, weight: 1.0, arguments: {buffer: 4096}}

Lengths are in tokens of the model that is trained, without its end-of-sequence token, and L is the run's
`rollout.max_response_tokens` (recipes.model_tokens). Every value is between its stated bounds, whatever a model writes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

from grading.extraction import BOX
from recipes import model_tokens
from recipes.rewards import Reward, check_argument, verdicts
from tasks.problems import Problem


def cosine(
    completions: Sequence[str],
    problems: Sequence[Problem],
    *,
    right: Sequence[float] = (2.0, 1.0),
    wrong: Sequence[float] = (-10.0, 0.0),
    over: float = -10.0,
    margin: int = 0,
    extraction: str = BOX,
) -> list[Reward]:
    """A value for the answer that moves with the length l along half a cosine; it judges the answer, too.

    With (a, b) = `right` for a correct answer and `wrong` for any other:

        b + (a - b) * (1 + cos(pi * l / L)) / 2        `over` where l + margin >= L

    so that right answers should be short and wrong ones long. Yeo et al. 2025 (arXiv:2502.03373), section 4.2 and
    equation 1; the defaults are those of its scripts (demystify-long-cot, reward/cosine.py at e90cf9b), whose margin
    is 16.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        right: the values of a correct answer of no tokens and of L tokens.
        wrong: those of any other.
        over: the value of a completion that reached the limit, right or wrong.
        margin: tokens below the limit from which on a completion counts as over it.
        extraction: where the answer stands.

    Returns:
        The rewards; a value of None, and the verdict `ungradable`, where the gold answer is unusable.
    """
    limit, rewards = model_tokens.response_limit(), list[Reward]()
    for completion, verdict in zip(completions, verdicts(completions, problems, extraction), strict=True):
        length = len(model_tokens.encode(completion))
        at_start, at_limit = right if verdict == "correct" else wrong
        value = at_limit + (at_start - at_limit) * (1 + math.cos(math.pi * length / limit)) / 2
        if length + margin >= limit:
            value = over
        rewards.append(Reward(None if verdict == "ungradable" else value, verdict))
    return rewards


def soft_over_long(completions: Sequence[str], problems: Sequence[Problem], *, buffer: int) -> list[Reward]:
    """0 up to L - buffer tokens, then falling in a straight line to -1 at L, and -1 above.

    For a length l: min(0, max(-1, (L - buffer - l) / buffer)). Yu et al. 2025 (DAPO, arXiv:2503.14476), equation 13,
    with L = 20,480 and a buffer of 4,096 there.

    Args:
        completions: the assistant's turns.
        problems: not looked at.
        buffer: in tokens, between 1 and L.

    Raises:
        UserError: the buffer is not in this range.
    """
    limit = model_tokens.response_limit()
    check_argument(
        "recipes.reward_shaping.soft_over_long",
        "buffer",
        buffer,
        1 <= buffer <= limit,
        f"1 to max_response_tokens, {limit}",
    )
    lengths = [len(model_tokens.encode(completion)) for completion in completions]
    return [Reward(min(0.0, max(-1.0, (limit - buffer - length) / buffer))) for length in lengths]


def repetition(
    completions: Sequence[str], problems: Sequence[Problem], *, ngram: int, unit: str = "words"
) -> list[Reward]:
    """The share of n-grams that occurred before in the completion, from 0 to below 1, as a negative value.

    For N n-grams of which D are distinct: -(1 - D / N), and 0 where the text is too short for one. The weight is the
    largest penalty. Yeo et al. 2025 (arXiv:2502.03373), reward/repetition.py `get_repetition_penalty` at e90cf9b, which
    divides by zero for short texts and counts `words`: the text in lower case, split at white space.

    Args:
        completions: the assistant's turns.
        problems: not looked at.
        ngram: items of one n-gram, 1 or more.
        unit: of an n-gram, words or tokens.

    Raises:
        UserError: `ngram` or `unit` is something else.
    """
    check_argument("recipes.reward_shaping.repetition", "ngram", ngram, ngram >= 1, "1 or more")
    check_argument("recipes.reward_shaping.repetition", "unit", unit, unit in ("words", "tokens"), "words or tokens")
    rewards = []
    for completion in completions:
        items = completion.lower().split() if unit == "words" else model_tokens.encode(completion)
        grams = list(_ngrams(items, ngram))
        rewards.append(Reward(len(set(grams)) / len(grams) - 1 if grams else 0.0))
    return rewards


def repeated_tokens(completions: Sequence[str], problems: Sequence[Problem], *, ngram: int) -> list[Reward]:
    """The number of tokens in n-grams that occurred before in the completion, as a negative value.

    The weight is the penalty of a token. Yeo et al. 2025 (arXiv:2502.03373), reward/repetition.py
    `RepetitionDensePenalty` at e90cf9b with 40-grams and 0.05, gives it to each of these tokens where it stands, with a
    discount of 0.99; this is its sum, at the end of the completion.

    Args:
        completions: the assistant's turns.
        problems: not looked at.
        ngram: tokens of one n-gram, 1 or more.

    Raises:
        UserError: `ngram` is something else.
    """
    check_argument("recipes.reward_shaping.repeated_tokens", "ngram", ngram, ngram >= 1, "1 or more")
    rewards = []
    for completion in completions:
        seen, covered, end = set[Hashable](), 0, 0
        for start, gram in enumerate(_ngrams(model_tokens.encode(completion), ngram)):
            if gram in seen:
                covered += start + ngram - max(start, end)
                end = start + ngram
            seen.add(gram)
        rewards.append(Reward(0.0 - covered))
    return rewards


def _ngrams(items: Sequence[Hashable], size: int) -> Iterator[tuple[Hashable, ...]]:
    return zip(*(items[start:] for start in range(size)), strict=False)

"""Golds with one sign, digit, letter, exponent or index changed are wrong answers: none is accepted.

The golds are those of the benchmarks in the data mirror that are more than a whole number, and some that were once
mistaken: high powers, small constants, mixed case, symbols with an index. `make test` takes these and a part of the
others that TEST_SEED draws, `make test-all` all of them. What is written around a gold changes it or does not.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from grading.verdicts import DEADLINE_S
from grading.worker_pool import POOL, Pair
from tasks.dataset_specs import find
from tasks.load_problems import load
from tasks.math_answers import formulas
from tasks.math_answers.exact_comparison import compare_exactly
from tasks.math_answers.plain_notation import plain

JUDGE = "tasks.math_answers.judge.judge"
MIRROR = Path(__file__).parents[2] / "../shared/data"
BENCHMARKS = ("math500", "minerva_math", "olympiadbench", "aime24", "aime25", "amc83")
OWN = [
    r"(x-a)^{2024}", r"\frac{x^{2024}-1}{x-1}", r"\frac{1}{1-x^{300}}", r"(a-b)^{20}(b-c)^{21}", r"e^{-1000x}",
    r"2^{n+7}", r"1.6\times10^{-19}V", r"\frac{n}{2^{100}}", r"6.67\times10^{-11}m", r"10^{-40}", r"3\cdot2^{-200}",
    r"x^{50}+50!",
    r"\frac{R}{r}", r"\frac{m}{M+m}", r"\pi(R^2-r^2)h", r"G\frac{Mm}{r^2}", r"A\cos(\omega t)+a", r"mgh",
    r"A_1^2+A_2^2", r"\frac{P_{1}^{2}}{2m}", r"\frac{1}{3}E_{1}+\frac{2}{3}E_{2}", r"\hat{x}+2\hat{y}", r"k_BT\ln N_1",
    r"\left[P_{0}^{2/5}-\frac{2}{5}gK^{-3/5}z\right]^{5/2}", r"a+bi", r"e^{ikx}-3i", r"y=3x^2-7", r"x^2+4y^2=9",
]  # fmt: skip
# Mutants that say the same: constant functions of any argument, the unit `I` of sympy, the E of scientific notation, a
# constant of integration
_SAME = re.compile(
    r"(?<![a-zA-Z\\])[cC](?=\\right\)| ?[ex]\^)|[a-z]\((\w)\)=-?\d+(?![\w(])|(?<=\d)[eE](?=-?\d)|(?<![\w\\}])i(?!\w)"
)
# What is written around a gold, and whether it still says the same
AROUND = {
    False: r"""
        (@)+10^{-40}   (@)(1+2^{-200})   (@)+e^{-300}   (@)+\frac{1}{40!}   -(@)   @+E_{1}   @\oplus 1   @, 99
        99, @   @ \text{ or } 99   \text{not } @   x\ne @   x>@   2x=@   x^2=@   |x|=@   x+1=@
        \text{twice } x=@   (@)+1=@   (@, 99)   x_{@}   x^{@}   @\text{ squared}   @\text{ thirds}
        @\text{ million}   @\text{ is wrong}   @ \pmod 7   @以上   不是@   f(@)   \int_0^1 (@)x\,dx   @ \times   @ /
        @''
    """,
    True: r"""
        |z|=@   \mathbb{P}(X=2)=@   \operatorname{Var}(X)=@   \angle ABC=@   f'(2)=@   [ABC]=@
        S_{\triangle ABC}=@   \text{Area}=@   \overline{AB}=@   T_{\max}=@   \dot{x}=@   \det A=@   \boxed{@}
        \mathbf{@}   \color{red}{@}   \displaystyle @   $@$   \left( @ \right)   {@}   答案：@   最大值为 @   @。
        \text{Answer: } @   \therefore x=@   \text{The value is } @   7+(@)-7   \frac{3(@)}{3}   (@)^1
        (@)\cdot 1
    """,
}  # `@` is the gold
_UNTOUCHED = re.compile(r"\\(?:text|mathrm|mbox|operatorname)\s*\{[^{}]*\}|\\[a-zA-Z]+|\\.")


def golds() -> list[str]:
    """Those of this file, and the benchmarks' that are more than a whole number, each once."""
    answers: list[str] = list(OWN)
    if MIRROR.is_dir():
        problems = (problem for name in BENCHMARKS for problem in load(find(name), MIRROR)[0])
        answers += [problem.answer for problem in problems if problem.answer and problem.task == "math"]
    return [one for one in dict.fromkeys(answers) if not re.fullmatch(r"-?[\d,.]+", one)]


def mutants(gold: str) -> Iterator[tuple[str, str]]:
    """The kind of change, and the gold with it."""
    matches = [*_UNTOUCHED.finditer(gold), *_SAME.finditer(gold)]
    untouched = {at for match in matches for at in range(*match.span())}
    for at, character in enumerate(gold):
        if at in untouched:
            continue
        before, after = gold[:at], gold[at + 1 :]
        previous = next((c for c in reversed(before) if c not in "{ "), "")
        kind = {"^": "exponent", "_": "index"}.get(previous, "")
        if character in "+-" and before.strip() not in ("",):
            yield "sign", before + "-+"[character == "-"] + after
        elif character.isdigit():
            yield kind or "digit", before + str((int(character) + 1) % 10) + after
        elif character.isalpha() and character.isascii():
            other = "uvw"[("u" in gold) + ("u" in gold and "v" in gold)]
            yield kind or "letter", f"{before}{other}{after}"
            yield "case", before + character.swapcase() + after


def accepted(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What the grader takes for right, in its workers: sympy may need hours for an integral, which is then wrong."""
    exact = {pair: compare_exactly(*pair) for pair in pairs}
    judged = [Pair(*pair, None) for pair, same in exact.items() if same is None]
    verdicts = dict(zip(judged, POOL.run(JUDGE, judged, deadline_s=DEADLINE_S, workers=1), strict=True))
    return [pair for pair, same in exact.items() if same or verdicts.get(Pair(*pair, None)) == "correct"]


@pytest.fixture(scope="module")
def drawn() -> list[tuple[str, str, str]]:
    """All mutants: kind, gold, mutant."""
    return [(kind, gold, mutant) for gold in golds() for kind, mutant in mutants(gold)]


@pytest.mark.slow
def test_mutants_of_every_kind_are_wrong(drawn: list[tuple[str, str, str]]) -> None:
    own = [one for one in drawn if one[1] in OWN]
    rng, others = random.Random(os.environ.get("TEST_SEED", "")), [one for one in drawn if one[1] not in OWN]
    chosen = own + rng.sample(others, min(300, len(others)))
    assert {kind for kind, _, _ in chosen} == {"sign", "digit", "letter", "case", "exponent", "index"}
    assert not accepted([(gold, mutant) for _, gold, mutant in chosen])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not MIRROR.is_dir(), reason="needs the data mirror at ../shared/data")
def test_all_mutants_are_wrong(drawn: list[tuple[str, str, str]]) -> None:
    assert len(drawn) > 2000
    assert not accepted([(gold, mutant) for _, gold, mutant in drawn])


def written_around(right: bool) -> list[tuple[str, str]]:
    """Golds that are formulas, and what is written around them: 200 that TEST_SEED draws."""
    rng = random.Random(os.environ.get("TEST_SEED", "") + str(right))
    # Scientific notation stands at the head of an answer alone
    chosen = [one for one in golds() if not re.search(r"\d[eE]-?\d|[=,$]|\\text|\\mbox|circ|_\d$", one)]
    readable = [one for one in chosen if formulas.read(plain(one))]
    zeros = accepted([(one, "0") for one in readable])
    known = [one for one in readable if (one, "0") not in zeros]
    forms = re.split(r"\s{2,}", AROUND[right].strip())
    return [(gold, rng.choice(forms).replace("@", gold)) for gold in rng.choices(known, k=200)]


@pytest.mark.slow
@pytest.mark.parametrize("right", [False, True])
def test_what_is_written_around_a_gold(right: bool) -> None:
    pairs = written_around(right)
    assert set(accepted(pairs)) == (set(pairs) if right else set())


def test_every_gold_is_its_own_answer() -> None:
    pairs = [(gold, gold) for gold in OWN]
    assert accepted(pairs) == pairs

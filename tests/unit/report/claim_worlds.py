"""For each claim on runs, a world in which its sentence is true, and worlds in which it is false.

A world says of each run what its completions and its training log are, as numbers or as {step: number}, linear in
between. The worlds follow the sentence, not the rule; planted_runs.py makes stored runs of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from planted_runs import Curve, Run


class Worlds(NamedTuple):
    """The world in which a sentence is true, and those in which it is false."""

    true: Mapping[str, Run]
    false: Sequence[Mapping[str, Run]]


def one_run(name: str, true: Run, *false: Run) -> Worlds:
    """Worlds of one run."""
    return Worlds({name: true}, [{name: world} for world in false])


def two_runs(first: str, second: str, true: tuple[Run, Run], *false: tuple[Run, Run]) -> Worlds:
    """Worlds of two runs."""
    both = [{first: one, second: two} for one, two in (true, *false)]
    return Worlds(both[0], both[1:])


def log(**columns: Curve) -> Run:
    """A run of which the training log matters."""
    return {"log": columns}


def length(curve: Curve, swing: Curve = 0.01) -> Run:
    """A training log of lengths, with swings from step to step relative to them."""
    return {"log": {"response_length_mean": curve}, "swing": swing}


def right(curve: Any, **more: Any) -> Run:
    """A run of which held-out accuracy matters."""
    return {"correct": curve, **more}


def parts(thinking: Curve, answer: Curve) -> Run:
    """A run of which the lengths of both parts of a completion matter."""
    return {"thinking_tokens": thinking, "answer_tokens": answer}


SIMPLE, SIMPLE_8 = "simplerl/qwen2.5-math-7b", "simplerl/qwen2.5-math-7b-8gpu"
OPENR1, DISTILL, INSTRUCT = (
    "openr1/qwen2.5-math-7b",
    "openr1/deepseek-r1-distill-qwen-7b",
    "openr1/qwen2.5-1.5b-instruct",
)
LOGIC, LOGIC_INSTRUCT, COLLAPSE = "logicrl/qwen2.5-7b", "logicrl/qwen2.5-7b-instruct", "logicrl/qwen2.5-7b-collapse"
TINY_3B, TINY_7B = "tinyzero/ppo-3b", "tinyzero/ppo-7b"
GSM8K, CARDS = "gsm8k/qwen2.5-0.5b-instruct", "game24/grpo-running"
MAZE, MAZE_PPO, MAZE_LARGE, MAZE_PPO_LARGE = "maze/grpo-0.5b", "maze/ppo-0.5b", "maze/grpo-1.5b", "maze/ppo-1.5b"
GOMOKU, DOUDIZHU = "gomoku/9x9-64", "doudizhu/instruct-64"
MATHS = ("gsm8k", "math500", "minerva_math", "olympiadbench", "aime24", "amc23")
RISING, SAME = {0: 0.3, 160: 0.6}, 0.4


def everywhere(curve: Curve, **others: Curve) -> dict[str, Curve]:
    """One curve on all mathematics benchmarks but some."""
    return dict.fromkeys(MATHS, curve) | others


def stage_3(errors: Curve, formats: Curve = 0.02) -> Run:
    """Shares of wrong answers and format errors in the third stage."""
    return log(wrong_answer_rate=errors, format_error_rate=formats)


LONGER = {312: 300, 712: 600}
COLLAPSING = {240: 0.05, 252: 0.8}
FALLING = {313: 0.6, 712: 0.2}
RISE_THEN_LEVEL, LEVEL = {312: 0.3, 512: 0.6, 712: 0.6}, {312: 0.3, 712: 0.3}
UP_AND_SLIGHTLY_DOWN = {312: 0.1, 512: 0.4, 712: 0.37}
SLOW, FAST = {1: 0.3, 500: 0.6}, {1: 0.37, 200: 0.6, 300: 0.65}
CARDS_UP = {0: 0.3, 30: 0.8, 50: 0.6}
CARD_LENGTHS = {(300, 400): {0: 0.2, 50: 0.5}, (400, 500): {0: 0.1, 50: 0.2}, (500, 600): {0: 0.1, 50: 0.15}}

WORLDS: dict[str, Worlds] = {
    "simplerl-length": one_run(SIMPLE, length({1: 900, 12: 400, 100: 580}), length(700), length({1: 580, 160: 300})),
    "simplerl-8-gpus-as-good": two_runs(
        SIMPLE, SIMPLE_8, (right(0.5), right(0.505)), (right(0.5), right(0.4)), (right(0.5), right(0.6))
    ),
    "simplerl-32-gpus-faster": two_runs(
        SIMPLE, SIMPLE_8, (log(tokens_per_second=3200), log(tokens_per_second=1000)),
        (log(tokens_per_second=1000), log(tokens_per_second=1000)),
        (log(tokens_per_second=8000), log(tokens_per_second=1000)),
    ),
    "simplerl-rises": one_run(
        SIMPLE, right({0: 0.3, 20: 0.45, 60: 0.52, 160: 0.54}), right(SAME), right({0: 0.6, 160: 0.3}),
        right({0: 0.3, 20: 0.45, 60: 0.55, 100: 0.4, 160: 0.6}), right({0: 0.3, 20: 0.45, 60: 0.45, 160: 0.6}),
    ),
    "simplerl-dip-of-accuracy": one_run(
        SIMPLE, right({4: 0.45, 12: 0.38, 20: 0.46}), right({4: 0.4, 12: 0.43, 20: 0.46}), right(SAME),
        right({4: 0.45, 12: 0.38, 20: 0.38}),
    ),
    "simplerl-dip-of-length": one_run(
        SIMPLE, length({3: 700, 10: 400, 14: 400, 40: 600}), length(600), length({3: 700, 10: 670, 14: 670, 40: 800}),
        length({3: 700, 10: 400, 60: 390}),
    ),
    "simplerl-plateau-of-length": one_run(
        SIMPLE, length({1: 400, 60: 580, 160: 590}), length({60: 580, 160: 800}),
        length({80: 580, 110: 800, 140: 580}), length({60: 580, 80: 580, 160: 300}),
    ),
    "simplerl-plateau-of-accuracy": one_run(
        SIMPLE, right({0: 0.3, 60: 0.53, 160: 0.535}), right({60: 0.4, 160: 0.4}), right({60: 0.5, 160: 0.56}),
        right({60: 0.53, 100: 0.45, 160: 0.53}),
    ),
    "simplerl-generalises": one_run(
        SIMPLE, right(everywhere(RISING)),
        right(everywhere(RISING, gsm8k={0: 0.6, 160: 0.5})),
        *(right(everywhere(RISING, **{name: 0.1})) for name in MATHS),
    ),
    "simplerl-steps-from-the-start": one_run(
        SIMPLE, {"step_by_step": {0: 0.8, 160: 0.1}}, {"step_by_step": {0: 0.1, 160: 0.9}}
    ),
    "simplerl-steps-fall-and-recover": one_run(
        SIMPLE, {"step_by_step": {0: 0.8, 12: 0.4, 160: 0.8}}, {"step_by_step": 0.8},
        {"step_by_step": {0: 0.8, 12: 0.4, 160: 0.4}}, {"step_by_step": {0: 0.8, 12: 0.4, 160: 0.45}},
    ),
    "simplerl-reflection-small": one_run(
        SIMPLE, {"reflection": {0: 0.05, 160: 0.06}}, {"reflection": {0: 0.05, 160: 0.4}},
        {"reflection": {0: 0.4, 160: 0.05}},
    ),
    "simplerl-held-out-length-falls": one_run(
        SIMPLE, {"tokens": {0: 800, 4: 500, 12: 450}}, {"tokens": 800}, {"tokens": {0: 800, 4: 500, 12: 790}},
        {"tokens": {0: 800, 4: 760, 12: 450}},
    ),
    "simplerl-code": one_run(
        SIMPLE, {"code": {0: 0.6, 12: 0.2, 100: 0.6}}, {"code": 0.5}, {"code": {0: 0.6, 12: 0.2, 100: 0.2}},
        {"code": {0: 0.6, 12: 0.2, 100: 0.4}},
    ),
    "simplerl-aha": one_run(SIMPLE, {"reflection": {0: 0.0, 160: 0.1}}, {"reflection": 0.0}),
    "simplerl-reflects-on-code": one_run(
        SIMPLE, {"reflection": 0.1, "code": 0.5}, {"reflection": 0.0, "code": 0.5}, {"reflection": 0.1, "code": 0.0}
    ),
    "openr1-distill-format": one_run(DISTILL, log(format_error_rate=0.9), log(format_error_rate={1: 0.9, 350: 0.05})),
    "openr1-instruct-format": one_run(INSTRUCT, log(format_error_rate=0.02), log(format_error_rate=0.6)),
    "openr1-instruct-accuracy": one_run(INSTRUCT, right({0: 0.3, 400: 0.31}), right({0: 0.3, 400: 0.5})),
    "openr1-as-simplerl": two_runs(
        OPENR1, SIMPLE, (right(0.5), right(0.5)), (right(0.5), right(0.6)), (right(0.6), right(0.5))
    ),
    "openr1-generalises": one_run(
        OPENR1, right(everywhere({0: 0.3, 400: 0.4}, math500=0.5)),
        right(everywhere({0: 0.3, 400: 0.4}, aime24={0: 0.2, 400: 0.1})),
        right(everywhere(0.3, math500={0: 0.5, 400: 0.8})),
    ),
    "openr1-distill-swings": one_run(
        DISTILL, right({100: 0.65, 200: 0.48, 400: 0.58}), right(0.55), right({100: 0.48, 200: 0.48, 400: 0.58}),
        right({100: 0.65, 200: 0.3, 400: 0.58}), right({100: 0.65, 200: 0.48, 400: 0.75}),
    ),
    "openr1-distill-loses": one_run(
        DISTILL, right({0: 0.635, 400: 0.585}), right({0: 0.635, 400: 0.635}), right({0: 0.4, 400: 0.3})
    ),
    "logicrl-instruct-start": one_run(LOGIC_INSTRUCT, right(0.45), right({0: 0.2, 712: 0.9})),
    "logicrl-instruct-ahead": two_runs(
        LOGIC_INSTRUCT, LOGIC, (right(0.45), right({0: 0.2, 712: 0.9})), (right(0.3), right(0.302)),
        (right(0.2), right(0.3)),
    ),
    "logicrl-first-length": one_run(LOGIC, length({5: 400, 112: 900}), length({5: 700, 112: 400})),
    "logicrl-stage-1-length": one_run(
        LOGIC, length({10: 400, 100: 450}), length(400), length({10: 400, 100: 900}), length({10: 400, 100: 300})
    ),
    "logicrl-base-format": one_run(
        LOGIC, log(format_error_rate={1: 0.6, 18: 0.01}), log(format_error_rate=0.3), log(format_error_rate=0.01)
    ),
    "logicrl-instruct-format": one_run(
        LOGIC_INSTRUCT, log(format_error_rate=0.01), log(format_error_rate={1: 0.3, 40: 0.0}),
        log(format_error_rate={5: 0.01, 60: 0.4}),
    ),
    "logicrl-stage-1-wrong": one_run(
        LOGIC, log(wrong_answer_rate=0.65), log(wrong_answer_rate=0.3), log(wrong_answer_rate={20: 0.9, 112: 0.4})
    ),
    "logicrl-collapse": one_run(
        COLLAPSE,
        {**log(truncated_rate=COLLAPSING, format_error_rate=COLLAPSING), "correct": {212: 0.5, 240: 0.5, 272: 0.1}},
        {**log(truncated_rate=0.05, format_error_rate=0.05), "correct": 0.5},
        {**log(truncated_rate=0.05, format_error_rate=COLLAPSING), "correct": {212: 0.5, 272: 0.1}},
        {**log(truncated_rate={150: 0.05, 160: 0.8}, format_error_rate={150: 0.05, 160: 0.8}), "correct": 0.1},
        {**log(truncated_rate=COLLAPSING, format_error_rate=COLLAPSING), "correct": 0.5},
    ),
    "logicrl-stage-2-swings": one_run(
        LOGIC, length(500, {112: 0.05, 113: 0.2}), length(500, 0.1), length(500, {112: 0.2, 113: 0.05})
    ),
    "logicrl-base-thorough": two_runs(
        LOGIC, LOGIC_INSTRUCT, ({"tokens": 900}, {"tokens": 600}), ({"tokens": 600}, {"tokens": 600}),
        ({"tokens": 500}, {"tokens": 600}),
    ),
    "logicrl-base-as-instruct": two_runs(
        LOGIC, LOGIC_INSTRUCT, (right(0.83), right(0.8)), (right(0.9), right(0.7)), (right(0.7), right(0.8)),
        (right(0.8), right(0.8)),
    ),
    "logicrl-instruct-behind": two_runs(
        LOGIC, LOGIC_INSTRUCT, (right(0.6), right(0.5)), (right(0.5), right(0.5)), (right(0.5), right(0.6))
    ),
    "logicrl-instruct-length": one_run(
        LOGIC_INSTRUCT, length({313: 700, 330: 710, 693: 1200}), length({313: 700, 693: 700}), length(1200)
    ),
    "logicrl-stage-3-errors": two_runs(
        LOGIC, LOGIC_INSTRUCT, (stage_3(FALLING), stage_3(FALLING)), (stage_3(FALLING), stage_3(0.4)),
        (stage_3({313: 0.6, 408: 0.2, 503: 0.5, 712: 0.1}), stage_3(FALLING)),
        (stage_3(FALLING, 0.2), stage_3(FALLING)), (stage_3(FALLING), stage_3(FALLING, 0.2)),
        *((stage_3(errors), stage_3(FALLING)) for errors in (
            {313: 0.3, 418: 0.6, 712: 0.2}, {313: 0.6, 512: 0.3, 608: 0.5, 712: 0.2}, {313: 0.6, 608: 0.2, 712: 0.5})),
    ),
    "logicrl-aha": two_runs(
        LOGIC, LOGIC_INSTRUCT,
        *(({"reflection": one}, {"reflection": two}) for one, two in ((0.3, 0.2), (0.3, 0.0), (0.0, 0.2))),
    ),
    "logicrl-growth-is-thinking": two_runs(
        LOGIC, LOGIC_INSTRUCT,
        *((parts(one, answer), parts({312: 300, 712: 500}, 50))
          for one, answer in ((LONGER, 50.0), (LONGER, {312: 50, 712: 200}), (300.0, 50.0))),
        (parts(LONGER, 50), parts(300, 50)), (parts(LONGER, 50), parts({312: 300, 712: 500}, {312: 50, 712: 300})),
    ),
    "logicrl-steps-rise": two_runs(
        LOGIC, LOGIC_INSTRUCT,
        *(({"step_by_step": RISE_THEN_LEVEL}, {"step_by_step": other})
          for other in (RISE_THEN_LEVEL, LEVEL, {312: 0.3, 712: 0.7}, {312: 0.3, 512: 0.6, 712: 0.4})),
        *(({"step_by_step": one}, {"step_by_step": RISE_THEN_LEVEL}) for one in (LEVEL, {312: 0.3, 712: 0.7})),
    ),
    "logicrl-reflection-rises-and-falls": two_runs(
        LOGIC, LOGIC_INSTRUCT,
        *(({"reflection": UP_AND_SLIGHTLY_DOWN}, {"reflection": other})
          for other in (UP_AND_SLIGHTLY_DOWN, {312: 0.1, 712: 0.4}, {312: 0.1, 512: 0.4, 712: 0.1}, LEVEL)),
        *(({"reflection": one}, {"reflection": UP_AND_SLIGHTLY_DOWN}) for one in ({312: 0.1, 712: 0.4}, LEVEL)),
    ),
    "tinyzero-3b-behind": two_runs(
        TINY_7B, TINY_3B, (right({0: 0.2, 300: 0.2}), right({0: 0.13, 300: 0.9})), (right(0.2), right(0.2)),
        (right(0.2), right(0.03)), (right(0.13), right(0.2)),
    ),
    "tinyzero-3b-slower": two_runs(
        TINY_3B, TINY_7B, (log(accuracy=SLOW), log(accuracy=FAST)), (log(accuracy=FAST), log(accuracy=FAST)),
        (log(accuracy={1: 0.3, 500: 0.4}), log(accuracy=FAST)), (log(accuracy={1: 0.3, 300: 0.6}), log(accuracy=FAST)),
    ),
    "tinyzero-same-first-length": two_runs(
        TINY_3B, TINY_7B, (length({5: 300, 200: 600}), length(305)), (length(300), length(500)),
        (length(500), length(300)),
    ),
    "tinyzero-3b-longer": two_runs(
        TINY_3B, TINY_7B, (length({1: 300, 200: 500}), length(400)), (length(400), length(400)),
        (length(350), length(400)),
    ),
    "tinyzero-valley-of-length": one_run(
        TINY_7B, length({5: 600, 24: 200, 72: 400}), length(400), length({5: 600, 24: 200, 72: 150}),
        length({5: 200, 24: 400, 72: 600}),
    ),
    "tinyzero-3b-thinks-longer": two_runs(
        TINY_3B, TINY_7B, *((parts(one, 12), parts(400, 12)) for one in (500, 400, 300))
    ),
    "tinyzero-answers-short": two_runs(
        TINY_3B, TINY_7B, *((parts(200, one), parts(300, 11)) for one in (12, 30, {0: 60, 100: 40, 300: 12})),
        (parts(200, 12), parts(300, 30)),
    ),
    "tinyzero-shorter-and-better": one_run(
        TINY_7B, right({120: 0.5, 300: 0.6}, tokens={120: 500, 300: 400}), right(0.5, tokens={120: 500, 300: 400}),
        right({120: 0.5, 300: 0.6}, tokens=500), right({120: 0.5, 300: 0.4}, tokens={120: 500, 300: 400}),
    ),
    "tinyzero-steps-from-the-start": two_runs(
        TINY_3B, TINY_7B, ({"step_by_step": 0.8}, {"step_by_step": 0.7}),
        ({"step_by_step": {0: 0.1, 300: 0.9}}, {"step_by_step": 0.7}), ({"step_by_step": 0.8}, {"step_by_step": 0.1}),
    ),
    "tinyzero-reflection-from-the-start": two_runs(
        TINY_3B, TINY_7B, *(({"reflection": one}, {"reflection": 0.3}) for one in (0.2, {0: 0.0, 300: 0.5})),
        ({"reflection": 0.2}, {"reflection": 0.0}),
    ),
    "tinyzero-aha": one_run(
        TINY_7B, {"mistake": {0: 0.02, 60: 0.2}}, {"mistake": 0.0}, {"mistake": {0: 0.3, 60: 0.2}},
    ),
    "tinyzero-fewer-attempts": one_run(
        TINY_7B, {"calculations": {60: 8, 300: 3}}, {"calculations": 4}, {"calculations": {60: 3, 300: 8}}
    ),
    "tinyzero-reflection-changes-more": one_run(
        TINY_7B, {"reflection": {0: 0.5, 300: 0.1}, "step_by_step": {0: 0.5, 300: 0.6}},
        {"reflection": {0: 0.2, 300: 0.3}, "step_by_step": {0: 0.8, 300: 0.3}},
        {"reflection": {0: 0.5, 300: 0.4}, "step_by_step": {0: 0.5, 300: 0.9}},
        {"reflection": {0: 0.2, 300: 0.2 + 1 / 6}, "step_by_step": {0: 0.6, 300: 0.6 - 1 / 6}},
    ),
    "tinyzero-grpo-less-stable": Worlds(
        {"tinyzero/grpo-3b": length(400, 0.2), TINY_3B: length(400, 0.1),
         "tinyzero/grpo-7b": length(400, 0.2), TINY_7B: length(400, 0.1)},
        [{"tinyzero/grpo-3b": length(400, 0.2), TINY_3B: length(400, 0.1),
          "tinyzero/grpo-7b": length(400, swing), TINY_7B: length(400, 0.1)} for swing in (0.1, 0.05)]
        + [{"tinyzero/grpo-3b": length(400, 0.1), TINY_3B: length(400, 0.1),
            "tinyzero/grpo-7b": length(400, 0.2), TINY_7B: length(400, 0.1)}],
    ),
    "gsm8k-82": one_run(GSM8K, right({0: 0.3, 1800: 0.82}), right({0: 0.82, 1800: 0.7}), right(0.95)),
    "gsm8k-format-at-150": one_run(
        GSM8K, log(format_error_rate={140: 0.9, 160: 0.03}), log(format_error_rate=0.9), log(format_error_rate=0.02),
        log(format_error_rate={1: 1.0, 400: 0.0}),
    ),
    "gsm8k-bad-cases-format": one_run(
        GSM8K, right(0.6, format_error=0.05, no_answer=0.01), right(0.6), right(0.6, format_error=0.3)
    ),
    "gsm8k-longer-and-better": one_run(
        GSM8K, right({0: 0.3, 1800: 0.6}, tokens={0: 200, 1800: 300}), right(0.5, tokens={0: 200, 1800: 300}),
        right({0: 0.3, 1800: 0.6}, tokens=200), right({0: 0.3, 1800: 0.6}, tokens={0: 300, 1800: 200}),
    ),
    "cards-unfinished": one_run(
        CARDS, right(0.3, truncated={0: 0.2, 50: 0.0}), right(0.3, truncated=0.02), right(0.3, truncated=0.4)
    ),
    "cards-lengths": one_run(
        CARDS, {"ranges": CARD_LENGTHS}, {"ranges": dict.fromkeys(CARD_LENGTHS, 0.2)},
        {"ranges": {**CARD_LENGTHS, (400, 500): {0: 0.1, 50: 0.5}, (300, 400): {0: 0.2, 50: 0.3}}},
        {"ranges": {**CARD_LENGTHS, (300, 400): {0: 0.5, 50: 0.2}}},
    ),
    "cards-cut-off": one_run(
        CARDS, right(0.3, truncated={0: 0.2, 50: 0.05}), right(0.3, truncated=0.2),
        right(0.3, truncated={0: 0.1, 50: 0.3}),
    ),
    "cards-best-at-30": one_run(CARDS, right({0: 0.3, 30: 0.79}), right({0: 0.3, 30: 0.6, 50: 0.8})),
    "cards-then-falling": one_run(
        CARDS, right(CARDS_UP, truncated={30: 0.1, 50: 0.2}), right(CARDS_UP, truncated=0.1),
        right({30: 0.8, 50: 0.8}, truncated=0.1), right({30: 0.6, 50: 0.8}, truncated=0.1),
    ),
    "cards-over-optimised": one_run(
        CARDS, right(CARDS_UP), right({0: 0.3, 50: 0.8}), right(SAME), right({0: 0.8, 30: 0.5, 50: 0.3}),
        right({0: 0.3, 30: 0.8, 50: 0.8}),
    ),
    "cards-running-mean": Worlds(
        {CARDS: {**log(grad_norm=1.0), "swing": 0.05}, "game24/grpo": {**log(grad_norm=1.0), "swing": 0.2}},
        [{CARDS: {**log(grad_norm=1.0), "swing": swing}, "game24/grpo": {**log(grad_norm=1.0), "swing": 0.2}}
         for swing in (0.2, 0.4)],
    ),
    "rewards-more-tests": Worlds(
        {f"code/tests-{tests}": right(0.3) for tests in (2, 8, 32)},
        [{"code/tests-2": right(0.2), "code/tests-8": right(0.3), "code/tests-32": right(0.3)},
         {"code/tests-2": right(0.3), "code/tests-8": right(0.275), "code/tests-32": right(0.45)}],
    ),
    "rewards-group-size": Worlds(
        {GOMOKU: right(0.5), f"{GOMOKU}-g4": right(0.4), DOUDIZHU: right(0.6), f"{DOUDIZHU}-g4": right(0.5)},
        [{GOMOKU: right(board), f"{GOMOKU}-g4": right(0.4), DOUDIZHU: right(cards), f"{DOUDIZHU}-g4": right(0.5)}
         for board, cards in ((0.4, 0.6), (0.5, 0.4), (0.3, 0.5))],
    ),
    "maze-grpo-learns": one_run(MAZE, right({0: 0.05, 75: 0.8}), right(0.1), right({0: 0.05, 75: 0.2})),
    "maze-grpo-better": Worlds(
        {MAZE: right(0.8), MAZE_PPO: right(0.5), MAZE_LARGE: right(0.8), MAZE_PPO_LARGE: right(0.5)},
        [{MAZE: right(0.8), MAZE_PPO: right(0.5), MAZE_LARGE: right(large), MAZE_PPO_LARGE: right(0.5)}
         for large in (0.5, 0.4)]
        + [{MAZE: right(0.5), MAZE_PPO: right(0.5), MAZE_LARGE: right(0.8), MAZE_PPO_LARGE: right(0.5)}],
    ),
    "maze-reasoning": two_runs(
        MAZE, MAZE_PPO, *((right(0.6, right_reasons=one), right(0.6, right_reasons=two))
                          for one, two in ((0.2, 0.8), (0.8, 0.9), (0.1, 0.3), (0.8, 0.2))),
    ),
    "maze-credit-assignment": Worlds(
        {"maze/ppo-0.5b-same-samples": right(0.6, right_reasons=0.8), MAZE: right(0.6, right_reasons=0.4),
         "maze/grpo-0.5b-no-std": right(0.6, right_reasons=0.4)},
        [{"maze/ppo-0.5b-same-samples": right(0.6, right_reasons=0.4), MAZE: right(0.6, right_reasons=0.4),
          "maze/grpo-0.5b-no-std": right(0.6, right_reasons=one)} for one in (0.4, 0.3)],
    ),
    "maze-obstacles-alone": two_runs(
        MAZE, MAZE_LARGE, *((right(0.5, leads=agent), right(0.5, leads=larger, obstacle=obstacle))
                            for agent, larger, obstacle in (
                                (0.4, 0.0, 0.3), (0.4, 0.2, 0.3), (0.4, 0.0, 0.0), (0.0, 0.0, 0.3))),
    ),
    "maze-larger-reasons-more": two_runs(
        MAZE_LARGE, MAZE, *(({"tokens": one}, {"tokens": 200}) for one in (300, 200, 150))
    ),
    "maze-letters": one_run(MAZE_PPO_LARGE, right(0.1, leads=0.3), right(0.1, leads=0.0)),
}  # fmt: skip

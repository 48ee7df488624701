r"""Seconds that each function which reads completions takes for 10⁵ and 10⁶ characters, and their ratio: about 10.

python -m tests.performance.reading_time [--only WORD]      # minutes

A row for each function with the text that takes it longest. The texts repeat a piece such as `\boxed{` or a combining
mark, alone and where an answer stands. Judges are left out: they run in processes with limits of time and memory.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd

from analysis.measures import reasoning_patterns
from analysis.measures.arithmetic_errors import false_equations
from eval.contamination import completes
from eval.importers.missing_answers import without_answer
from grading import disagreements, extraction
from recipes import reward_shaping
from recipes.game24 import reward as game24
from recipes.gsm8k import reward as gsm8k
from recipes.logicrl import reward as logicrl
from recipes.maze import reward as maze
from recipes.openr1 import reward as openr1
from recipes.rewards import right_steps
from recipes.tinyzero import reward as tinyzero
from system import text_safety
from system.markdown import table
from tasks import gold_answers, registry, task_yaml
from tasks.latex_boxes import last_boxed_gold
from tasks.math_answers import exact_comparison
from tasks.problems import Problem
from tasks.programs.suite import extract_program

Reader = Callable[[str], object]
PIECES = (
    "\\boxed{", "$", "{", "7", "\\frac", " ", "\n", "<think>", "\u0301", "<answer>", "1,", "\u0663", "(", "```", "a ",
)  # fmt: skip
PLACES = ("{}", "\\boxed{{{}}}", "<think></think><answer>{}</answer>", "Answer: {}", "<reasoning>{}</reasoning>x")
SMALL, LARGE = 10**5, 10**6  # characters
TOO_LONG = 2.0  # seconds for the small one: the large one is not tried
TRIED = 3  # slowest texts of the small size that are tried at the large one
SEEN = 0.05  # seconds: what takes less says nothing about a ratio
REWARDS = (
    openr1.tags, openr1.boxed, gsm8k.strict_format, gsm8k.soft_format, gsm8k.tag_count, gsm8k.strict_format_as_meant,
    gsm8k.soft_format_as_meant, gsm8k.tag_count_as_meant, partial(reward_shaping.repetition, ngram=3),
)  # fmt: skip
REWARDS_OF_TASKS = {
    "countdown": [tinyzero.countdown, right_steps],
    "game24": [game24.length, right_steps],
    "knights_knaves": [logicrl.knights_knaves, right_steps],
    "maze": [maze.as_published, right_steps],
}


def problem(task: str) -> Problem:
    """A problem of the task, as its demo traces have them; of mathematics, one with a plain answer."""
    wanted = task_yaml.settings(task).get("demo", {}).get("problems")
    if wanted is None:
        return Problem("7", task, "What is 3+4?", "7", {})
    few = wanted | {"rows": 2} if "rows" in wanted else wanted
    first: Problem = registry.get(task).traces.problems(seed=0, **few)[0]
    return first


def _of_task(name: str) -> Iterator[tuple[str, Reader]]:
    task, task_problem = registry.get(name), problem(name)
    if name == "programs":  # its verifier runs programs, in a sandbox
        yield f"{name}: program_of", extract_program
    else:
        yield f"{name}: verify", lambda text: task.verify(text, task_problem.answer or "", task_problem.meta)
    yield f"{name}: spelling", task.canonical_answer
    yield f"{name}: check_steps", lambda text: task.check_steps(text, task_problem)
    yield f"{name}: picture", lambda text: task.picture(text, task_problem)
    for reward in REWARDS_OF_TASKS.get(name, ()):
        yield f"{name}: {reward.__name__}", lambda text, reward=reward: reward([text], [task_problem])


def readers_of_tasks() -> dict[str, Reader]:
    """What each task reads: answers, steps, pictures, rewards."""
    return {name: reader for task in task_yaml.task_names() for name, reader in _of_task(task)}


def readers() -> dict[str, Reader]:
    """The functions by name; each is called with a completion, or with an answer that was found in one."""
    by_name: dict[str, Reader] = {
        f"extract, {rule}": partial(extraction.extract, rule=rule, is_multi_answer=True) for rule in extraction.RULES
    }
    for function in (
        extraction.extract_tagged, last_boxed_gold, gold_answers.after_hash_marks, gold_answers.integer,
        gold_answers.boxed_integer, exact_comparison.normalise, exact_comparison.is_huge, disagreements.plain_number,
        false_equations,
        text_safety.visible, text_safety.one_line, text_safety.markdown_text, text_safety.markdown_code,
    ):  # fmt: skip
        by_name[function.__name__] = function
    by_name |= {
        f"compare_exactly, {gold}": partial(exact_comparison.compare_exactly, gold) for gold in ("7", "5, 7", "17_8")
    }
    by_name["completes"] = lambda text: completes(text, "many apples?")
    by_name["without_answer"] = lambda text: without_answer([text], "math")
    for one in reasoning_patterns.load_lists():
        by_name[f"pattern {one.name}"] = lambda text, regex=one.regex: reasoning_patterns.count(
            pd.Series([text]), regex
        )
    for reward in REWARDS:
        name = getattr(reward, "__name__", "repetition")
        by_name[name] = lambda text, reward=reward: reward([text], [])
    return by_name | readers_of_tasks()


def text_of(piece: str, position: str, size: int = SMALL) -> str:
    """The piece repeated to a size, at a place."""
    return position.format((piece * (size // len(piece) + 1))[:size])


def seconds(reader: Reader, text: str) -> float:
    """CPU time of one call."""
    start = time.process_time()
    reader(text)
    return time.process_time() - start


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only functions whose name contains this")
    arguments = parser.parse_args()
    rows = []
    for name, reader in readers().items():
        if arguments.only not in name:
            continue
        texts = [(piece, position) for piece in PIECES for position in PLACES]
        slowest = sorted(((seconds(reader, text_of(*text)), text) for text in texts), reverse=True)[:TRIED]
        tried = [(seconds(reader, text_of(*text, LARGE)) if small < TOO_LONG else math.inf, small, text)
                 for small, text in slowest]  # fmt: skip
        large, small, (piece, position) = max(tried)
        ratio = f"{large / small:.0f}" if large > SEEN else "–"
        text = text_safety.markdown_code(ascii(position.format(piece)))
        rows.append([name, text, f"{small:.3f}", f"{large:.3f}", ratio])
        print(*rows[-1], file=sys.stderr)
    print(table(["function", "slowest text", "10⁵", "10⁶", "ratio"], rows))


if __name__ == "__main__":
    main()

"""Result folders as the line would leave them, but drawn at random: for trying the report out, and for its tests.

    PYTHONPATH=. python tests/unit/report/synthetic_results.py results/synthetic

Completions are made of the same parts as real ones (steps, second thoughts, a boxed answer, sometimes none, sometimes
cut off), and a run's skill grows with its steps, so that the figures look as they should.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path

import pyarrow as pa

from contracts import provenance, tables
from eval import score
from eval.benchmark import problems_hash
from tasks.maze import demo_traces as maze_traces
from tasks.maze import problems as maze_problems
from tasks.maze.rules import Maze
from tasks.problems import Problem, to_table

RUNS = {"openr1/math-7b/seed-0": 0.66, "openr1/math-7b/seed-1": 0.24}  # and the accuracy that each tends to
NAMES = list(RUNS)
BENCHMARKS = ("arithmetic_expressions", "arithmetic_words")
STEPS = (0, 25, 50, 100)
LIMIT = 160  # tokens


def _problem(rng: random.Random, benchmark: str) -> tuple[str, str]:
    a, b, c, d = (rng.randint(1, 9) for _ in range(4))
    answer = str(a + b * c - d)
    if benchmark == "arithmetic_words":
        return f"Ann has {a} apples and buys {b} bags of {c}. She eats {d}. How many apples has she now?", answer
    return f"What is {a} + {b} * {c} - {d}?", answer


def _completion(rng: random.Random, gold: str, skill: float, progress: float) -> tuple[str, str | None, str, str]:
    """Text, extracted answer, verdict and finish reason of one completion."""
    right = rng.random() < skill
    answer = gold if right else str(int(gold) + rng.choice([-9, -3, -1, 1, 2, 10]))
    lines = ["First, multiply before adding." if rng.random() < 0.3 + 0.4 * progress else "Take it from left to right."]
    lines += [f"{i}. so far {int(answer) - 3 + i}" for i in range(1, rng.randint(2, 3 + round(2 * progress)))]
    if rng.random() < 0.05 + 0.25 * progress:
        lines.append(f"That is too {rng.choice(['high', 'low'])}, let's try again.")
    trouble = rng.random()
    if trouble < 0.10 * (1 - progress) + 0.01:
        return "\n".join(lines * 9)[:700], None, "truncated", "length"
    if trouble < 0.25 * (1 - progress) + 0.02:
        return "\n".join(lines), None, "no_answer", "stop"
    lines.append(f"Finally the answer is \\boxed{{{answer}}}.")
    return "\n".join(lines), answer, "correct" if right else "wrong", "stop"


def graded(
    run: str, step: int, benchmark: str, ceiling: float, problems: int, repeats: int, last: int
) -> list[dict[str, object]]:
    """GRADED rows of one checkpoint on one benchmark; the problems are the same for every run and step."""
    progress = 1 - math.exp(-3 * step / last)
    rows = []
    for index in range(problems):
        asking = random.Random(f"{benchmark} {index}")
        question, gold = _problem(asking, benchmark)
        ease = asking.gauss(0, 0.18) - (0.06 if benchmark == "arithmetic_words" else 0)
        for repeat in range(repeats):
            rng = random.Random(f"{run} {step} {benchmark} {index} {repeat}")
            text, answer, verdict, finish = _completion(rng, gold, 0.24 + (ceiling - 0.24) * progress + ease, progress)
            rows.append(
                {
                    "run": run, "step": step, "benchmark": benchmark, "problem_id": f"{benchmark}-{index:04d}",
                    "repeat": repeat, "seed": rng.randrange(2**31), "finish_reason": finish, "completion": text,
                    "prompt": f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n", "gold": gold,
                    "prompt_tokens": 40, "completion_tokens": LIMIT if finish == "length" else max(8, len(text) // 3),
                    "protocol": "demo", "answer": answer, "verdict": verdict, "grader": "math-verify 0.8.0",
                }
            )  # fmt: skip
    return rows


def training_log(run: str, ceiling: float, steps: int) -> list[dict[str, object]]:
    """TRAINING_LOG rows of a run that learns up to a ceiling."""
    rng, rows = random.Random(run), []
    for step in range(1, steps + 1):
        progress = 1 - math.exp(-3 * step / steps)
        noise = [rng.gauss(0, 1) for _ in range(8)]
        accuracy = min(1.0, max(0.0, 0.22 + (ceiling - 0.22) * progress + 0.05 * noise[0]))
        broken = min(1 - accuracy, max(0.0, 0.28 * (1 - progress) + 0.02 * noise[1]))
        cut = max(0.0, 0.11 * (1 - progress) + 0.012 * noise[2])
        length = 62 - 22 * progress + 3 * noise[3]
        rows.append(
            {
                "run": run, "stage": 1, "step": step, "wall_time": 1.3 * step, "reward_mean": 2 * accuracy - broken,
                "reward_std": 0.7 - 0.2 * progress + 0.05 * noise[4], "accuracy": accuracy, "format_error_rate": broken,
                "wrong_answer_rate": 1 - accuracy - broken, "response_length_mean": length,
                "response_length_max": LIMIT if cut > 0 else min(LIMIT, 2.2 * length + 6 * noise[5]),
                "truncated_rate": cut, "kl": None, "entropy": 1.1 - 0.6 * progress + 0.03 * noise[6],
                "grad_norm": 0.6 + 0.1 * noise[7], "learning_rate": 2e-4 * (1 - step / steps / 2),
                "zero_signal_rate": min(1.0, max(0.0, 0.2 + 0.3 * progress)), "tokens_per_second": 5200.0,
                "phases": [
                    *([{"name": "start-up", "seconds": 9.0}] if step == 1 else []),
                    {"name": "sampling and reward", "seconds": 0.8 + 0.1 * progress},
                    {"name": "update", "seconds": 0.4 - 0.1 * progress}, {"name": "rest", "seconds": 0.1},
                ],
            }
        )  # fmt: skip
    return rows


def made_once(write: Callable[..., Path]) -> Callable[..., Path]:
    """Have a function write a run once for each of its arguments in this process; each call gets a copy."""
    whole = tempfile.TemporaryDirectory(prefix="runs-")  # removed when the process ends
    written: dict[str, Path] = {}

    @wraps(write)
    def copy_run(results: Path, run: str, *arguments: object, **more: object) -> Path:
        key = repr((run, arguments, sorted(more.items())))
        if key not in written:
            written[key] = Path(whole.name) / str(len(written))
            write(written[key], run, *arguments, **more)
        shutil.copytree(written[key], results, dirs_exist_ok=True)
        return results / "runs" / run

    return copy_run


@made_once
def write_run(
    results: Path, run: str, ceiling: float, benchmarks: Sequence[str] = BENCHMARKS, steps: Sequence[int] = STEPS,
    problems: int = 60, repeats: int = 4,
) -> Path:  # fmt: skip
    """Write one run's folder, its provenance included; returns it."""
    folder = results / "runs" / run
    log = folder / "training_log.parquet"
    tables.write(
        pa.Table.from_pylist(training_log(run, ceiling, max(*steps, 1)), tables.TRAINING_LOG), tables.TRAINING_LOG, log
    )
    settings = {"learning_rate": 2e-4, "num_generations": 8, "prompts_per_update": 16, "base_model": "tiny-qwen2"}
    provenance.write(log, recipe="openr1", framework="trl", seed=int(run.rsplit("-", 1)[1]), settings=settings)
    for step in steps:
        for benchmark in benchmarks:
            path = folder / f"graded/step-{step}/{benchmark}.parquet"
            rows = graded(run, step, benchmark, ceiling, problems, repeats, max(*steps, 1))
            tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
            provenance.write(
                path, grader="math-verify 0.8.0", decoding={"temperature": 1.0, "max_tokens": LIMIT, "n": repeats}
            )
    write_scores(folder)
    return folder


def maze_rows(
    run: str, step: int, benchmark: str, problems: Sequence[Problem], repeats: int, solved: float, reasoned: float
) -> list[dict[str, object]]:
    """GRADED rows of mazes whose reasoning can be checked.

    Args:
        run: the run's id.
        step: of the checkpoint.
        benchmark: its name.
        problems: mazes.
        repeats: completions of each.
        solved: share of right answers.
        reasoned: share of completions without a wrong step; the others have one wrong cell.
    """
    rows = []
    for problem in problems:
        maze = Maze.from_meta(problem.meta)
        for repeat in range(repeats):
            rng = random.Random(f"{run} {step} {problem.problem_id} {repeat}")
            moves = problem.answer if rng.random() < solved else "L"
            lines = maze_traces.trace_lines(maze, str(moves))
            if rng.random() >= reasoned:
                position = rng.randrange(1, len(lines))
                lines[position] = maze_traces.with_wrong_cell(lines[position], maze, rng)
            text = "\n".join([*lines, f"<answer>{moves}</answer>"])
            rows.append(
                {
                    "run": run, "step": step, "benchmark": benchmark, "problem_id": problem.problem_id,
                    "repeat": repeat, "seed": rng.randrange(2**31), "finish_reason": "stop", "completion": text,
                    "prompt": problem.question, "gold": problem.answer, "prompt_tokens": 40,
                    "completion_tokens": len(text), "protocol": "demo", "answer": moves,
                    "verdict": "correct" if moves == problem.answer else "wrong", "grader": "maze verifier",
                }
            )  # fmt: skip
    return rows


@made_once
def write_maze_run(
    results: Path, run: str, solved: float, reasoned: float, problems: int = 30, repeats: int = 4
) -> Path:
    """Write one run on mazes: its base model, which solves a fifth with right reasoning, and one checkpoint.

    See `maze_rows`; the problems, of all such runs, are stored with the results.
    """
    folder, data, name = results / "runs" / run, results / "data" / "benchmarks", "mazes"
    mazes = maze_problems.generate(problems, "test", 1)
    if not (data / f"{name}.parquet").is_file():
        tables.write(to_table(mazes), tables.PROBLEM, data / f"{name}.parquet")
    log = folder / "training_log.parquet"
    tables.write(pa.Table.from_pylist(training_log(run, solved, 20), tables.TRAINING_LOG), tables.TRAINING_LOG, log)
    for step, shares in ((0, (0.2, 1.0)), (20, (solved, reasoned))):
        path = folder / f"graded/step-{step}/{name}.parquet"
        rows = maze_rows(run, step, name, mazes, repeats, *shares)
        tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
        provenance.write(path, problems_sha256=problems_hash(data, name))
    write_scores(folder)
    return folder


def write_scores(folder: Path) -> None:
    """Score what is graded, as the line does."""
    path = folder / "scores.parquet"
    tables.write(score.score_run(folder / "graded"), tables.SCORE, path)
    provenance.write(path, protocol="demo")


def main() -> None:
    """Write two runs of four checkpoints on two benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    results = parser.parse_args().results
    for run, ceiling in RUNS.items():
        print(write_run(results, run, ceiling))


if __name__ == "__main__":
    main()

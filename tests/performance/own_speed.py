"""CrossZero's own speed: each of its parts and a bare way to the same end in turn, as ratios of their seconds.

python -m tests.performance.own_speed [--only WORD] [--repetitions 5] [--output FILE]      # about half an hour

Writes a row per ratio to results/reference/own_speed.csv, and ends with status 1 and a sentence for each that is worse
than before on such a machine, or was measured beside other work: that changes ratios by more than their intervals say
(grading took 0.60 beside other work and 0.30 without, from the same code), so these are compared with nothing. A ratio
whose data or environment is missing is left out by name.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
import pyarrow.parquet as pq

from analysis.benchmark import own_speed
from analysis.benchmark.own_speed import Row
from analysis.load_results import load_results
from analysis.statistics import mean_intervals
from contracts import paths, provenance, tables
from envs import build, pins
from eval import vllm_settings
from eval.statistics import Estimate
from grading import Item, grade
from grading.worker_pool import POOL
from system import json_lines
from system.errors import run_command
from tests.contract.tiny_model import copy_model
from tests.performance.test_report_speed import MEASURE, RUN, make

ROOT = Path(__file__).parents[2]
MIRROR = ROOT / "../shared/data"
GENERATIONS = MIRROR / "generations/qwen2.5-math-1.5b-instruct"
BENCHMARKS, PROBLEMS, COMPLETIONS, MAX_TOKENS, CONTEXT = ("gsm8k", "math500"), 200, 2, 512, 4096
EVERY = 4  # of the real answers, one is graded
OTHER_WORK = 0.1  # share of the cores' time from which on a row says that the machine had other work
BUSY = ", with other work"

BARE_VLLM = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from vllm import LLM, SamplingParams
model, samples, max_tokens, context, engine = sys.argv[1:]
tables = map(pq.read_table, sorted(Path(samples).glob("*.parquet")))
prompts = [prompt for table in tables for prompt in table["prompt"].to_pylist()]
llm = LLM(model, max_model_len=int(context), **json.loads(engine))
answers = llm.generate(prompts, SamplingParams(temperature=0.0, max_tokens=int(max_tokens)), use_tqdm=False)
(Path(samples) / "bare.json").write_text(json.dumps([answer.outputs[0].text for answer in answers]))
"""
BARE_REPORT = """
import sys
from pathlib import Path
import matplotlib.pyplot as plt, pandas as pd
for file in sorted(Path(sys.argv[1]).rglob("*.parquet")):
    pd.read_parquet(file)
"""


class Missing(Exception):
    """What a ratio needs is not on this machine."""


class Pair(NamedTuple):
    """Two ways to the same end."""

    crosszero: Callable[[], object]
    bare: Callable[[], object]


def run(*command: str | Path, **environment: str) -> None:
    """Run a program in the project's folder."""
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env={**os.environ, **environment})


def environment_build(folder: Path) -> Pair:
    """The documentation's environment: from its lock with hashes, beside `uv pip sync` of the same versions."""
    lock, uv = build.lock_file("docs", "cpu"), build.uv()
    versions = folder / "versions.lock"
    versions.write_text("".join(f"{name}=={version}\n" for name, version in pins.locked_versions(lock).items()))

    def crosszero() -> None:
        shutil.rmtree(folder / "env", ignore_errors=True)
        build.install("docs", "cpu", lock, folder / "env")

    def bare() -> None:
        shutil.rmtree(folder / "bare", ignore_errors=True)
        run(uv, "venv", "--quiet", "--python", sys.executable, folder / "bare")
        run(uv, "pip", "sync", "--quiet", "--python", folder / "bare/bin/python", versions)

    return Pair(crosszero, bare)


def graph(folder: Path) -> Pair:
    """The graph of all runs, beside `snakemake help`, which reads the same rules."""
    dry = (sys.executable, "-m", "snakemake", "--nolock", "--dry-run", "--quiet")
    return Pair(lambda: run(*dry, "--config", "reproduce=all", "--", "reproduce_all"), lambda: run(*dry, "--", "help"))


def evaluation(folder: Path) -> Pair:
    """Sampling two benchmarks with a tiny model, from the start of the process to the samples, beside LLM.generate."""
    python = build.python("eval")
    if not python.exists() or not MIRROR.is_dir():
        raise Missing("the eval environment or the data mirror at ../shared/data")
    copy_model(folder / "model", context=CONTEXT)
    for name in BENCHMARKS:
        file = folder / "data" / f"{name}.parquet"
        run(sys.executable, "-m", "tasks.load_problems", name, "--output", file, "--mirror", MIRROR)
        tables.write(tables.read(file, tables.PROBLEM).slice(0, PROBLEMS), tables.PROBLEM, file)
    samples = folder / "out" / "step-0"
    settings = {"PYTHONPATH": str(ROOT), **vllm_settings.environment("cpu")}
    command = (
        python, "-m", "eval.generate", "--run", "test/tiny/seed-0", "--checkpoint", f"0={folder / 'model'}",
        "--benchmark", *BENCHMARKS, "--protocol", "greedy-boxed",
        "--set", f"max_tokens={MAX_TOKENS}", "--set", f"repeats={COMPLETIONS}", "--data", folder / "data",
        "--work", folder / "work", "--output", folder / "out", "--device", "cpu", "--max-model-len", str(CONTEXT),
    )  # fmt: skip

    def crosszero() -> None:
        for output in (folder / "work", folder / "out"):
            shutil.rmtree(output, ignore_errors=True)
        run(*command, **settings)

    def bare() -> None:
        engine = json.dumps(vllm_settings.engine("cpu"))
        run(python, "-c", BARE_VLLM, folder / "model", samples, str(MAX_TOKENS), str(CONTEXT), engine, **settings)
        assert len(json.loads((samples / "bare.json").read_text())) == len(BENCHMARKS) * PROBLEMS * COMPLETIONS

    crosszero()  # the bare way takes its prompts
    return Pair(crosszero, bare)


def grading(folder: Path) -> Pair:
    """Real answers, with the start of the workers, beside math-verify in a loop."""
    if not GENERATIONS.is_dir():
        raise Missing("the data mirror at ../shared/data")
    rows = [row for path in sorted(GENERATIONS.glob("*.jsonl")) for row in json_lines.read(path)][::EVERY]
    items = [Item("math", row["gt"], row["code"][0]) for row in rows]

    def crosszero() -> None:
        POOL.close()
        grade(items)

    def bare() -> None:
        from math_verify import parse, verify

        for item in items:
            verify(parse(f"${item.gold}$"), parse(item.completion))

    return Pair(crosszero, bare)


def report(folder: Path) -> Pair:
    """The report of 100,000 samples, beside a process that imports pandas and matplotlib and reads the same files."""
    make(folder, 100_000)
    return Pair(
        lambda: run(sys.executable, "-c", MEASURE, folder, RUN, folder / "report"),
        lambda: run(sys.executable, "-c", BARE_REPORT, folder / "runs"),
    )


def loading(folder: Path) -> Pair:
    """The samples of a hundred checkpoints, checked, beside reading the same files."""
    make(folder, 200_000, steps=range(0, 1000, 10))
    files = paths.tables(folder / "runs" / RUN / "graded")
    return Pair(lambda: load_results(folder, RUN), lambda: [pq.read_table(file).to_pandas() for file in files])


RATIOS = {
    "environment build": environment_build,
    "graph of all runs": graph,
    "evaluation": evaluation,
    "grading": grading,
    "report": report,
    "loading samples": loading,
}


def seconds(function: Callable[[], object]) -> float:
    """Wall time of one call, whose output is not shown."""
    started = time.perf_counter()
    with redirect_stdout(io.StringIO()):
        function()
    return time.perf_counter() - started


def ratios(pair: Pair, repetitions: int) -> list[float]:
    """CrossZero's seconds to the bare ones of each repetition, after one that fills caches; who is first alternates."""
    seconds(pair.bare), seconds(pair.crosszero)
    taken: list[float] = []
    for number in range(repetitions):
        order = list(pair)[:: 1 if number % 2 else -1]
        by_function = {function: seconds(function) for function in order}
        taken.append(by_function[pair.crosszero] / by_function[pair.bare])
    return taken


@contextmanager
def other_work() -> Iterator[list[float]]:
    """The list gets the share of the cores' time that other processes took in the block."""

    def busy() -> tuple[float, float]:
        times = psutil.cpu_times()
        used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        all_work = sum(times) - times.idle - times.iowait - times.guest - times.guest_nice
        return all_work - sum(one.ru_utime + one.ru_stime for one in used), time.perf_counter()

    shares: list[float] = []
    work, started = busy()
    yield shares
    more_work, ended = busy()
    shares.append((more_work - work) / (ended - started) / (os.cpu_count() or 1))


def measured_commit(project: Path = ROOT) -> str:
    """The commit, and `+` where files have changed since besides the one that the measurement itself changes."""
    git = partial(subprocess.run, cwd=project, capture_output=True, text=True, check=False)
    commit = git(["git", "rev-parse", "--short=8", "HEAD"]).stdout.strip()
    others = [".", f":(exclude){own_speed.FILE.relative_to(ROOT)}"]
    return commit + ("+" if git(["git", "diff", "--quiet", "HEAD", "--", *others]).returncode else "")


def measured(names: list[str], repetitions: int) -> list[Row]:
    """A row for each ratio."""
    commit = measured_commit()
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder, other_work() as others:
            try:
                values = ratios(RATIOS[name](Path(folder)), repetitions)
            except Missing as missing:
                print(f"{name}: left out, needs {missing}", flush=True)
                continue
        machine = provenance.machine() + (BUSY if others[0] > OTHER_WORK else "")
        estimate = Estimate(*(math.exp(log) for log in mean_intervals.mean([math.log(value) for value in values])))
        rows.append(Row(commit, f"{datetime.now(UTC):%Y-%m-%d}", machine, name, repetitions, *estimate))
        print(f"{name}: {estimate.value:.3g} [{estimate.low:.3g}, {estimate.high:.3g}], {100 * others[0]:.0f} % of the "
              f"cores' time for other work", flush=True)  # fmt: skip
    POOL.close()
    return rows


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only ratios whose name contains this")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--output", type=Path, default=own_speed.FILE)
    arguments = parser.parse_args()
    if arguments.repetitions < 2:
        parser.error("--repetitions should be 2 or more: one ratio has no interval")
    if not (names := [name for name in RATIOS if arguments.only in name]):
        parser.error(f"--only {arguments.only}: should be in one of {', '.join(RATIOS)}")
    history = own_speed.read(arguments.output)
    if not (new := measured(names, arguments.repetitions)):
        sys.exit("nothing was measured")
    measured_again = {(row.commit, row.machine, row.ratio) for row in new}
    kept = [row for row in history if (row.commit, row.machine, row.ratio) not in measured_again]
    own_speed.write([*kept, *new], arguments.output)
    idle = [row for row in new if not row.machine.endswith(BUSY)]
    if first := own_speed.without_earlier(history, idle):
        print(f"measured for the first time on {idle[0].machine}, so compared with nothing: {', '.join(first)}")
    sentences = own_speed.worse(history, idle)
    if unchecked := [row.ratio for row in new if row not in idle]:
        sentences.append(f"not checked beside other work, measure again on an idle machine: {', '.join(unchecked)}")
    sys.exit("\n".join(sentences) or 0)


if __name__ == "__main__":
    run_command(main)

"""The sample browser with 10⁵ and 10⁶ completions in real Chromium: seconds to list, filter, find and open.

Run with `pytest tests/performance/test_sample_browser_speed.py --benchmark-only`. The larger takes about 1 GB of disk.
"""

import itertools
import json
import random
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from test_report_speed import RUN, make

from tests import needs
from tests.browser_pipe import READY, Browser

ROOT = Path(__file__).resolve().parents[2]
WRITE = """
import sys, time
from pathlib import Path
from analysis.measures import reasoning_patterns
from analysis.report import sample_browser
from analysis.load_results import load_results
runs, lists = [load_results(Path(sys.argv[1]), sys.argv[2])], reasoning_patterns.load_lists()
started = time.perf_counter()
sample_browser.write(runs, lists, "speed", Path(sys.argv[3]))
print(time.perf_counter() - started)
"""
TIMED = "(async () => {{ const from = performance.now(); {}; return (performance.now() - from) / 1000; }})()"


def browser_command(rng: random.Random) -> list[str]:
    """Words as long as English ones; used with Zipf's frequencies, they are compressed somewhat less than a model's."""
    return ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(3000)]


@pytest.mark.slow
@needs.chromium
@pytest.mark.parametrize("samples", [100_000, 1_000_000])
def test_sample_browser(benchmark, tmp_path: Path, samples: int) -> None:
    rng = random.Random(0)
    known = browser_command(rng)
    often = list(itertools.accumulate(1 / rank for rank in range(1, len(known) + 1)))

    def text(row: int) -> str:
        return f"{' '.join(rng.choices(known, cum_weights=often, k=60))} \\boxed{{{rng.randrange(10**9)}}}"

    make(tmp_path, samples, text)
    page = tmp_path / "samples"
    done = subprocess.run(
        [sys.executable, "-c", WRITE, tmp_path, RUN, page], cwd=ROOT, capture_output=True, text=True, check=True
    )
    with Browser(tmp_path / "profile") as browser:

        def once() -> dict[str, float]:
            browser.open(f"file://{page}/index.html")
            seconds = {"list": browser.evaluate(READY)}
            seconds["filter"] = browser.evaluate(TIMED.format('$("verdict").value = "wrong"; await filter()'))
            rare = '$("verdict").value = ""; $("text").value = "boxed{77777"; await filter()'
            seconds["search, few found"] = browser.evaluate(TIMED.format(rare))
            common = f'$("text").value = {json.dumps(known[0])}; await filter()'
            seconds["search, many found"] = browser.evaluate(TIMED.format(common))
            seconds["open"] = browser.evaluate(TIMED.format("await open(matches[0])"))
            return seconds

        seconds = benchmark.pedantic(once, rounds=1)
        assert browser.evaluate("rows") == samples and browser.evaluate("matches.length") > 0
    benchmark.extra_info |= {name: round(value, 2) for name, value in seconds.items()}
    benchmark.extra_info["writing it"] = round(float(done.stdout), 1)
    benchmark.extra_info["MB on disk"] = sum(file.stat().st_size for file in page.iterdir()) // 10**6
    benchmark.extra_info["GiB of the largest child"] = round(
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20, 2
    )

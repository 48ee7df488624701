"""Wall time of the harness beside a bare `LLM.generate` on the same prompts, from start of process to samples written.

Run with `pytest tests/performance/test_generation_overhead.py --benchmark-only`. Needs the data mirror and the eval
environment; takes about ten minutes on one core. Prompts are those of the six real benchmarks, the model is tiny.
"""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contracts import tables
from envs.build import python
from eval import vllm_settings
from tests.contract.tiny_model import copy_model

ROOT = Path(__file__).parents[2]
MIRROR = ROOT / "../shared/data"
PYTHON = python("eval")
BENCHMARKS = ("gsm8k", "math500", "minerva_math", "olympiadbench", "aime24", "amc23")
MOST = 450  # problems of each benchmark
MAX_TOKENS = 1024
REPEATS = 6  # of the same greedy completion, so that there is work for minutes
CONTEXT = 8192
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MIRROR.is_dir(), reason="needs the data mirror at ../shared/data"),
    pytest.mark.skipif(not PYTHON.exists(), reason="the eval environment is not built (envs/build.py eval)"),
]

BARE = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from vllm import LLM, SamplingParams
model, samples, output, most, context, engine = sys.argv[1:]
prompts = [p for f in sorted(Path(samples).glob("*.parquet")) for p in pq.read_table(f)["prompt"].to_pylist()]
llm = LLM(model, max_model_len=int(context), **json.loads(engine))
made = llm.generate(prompts, SamplingParams(temperature=0.0, max_tokens=int(most)), use_tqdm=False)
Path(output).write_text(json.dumps([[o.outputs[0].text, len(o.outputs[0].token_ids)] for o in made]))
"""


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), **vllm_settings.environment("cpu")}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overhead")
    copy_model(folder / "model", context=CONTEXT)
    for name in BENCHMARKS:
        output = folder / "data" / f"{name}.parquet"
        command = [sys.executable, "-m", "tasks.load_problems", name, "--output", output, "--mirror", MIRROR]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        tables.write(tables.read(output, tables.PROBLEM).slice(0, MOST), tables.PROBLEM, output)
    return folder


def test_harness(benchmark, project):
    command = [
        PYTHON, "-m", "eval.generate", "--run", "test/tiny/seed-0", "--checkpoint", f"0={project / 'model'}",
        "--benchmark", *BENCHMARKS, "--protocol", "greedy-boxed",
        "--set", f"max_tokens={MAX_TOKENS}", "--set", f"repeats={REPEATS}",
        "--data", project / "data", "--work", project / "work", "--output", project / "out", "--device", "cpu",
        "--max-model-len", str(CONTEXT),
    ]  # fmt: skip
    benchmark.pedantic(subprocess.run, (command,), {"check": True, "cwd": ROOT, "env": environment()}, rounds=1)
    rows = sum(pq.read_metadata(file).num_rows for file in (project / "out" / "step-0").glob("*.parquet"))
    benchmark.extra_info["samples"] = rows


def test_bare_llm_generate(benchmark, project):
    import json

    engine = json.dumps(vllm_settings.engine("cpu"))
    command = [
        PYTHON,
        "-c",
        BARE,
        project / "model",
        project / "out" / "step-0",
        project / "bare.json",
        str(MAX_TOKENS),
    ]
    command += [str(CONTEXT), engine]
    benchmark.pedantic(subprocess.run, (command,), {"check": True, "cwd": ROOT, "env": environment()}, rounds=1)
    bare = json.loads((project / "bare.json").read_text())
    files = sorted((project / "out" / "step-0").glob("*.parquet"))
    ours = [row for file in files for row in pq.read_table(file, columns=["completion"])["completion"].to_pylist()]
    benchmark.extra_info["samples"] = len(bare)
    benchmark.extra_info["same completions"] = sum(a == b[0] for a, b in zip(ours, bare, strict=True))

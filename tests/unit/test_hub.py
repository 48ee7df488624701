"""Loading from the hub with the real client: pinned, not pinned, cached, and without a network."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.dataset_sources import why_unreachable
from tests.unit.small_hub import COMMIT, serve
from tests.user_errors import printed_code
from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parents[2]
ROWS = [{"problem": "1 + 1?", "answer": "2"}, {"problem": "2 + 2?", "answer": "4"}]
CONTENT = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
NOTHING_THERE = "http://127.0.0.1:9"
LOAD = """
import sys, json
from pathlib import Path
from system.errors import run_command
from tasks import dataset_specs, load_problems
def main():
    problems, facts = load_problems.load(dataset_specs.find("mine", benchmarks=Path(sys.argv[1])), None)
    print(load_problems.report(facts, None))
    print(json.dumps(facts))
run_command(main)
"""


def run(folder: Path, endpoint: str, hub: dict[str, Any], **more: Any) -> subprocess.CompletedProcess[str]:
    """Load a benchmark of two rows in a fresh process, as `datasets` reads its settings once; retries take minutes."""
    hub = {"path": "somebody/sums", "split": "test", **hub}
    source = {"task": "math", "rows": 2, "columns": {"question": "problem", "answer": "answer"}, "hub": hub, **more}
    (folder / "mine.yaml").write_text(yaml.safe_dump({"metadata": {"source": source}}))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and not k.lower().endswith("_proxy")}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(folder / "cache")}
    command = [sys.executable, "-c", LOAD, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=LIMIT)


@pytest.mark.slow
def test_the_pinned_commit_is_loaded_and_again_from_the_cache_without_network(tmp_path: Path) -> None:
    with serve("somebody/sums", {"test.jsonl": CONTENT}) as (endpoint, requests):
        result = run(tmp_path, endpoint, {"revision": COMMIT})
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout.splitlines()[-1])
    assert facts["source"]["revision"] == COMMIT and facts["problems"] == 2
    assert any(f"resolve/{COMMIT}/test.jsonl" in request for request in requests)
    again = run(tmp_path, endpoint, {"revision": COMMIT})  # the server is gone
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout.splitlines()[-1])["content_sha256"] == facts["content_sha256"]


@pytest.mark.slow
def test_an_unpinned_set_is_loaded_at_the_head_and_its_commit_told(tmp_path: Path) -> None:
    with serve("somebody/sums", {"test.jsonl": CONTENT}) as (endpoint, _):
        result = run(tmp_path, endpoint, {"revision": None})
    assert result.returncode == 0, result.stderr
    assert f"not pinned: add `revision: {COMMIT}` to the `hub` block of mine" in result.stdout
    assert json.loads(result.stdout.splitlines()[-1])["source"]["revision"] == COMMIT


@pytest.mark.slow
def test_other_content_than_registered(tmp_path: Path) -> None:
    with serve("somebody/sums", {"test.jsonl": CONTENT}) as (endpoint, _):
        strict = run(tmp_path, endpoint, {"revision": COMMIT, "content_sha256": "0" * 64})
        told = run(tmp_path, endpoint, {"revision": COMMIT}, content_sha256="0" * 64)
        short = run(tmp_path, endpoint, {"revision": COMMIT}, rows=3)
    assert strict.returncode == 1 and "should have content with hash 0000" in strict.stderr
    assert told.returncode == 0 and "differ from those of the registered files" in told.stdout
    assert short.returncode == 1
    assert f"mine should have 3 rows ({tmp_path}/mine.yaml), but somebody/sums (test) at {COMMIT} has 2" in short.stderr


@pytest.mark.slow
def test_a_set_that_the_hub_does_not_have(tmp_path: Path) -> None:
    with serve("somebody/else", {"test.jsonl": CONTENT}) as (endpoint, _):
        result = run(tmp_path, endpoint, {"revision": COMMIT})
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert "Error: cannot load mine from the hub (somebody/sums" in result.stderr


@pytest.mark.slow
def test_a_gated_set_says_where_to_ask_for_access(tmp_path: Path) -> None:
    with serve("somebody/sums", {"test.jsonl": CONTENT}, gated=True) as (endpoint, _):
        result = run(tmp_path, endpoint, {"revision": COMMIT, "gated": True}, files=[{"path": "sums.jsonl"}])
    assert result.returncode == 1 and result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("Error: cannot load mine from the hub (somebody/sums")
    assert f"ask for it at {endpoint}/datasets/somebody/sums and set HF_TOKEN, or set `data_mirror`" in result.stderr
    assert "holds sums.jsonl" in result.stderr and "check the network" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("revision", [COMMIT, None])
def test_no_network_ends_in_seconds_with_one_sentence(tmp_path: Path, revision: str | None) -> None:
    result = run(tmp_path, NOTHING_THERE, {"revision": revision})
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert result.stderr.startswith("Error: cannot load mine from the hub (somebody/sums at http://127.0.0.1:9: ")
    assert "no copy is in the cache" in result.stderr and "--data-mirror" in result.stderr


@pytest.mark.slow
def test_a_hub_that_accepts_and_never_answers_ends_in_seconds(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        result = run(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}", {"revision": COMMIT})
    assert result.returncode == 1 and printed_code(result.stderr) == "download-failed"


@pytest.mark.slow
def test_reachability_of_an_address() -> None:
    with serve("somebody/sums", {"test.jsonl": CONTENT}) as (endpoint, _):
        assert why_unreachable(endpoint) is None  # answers 404, and that is an answer
    assert "refused" in (why_unreachable(NOTHING_THERE) or "")
    assert why_unreachable("no address at all") is not None
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert why_unreachable(f"http://127.0.0.1:{silent.getsockname()[1]}", within=0.3) is not None

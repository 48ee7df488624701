"""Generating processes: smaller batches when memory runs out, a bounded number of times; the progress line."""

import json

import pytest

from eval import vllm_supervisor
from eval.vllm_worker import OUT_OF_MEMORY
from tests.user_errors import refused


def plans(jobs=1, **engine):
    return lambda: {"jobs": [{}] * jobs, "engine": dict(engine), "processes": 1, "device": "cpu"}


@pytest.mark.parametrize("status", [OUT_OF_MEMORY, -9])
def test_smaller_batches_and_bounded_retries(tmp_path, monkeypatch, capsys, status):
    tried = []
    monkeypatch.setattr(
        vllm_supervisor, "_watch", lambda plan, *more: tried.append(plan["engine"].get("max_num_seqs")) or [status]
    )
    with refused("out-of-memory", batch=16):
        vllm_supervisor.run(plans(), tmp_path, vllm_supervisor.ProgressLine(1, []), 60)
    assert tried == [None, 128, 64, 32]
    assert "ran out of memory or was killed; trying again with 128" in capsys.readouterr().err
    for set_size, sizes, last in ((20, [20, 10, 5, 2], 1), (4, [4, 2, 1, 1], 1)):
        tried.clear()
        with refused("out-of-memory", batch=last):
            vllm_supervisor.run(plans(max_num_seqs=set_size), tmp_path, vllm_supervisor.ProgressLine(1, []), 60)
        assert tried == sizes


def test_an_error_is_not_tried_again(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(vllm_supervisor, "_watch", lambda plan, *more: tried.append(plan) or [1])
    with refused("generation-failed", status=1):
        vllm_supervisor.run(plans(), tmp_path, vllm_supervisor.ProgressLine(1, []), 60)
    assert len(tried) == 1


def test_the_second_try_may_do(tmp_path, monkeypatch):
    statuses = iter([[0, OUT_OF_MEMORY], [0, 0]])
    monkeypatch.setattr(vllm_supervisor, "_watch", lambda *more: next(statuses))
    vllm_supervisor.run(plans(), tmp_path, vllm_supervisor.ProgressLine(1, []), 60)
    assert next(statuses, None) is None


def test_the_progress_line(tmp_path, monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(vllm_supervisor.time, "monotonic", lambda: now[0])
    folder = tmp_path / "samples"
    folder.mkdir()
    line = vllm_supervisor.ProgressLine(1000, [folder])
    for done, seconds in ((0, 11.0), (200, 20.0)):
        (folder / "1.jsonl").write_text((json.dumps({}) + "\n") * done)
        now[0] += seconds
        line.show()
    assert capsys.readouterr().err.splitlines() == [
        "generate: 0/1000 samples",
        "generate: 200/1000 samples, 10.0 samples/s, 1:20 left",
    ]

"""Ask nemo-evaluator and evalsig for their verdicts; run by studies.other_gates.study in a Python that has both.

Reads from standard input a JSON list of comparisons, each a list of [baseline, checkpoint] per benchmark, each a list
of problems with the rewards (0 or 1) of their repeats. Writes the versions, and per tool whether each benchmark of each
comparison got a verdict that the two sides differ.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import evalsig
from nemo_evaluator.config.gate_policy import default_policy
from nemo_evaluator.engine.comparison import compare_results
from nemo_evaluator.engine.gate import gate_runs

Side = list[list[int]]
MAX_DROP = 0.05  # the default of `nel compare --max-drop`
MIN_DELTA = 0.005  # evalsig's gate has no default; this is its README's


def _nel_compare(baseline: Side, checkpoint: Side) -> bool:
    sides = [
        {(i, j): {"reward": float(r)} for i, row in enumerate(side) for j, r in enumerate(row)}
        for side in (baseline, checkpoint)
    ]
    return bool(compare_results(*sides, min_effect=MAX_DROP)["verdict"] in ("BLOCK", "WARN"))


def _nel_gate(parts: list[list[Side]]) -> list[bool]:
    with tempfile.TemporaryDirectory() as folder:
        for i, sides in enumerate(parts):
            for name, side in zip(("baseline", "checkpoint"), sides, strict=True):
                side_folder = Path(folder, name, str(i))
                side_folder.mkdir(parents=True)
                (side_folder / "eval-0.json").write_text(json.dumps({"benchmark": {"name": str(i), "scores": {}}}))
                lines = [
                    json.dumps({"problem_idx": p, "repeat": j, "reward": float(reward)})
                    for p, row in enumerate(side)
                    for j, reward in enumerate(row)
                ]
                (side_folder / "results.jsonl").write_text("\n".join(lines))
        report = gate_runs(Path(folder, "baseline"), Path(folder, "checkpoint"), default_policy())
    return [benchmark.status == "BREACH" for benchmark in report.benchmarks]


def _run(side: Side, name: str) -> evalsig.RunFrame:
    items = [
        evalsig.ItemResult(item_id=str(i), score=float(reward), epoch=j)
        for i, row in enumerate(side)
        for j, reward in enumerate(row)
    ]
    return evalsig.RunFrame(run_id=name, model_id=name, task_id="task", metric_name="accuracy", items=items)


def verdicts(parts: list[list[Side]]) -> dict[str, list[bool]]:
    """Per tool, whether each benchmark of one comparison got a verdict that the sides differ."""
    frames = [(_run(first, "baseline"), _run(second, "checkpoint")) for first, second in parts]
    compared = [evalsig.compare(*pair) for pair in frames]
    gated = [evalsig.gate(*pair, min_delta=MIN_DELTA) for pair in frames]
    return {
        "nel compare": [_nel_compare(*sides) for sides in parts],
        "nel gate": _nel_gate(parts),
        "evalsig compare": [bool(result.significant) for result in compared],
        "evalsig compare, holm": [bool(one) for one in evalsig.holm([result.p_value for result in compared]).reject],
        "evalsig gate": [report.verdict is evalsig.GateVerdict.ALLOW for report in gated],
    }


if __name__ == "__main__":
    printed = [verdicts(parts) for parts in json.load(sys.stdin)]
    versions = {name: version(name) for name in ("nemo-evaluator", "evalsig")}
    json.dump({"versions": versions, "verdicts": printed}, sys.stdout)

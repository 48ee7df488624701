"""The steps of an upgrade: each does one thing with the copy of the project, for one environment.

A UserError means that the step failed; the others are done all the same.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis.load_results import load_results
from analysis.results import RunResults
from analysis.upgrade import changes
from analysis.upgrade.candidate import SNAKEMAKE, Candidate
from contracts import seeds
from contracts.paths import MODELS, ResultsFolder
from envs.build import SBOM
from envs.pins import canonical, locked_versions
from eval import benchmark
from grading.verdicts import DEFAULT
from recipes.runs import load_run, run_names
from system import durable, json_lines
from system.errors import ROOT, UserError
from system.yaml_files import read_yaml
from tasks import registry

CASES = "2000"  # through each framework's functions
LABELLED = ROOT / "tests" / "unit" / "answer_pairs.jsonl"  # written by hand
BENCHMARK = "math500"  # whose task these are of
SCALE = "demo"


class Finding(NamedTuple):
    """What came out of a step: for the table of steps, and for the page."""

    sentence: str
    data: dict[str, Any]


def make_lock(candidate: Candidate, environment: str) -> Finding:
    """Resolve the requirements with the new version; the committed locks stay."""
    candidate.run([sys.executable, "envs/lock.py", environment], f"lock-{environment}")
    packages = {}
    for lock in sorted((candidate.project / "envs" / environment).glob("*.lock")):
        durable.write_text(candidate.locks(environment) / lock.name, lock.read_text(encoding="utf-8"))
        before = locked_versions(ROOT / "envs" / environment / lock.name)
        packages[lock.stem] = changes.changed_versions(before, locked_versions(lock))
    counts = ", ".join(f"{len(rows)} for {device}" for device, rows in packages.items())
    return Finding(f"packages with another version: {counts}", {"packages": packages})


def build_environment(candidate: Candidate, environment: str) -> Finding:
    """Install the new lock beside the old environment."""
    candidate.run([sys.executable, "envs/build.py", environment], f"environment-{environment}")
    folder = candidate.python(environment, candidate.project).parent.parent
    if candidate.wheel:
        check_wheel(candidate.package, candidate.wheel, folder)
    return Finding(f".envs/{folder.name}", {})


def check_wheel(package: str, wheel: Path, environment: Path) -> None:
    """Raise UserError if an environment holds another file of the wheel's version: folders are named after versions.

    Args:
        package: its name.
        wheel: the file that should be installed.
        environment: folder with the list of what was.
    """
    installed = json.loads((environment / SBOM).read_text(encoding="utf-8"))["components"]
    hashes = {
        item["value"]
        for one in installed
        if canonical(one["name"].partition("[")[0]) == canonical(package)
        for item in one["properties"]
    }
    if hashlib.sha256(wheel.read_bytes()).hexdigest() not in hashes:
        raise UserError(
            f"{environment} was built from another file of this version: delete it, or give the wheel another version",
            code="other-wheel",
            environment=environment.name,
        )


def compare_defaults(candidate: Candidate, framework: str) -> Finding:
    """What the release's own parser has of defaults, against what run files and tables were written for."""
    file = candidate.output(f"defaults-{framework}.json")
    arguments = [framework, "--output", str(file)]
    candidate.run_module(framework, "translate.installed_release", arguments, f"defaults-{framework}")
    released = json.loads(file.read_text(encoding="utf-8"))
    counts = {name: len(released["settings"][name]) for name in ("changed", "new", "gone")}
    sentence = (
        f"defaults: {counts['changed']} differ, {counts['new']} are new, {counts['gone']} are gone; "
        f"{len(released['drifts'])} of those that runs rely on; {len(released['unknown'])} unknown of the objective"
    )
    return Finding(sentence, released)


def parse_runs(candidate: Candidate, framework: str) -> Finding:
    """Every run's command through the new release's own parser."""
    file = candidate.output(f"parsed-{framework}.txt")
    arguments = ["check", "--framework", framework, "--output", str(file)]
    candidate.run_module(framework, "frameworks", arguments, f"run-files-{framework}")
    return Finding(f"runs: {file.read_text(encoding='utf-8').strip()}", {})


def compare_formulas(candidate: Candidate, framework: str) -> Finding:
    """The same tensors through the functions of both releases."""
    folders, remarks = {}, {"before": "", "after": ""}
    for side, project in (("before", ROOT), ("after", candidate.project)):
        folder = folders[side] = candidate.output(f"conformance-{side}-{framework}")
        shutil.rmtree(folder, ignore_errors=True)
        arguments = ["--framework", framework, "--cases", CASES, "--output", str(folder)]
        try:
            candidate.run_module("base", "conformance", arguments, f"conformance-{side}-{framework}", project)
        except UserError as error:  # that it is not as the registry says is a finding
            if not (folder / "matrix.csv").is_file():
                raise
            remarks[side] = str(error)
    rows = changes.changed_formulas(folders["before"] / "matrix.csv", folders["after"] / "matrix.csv")
    compared = len(pd.read_csv(folders["after"] / "matrix.csv"))
    remark = f"; {remarks['after']}" if remarks["after"] != remarks["before"] else ""
    return Finding(f"{len(rows)} of {compared} formulas are computed differently{remark}", {"formulas": rows})


def compare_verdicts(candidate: Candidate, environment: str) -> Finding:
    """The judge of mathematics with both versions, on labelled pairs and on the answers of stored samples."""
    labelled = [{"task": benchmark.task_of(BENCHMARK), **pair} for pair in json_lines.read(LABELLED)]
    pairs = [*labelled, *stored_pairs(ROOT / configuration()["results"])]
    file = candidate.output("pairs.jsonl")
    durable.write_text(file, "".join(json.dumps(pair) + "\n" for pair in pairs))
    verdicts = []
    for side, project in (("before", ROOT), ("after", candidate.project)):
        output = candidate.output(f"verdicts-{side}.json")
        arguments = ["--pairs", str(file), "--output", str(output)]
        candidate.run_module(environment, "grading.judge_pairs", arguments, f"verdicts-{side}", project)
        verdicts.append(json.loads(output.read_text(encoding="utf-8")))
    rows = changes.changed_verdicts(pairs, *verdicts)
    sentence = (
        f"{len(rows)} of {len(pairs):,} verdicts differ ({len(labelled):,} pairs are labelled, the others stored)"
    )
    return Finding(sentence, {"verdicts": rows, "pairs": len(pairs)})


def stored_pairs(results: Path) -> list[dict[str, Any]]:
    """Task, gold answer and answer of all stored samples whose task the default grader judges, each pair once."""
    tasks = {name: benchmark.task_of(name) for name in benchmark.names()}
    pairs: dict[tuple[str, str, str], None] = {}
    for file in sorted(results.glob("*/runs/**/graded/step-*/*.parquet")):
        task = tasks.get(file.stem)
        if task and DEFAULT in registry.get(task).graders:
            rows = pd.read_parquet(file, columns=["gold", "answer"]).dropna()
            pairs |= dict.fromkeys((task, gold, answer) for gold, answer in rows.itertuples(index=False))
    return [{"task": task, "gold": gold, "answer": answer} for task, gold, answer in pairs]


def evaluate(candidate: Candidate, environment: str) -> Finding:
    """The last checkpoint of one demo run, sampled, graded and scored with the new version."""
    before = results_before(candidate, demo_run())
    checkpoint = before_folder().run(before.name).checkpoint(before.last)
    log = f"evaluation-{environment}"
    workflow(candidate, ["evaluate"], {"checkpoint": str(checkpoint), "benchmarks": before.benchmarks}, log)
    runs = candidate.project / "results" / SCALE / "runs"
    scored = sorted((runs / MODELS).glob("*/scores.parquet"), key=lambda file: file.stat().st_mtime)
    after = load_results(runs.parent, str(scored[-1].parent.relative_to(runs)))
    rows = changes.evaluations(before, after)
    sentence = "; ".join(f"{row['benchmark']}: {row['same']} completions are the same" for row in rows)
    return Finding(sentence, {"evaluations": rows, "of": f"{before.name}/step-{before.last}"})


def train_demo(candidate: Candidate, framework: str) -> Finding:
    """One run of the framework at demo scale, from the same base model, with the new version."""
    name = demo_run(framework)
    before = results_before(candidate, name)
    model = load_run(name, SCALE).model
    copied = ResultsFolder(candidate.project / "results" / SCALE).model(model)
    if not copied.exists():
        shutil.copytree(before_folder().model(model), copied)
    workflow(
        candidate, run_targets(ResultsFolder(Path("results", SCALE)), name), {"reproduce": [name]}, f"demo-{framework}"
    )
    rows = changes.gains(before, load_results(candidate.project / "results" / SCALE, before.name))
    return Finding(f"{name} was trained and evaluated", {"gains": rows, "run": name})


def configuration() -> dict[str, Any]:
    """The project's configuration."""
    return dict[str, Any](read_yaml(ROOT / "config" / "config.yaml"))


def before_folder() -> ResultsFolder:
    """The project's own results at the scale of these steps."""
    return ResultsFolder(ROOT / configuration()["results"] / SCALE)


def demo_run(framework: str = "") -> str:
    """The first run that the configuration reproduces, of a framework if one is named."""
    chosen = configuration()["reproduce"]
    chosen = chosen.get(SCALE) if isinstance(chosen, dict) else chosen
    listed = [name for name in chosen if name in run_names(SCALE)] if isinstance(chosen, list) else []
    named = [*listed, *run_names(SCALE)]
    return next(run.name for name in named if (run := load_run(name, SCALE)).framework == framework or not framework)


def results_before(candidate: Candidate, name: str) -> RunResults:
    """The project's own results of a run, which are made if they are missing."""
    run_id = seeds.run_id(name, 0)
    folder = before_folder()
    if not folder.run(run_id).scores.is_file():
        results = ResultsFolder(Path(configuration()["results"], SCALE))
        workflow(candidate, run_targets(results, name), {"reproduce": [name]}, f"before-{name.replace('/', '-')}", ROOT)
    return load_results(folder.path, run_id)


def run_targets(results: ResultsFolder, name: str) -> list[str]:
    """What load_results reads of a run, as the workflow names it."""
    folder = results.run(seeds.run_id(name, 0))
    return [str(folder.scores), str(folder.training_log)]


def workflow(
    candidate: Candidate, targets: Sequence[str], settings: dict[str, Any], log: str, project: Path | None = None
) -> None:
    """Make targets of the workflow, in the copy, whose results and work are its own, or in another project."""
    own = {"results": "results", "work": "work"} if project is None else {}
    pairs = [f"{key}={json.dumps(value)}" for key, value in {"scale": SCALE, **own, **settings}.items()]
    arguments = [*targets, "--quiet", "rules", "host", "--config", *pairs]
    candidate.run_module("base", SNAKEMAKE, arguments, log, project)

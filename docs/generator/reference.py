"""The pages of docs/reference, from schemas, registries, docstrings and the table of commands.

    python -m docs.generator.reference work/docs/reference

`make docs` runs it before the site is built; no page of it is kept, so none can be stale.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from analysis.compare_checkpoints import exit_status
from analysis.report.sections import published_tables as published_tables_section
from analysis.statistics import published_tables
from cli.main import click_command
from cli.runs import run_row
from cli.table import GROUPS, Command, Module
from conformance.document import registry_tables
from contracts import tables
from contracts.run_file import ROOT, SCALES
from contracts.schema_keys import Key, run_keys, schema_keys
from eval import protocols
from recipes.runs import load_run, run_names
from system.yaml_files import read_yaml
from tasks import dataset_specs

TABLES = {
    "Problem": (tables.PROBLEM, "data/{train,benchmarks}/<set>.parquet"),
    "Training log": (tables.TRAINING_LOG, "runs/<run>/training_log.parquet"),
    "Rollout": (tables.ROLLOUT, "runs/<run>/stage-<n>/rollouts.parquet"),
    "Sample": (tables.SAMPLE, "runs/<run>/samples/step-<n>/<benchmark>.parquet"),
    "Graded sample": (tables.GRADED, "runs/<run>/graded/step-<n>/<benchmark>.parquet"),
    "Score": (tables.SCORE, "runs/<run>/scores.parquet"),
}
STATISTICS = ("accuracy", "pass_and_majority", "significance", "smallest_difference")
COMPARING = "compare, compare-checkpoints, compare-recipes"
EXIT_STATUSES = (
    *((COMPARING, status, meaning) for status, meaning in re.findall(r"^(\d) +(.+)$", exit_status.__doc__ or "", re.M)),
    ("doctor", 1, "not even the demo runs on this machine"),
    (
        "translate",
        0,
        "there is a translation, even one with settings that are unknown or cannot be expressed: its head says so",
    ),
    ("translate", 1, "there is none, or --check has the target's parser refuse it"),
    ("upgrade", 1, "a step failed, or could not be done; its page says which"),
    ("every other command", 0, "done"),
    ("every other command", 1, "an error, said in one sentence; of targets of the workflow: a job failed"),
    ("every other command", 2, "a wrong command; its usage is printed"),
    ("every command", 130, "Ctrl-C; the same command resumes"),
    ("a job of the workflow", 75, "stopped in time with its work saved; it is submitted again"),
)


def cell(value: object) -> str:
    """A text as a cell of a Markdown table."""
    text = " ".join(str(value).split())
    return text.replace("|", "\\|").replace("<", "&lt;").replace("{", "&#123;").replace("[", "&#91;") or "–"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table; a cell that begins with a backtick or a bracket is taken as it is."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        cells = [str(one) if str(one).startswith(("`", "[", "<a")) else cell(one) for one in row]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def key_rows(keys: Iterable[Key]) -> Iterator[tuple[str, ...]]:
    """Rows of keys, each with an anchor that other pages link."""
    for key in keys:
        yield f'<a id="{key.name}"></a>`{key.name}`', key.values, key.meaning


def run_file() -> list[str]:
    """Keys of run files, by group."""
    lines = [
        "# Keys of a run file", "",
        "A run file is `recipes/<recipe>/<run>.yaml`. Unknown keys are errors. Keys of a scale stand under `full`,",
        "`small` and `demo`, those of a stage also in an entry of `stages`. For one run, `crosszero reproduce RUN",
        "--set KEY=VALUE` sets a key of the scale.", "",
    ]  # fmt: skip
    keys = list(run_keys())
    start = next(number for number, key in enumerate(keys) if key.name == "full")
    scales = [key for key in keys if key.name in SCALES]
    own, of_scale = [*keys[:start], *scales], [key for key in keys[start:] if key not in scales]
    lines += ["## The run", "", *table(("key", "values", "meaning"), key_rows(own))]
    lines += ["## A scale", "", *table(("key", "values", "meaning"), key_rows(of_scale))]
    return lines


def configuration() -> list[str]:
    """Keys of config/config.yaml, with the file's own values."""
    values = read_yaml(ROOT / "config" / "config.yaml")
    rows = [
        (name, kinds, f"`{values[key.name]}`" if values.get(key.name) is not None else "–", meaning)
        for key in schema_keys("config")
        for name, kinds, meaning in key_rows([key])
    ]
    return [
        "# Keys of the configuration", "",
        "Each can be set for one command with `--config KEY=VALUE`. ",
        "`cluster.…` stands in profiles/slurm/cluster.yaml.", "",
        *table(("key", "values", "in the file", "meaning"), rows),
    ]  # fmt: skip


def protocol_page() -> list[str]:
    """Fields of protocols, and every protocol."""
    fields = [(f"`{key.name}`", key.values, key.title) for key in schema_keys("protocol")]
    lines = [
        "# Protocols", "",
        "How a benchmark is asked and decoded. Scores of different protocols are not comparable.", "",
        "## Fields", "", *table(("field", "values", "meaning"), fields),
        "## Protocols", "",
    ]  # fmt: skip
    for name in protocols.names():
        protocol = protocols.load(name)
        values = protocol.decoding() | {"repeats": protocol.repeats, "extraction": protocol.extraction}
        lines += [f"### {name}", "", f"{protocol.source}.", ""]
        lines += table(("field", "value"), ((f"`{field}`", value) for field, value in values.items() if value != {}))
    return lines


def first_comment(file: Path) -> str:
    """The comment at the head of a YAML file."""
    lines = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


def benchmarks() -> list[str]:
    """Every benchmark, with its source."""
    rows = []
    for name in sorted(set(dataset_specs.entries()) - set(dataset_specs.training_sets())):
        spec = dataset_specs.find(name).spec
        source = "generated" if "generate" in spec else spec.get("hub", {}).get("path") or spec["files"][0]["path"]
        rows.append((f"`{name}`", spec["task"], spec.get("problems", spec["rows"]), source,
                     first_comment(dataset_specs.BENCHMARKS / f"{name}.yaml")))  # fmt: skip
    return [
        "# Benchmarks", "",
        "One file each in eval/benchmarks. `crosszero problems NAME --output FILE` loads one and checks its hash.", "",
        *table(("name", "task", "problems", "source", "note"), rows),
    ]  # fmt: skip


def recipes() -> list[str]:
    """Every run at full scale: what it trains, on what, for how long, and the published table."""
    lines = [
        "# Recipes and runs", "",
        "Each run is one file with the published values, the source of each, and the demo's values. GPUs and hours are",
        "those of the whole training at full scale; hours are stated where they were published or follow from that.",
        "The published tables are in results/reference/report_tables.csv.", "",
    ]  # fmt: skip
    folders: dict[str, list[Sequence[object]]] = {}
    for name in run_names():
        run = load_run(name, "full")
        folder, _, short = name.partition("/")
        stages = f", {len(run.stages)} stages" if len(run.stages) > 1 else ""
        sets = ", ".join(dict.fromkeys(stage.dataset for stage in run.stages))
        _, framework, model, gpus, hours = run_row(run)
        link = f"[{short}](../../recipes/{name}.yaml)"
        row = (link, run.title, f"{framework}{stages}", model, sets, gpus, hours, run.reference or "–")
        folders.setdefault(folder, []).append(row)
    heads = ("run", "title", "framework", "base model", "training set", "GPUs", "hours", "published table")
    for folder, rows in folders.items():
        lines += [f"## {folder}", "", *table(heads, rows)]
    return lines


def docstring(module: str) -> str:
    """The docstring of a module that is not imported."""
    path = ROOT / module.replace(".", "/")
    file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def help_text(command: Command) -> str:
    """What `crosszero <command> --help` prints; of a program in another environment its docstring."""
    if isinstance(command.starts, Module):
        return docstring(command.starts.module)
    context = click.Context(click_command(command), info_name=f"crosszero {command.name}", max_content_width=110)
    return click_command(command).get_help(context)


def commands() -> list[str]:
    """Every command by group, with its help text."""
    lines = ["# Commands", "", "`crosszero <command> --help` prints the same.", ""]
    for title, group in GROUPS.items():
        lines += [f"## {title}", ""]
        for command in group:
            example = f"crosszero {command.name} {command.example}".strip()
            lines += [f"### {command.name}", "", command.summary, "", "```text", example, "```", ""]
            lines += ['??? note "help"', "", "    ```text"]
            lines += [f"    {line}".rstrip() for line in help_text(command).split("\n")] + ["    ```", ""]
    return lines


def metrics() -> list[str]:
    """What is computed on verdicts: the docstrings of eval/statistics."""
    lines = ["# Metrics", "", "Computed on the verdicts of graded samples. Columns of tables: [Tables](tables.md).", ""]
    for name in STATISTICS:
        tree = ast.parse((ROOT / "eval" / "statistics" / f"{name}.py").read_text(encoding="utf-8"))
        lines += [f"## eval/statistics/{name}.py", "", *(ast.get_docstring(tree) or "").split("\n"), ""]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                text = (ast.get_docstring(node) or "").split("\n")
                lines += [f"### {node.name}", "", "```text", *text, "```", ""]
    return lines


def table_page() -> list[str]:
    """Columns of every table that passes between stages."""
    meanings: dict[str, str] = read_yaml(ROOT / "contracts" / "columns.yaml")
    lines = ["# Tables", "", "Parquet files below `results/<scale>/`. Null means: not known.", ""]
    for title, (schema, path) in TABLES.items():
        rows = ((f"`{field.name}`", short_type(field.type), meanings[field.name]) for field in schema)
        lines += [f"## {title}", "", f"`{path}`", "", *table(("column", "type", "meaning"), rows)]
    return lines


def short_type(kind: pa.DataType) -> str:
    """An Arrow type in a word."""
    return "list" if pa.types.is_list(kind) else str(kind)


def exit_statuses() -> list[str]:
    """What a script can tell from the exit status."""
    return ["# Exit statuses", "", *table(("command", "status", "meaning"), EXIT_STATUSES)]


def mapping_page(title: str, introduction: str, sections: dict[str, dict[str, str]]) -> list[str]:
    """A page of names and meanings."""
    lines = [f"# {title}", "", introduction, ""]
    for heading, entries in sections.items():
        rows = ((f"`{name}`", meaning) for name, meaning in entries.items())
        lines += [*([f"## {heading}", ""] if heading else []), *table(("name", "meaning"), rows)]
    return lines


def provenance_fields() -> list[str]:
    """Fields of the record beside an artefact."""
    introduction = "Beside every artefact stands `<artefact>.provenance.json`. `crosszero why A B` compares two."
    return mapping_page(
        "Provenance fields", introduction, {"": read_yaml(ROOT / "contracts" / "provenance_fields.yaml")}
    )


def environment_variables() -> list[str]:
    """Environment variables that are read."""
    entries: dict[str, Any] = read_yaml(ROOT / "system" / "environment_variables.yaml")
    sections = {"Set by you": entries["you"], "Set by the program for its own processes": entries["itself"]}
    return mapping_page("Environment variables", "None has to be set.", sections)


def conformance() -> list[str]:
    """What each installed release computes otherwise, and what it cannot express."""
    return [
        "# Conformance", "",
        "`crosszero conformance` puts the same tensors through each release's own functions. This is the registry of",
        "what differs by more than 1e-6 from a float64 reference (conformance/differences.yaml). polgrad is no",
        "framework: it has losses and advantages without a trainer, written by others, and is a second reference.", "",
        registry_tables(),
    ]  # fmt: skip


def promises() -> list[str]:
    """What users may rely on, each promise with its test (tests/promises.yaml)."""
    lines = ["# Promises", "", "A test holds each promise. What was tried: [Faults](../explanation/promises.md).", ""]
    for heading, entries in read_yaml(ROOT / "tests" / "promises.yaml").items():
        rows = ((entry["promise"], entry["limits"], f"`{entry['test']}`") for entry in entries)
        lines += [f"## {heading}", "", *table(("promise", "limits", "test"), rows)]
    return lines


def gpu_differences() -> list[str]:
    """What differs between the demo on a CPU and a run on GPUs (frameworks/gpu_differences.yaml)."""
    entries = read_yaml(ROOT / "frameworks" / "gpu_differences.yaml")["differences"]
    rows = ((entry["cpu"], entry["gpu"], entry["covered"]) for entry in entries)
    return [
        "# CPU and GPUs", "",
        "What differs between the demo on a CPU and a run on GPUs. Parser: the release accepts the setting. Nothing:",
        "it has never run. Back to [On GPUs](../how-to/first-gpu.md).", "",
        *table(("on the CPU", "on GPUs", "covered by"), rows),
    ]  # fmt: skip


def published() -> list[str]:
    """What the published tables show by themselves, as every report says it."""
    sentences = published_tables_section.what_it_shows(published_tables.table_names())
    return [
        "# What the published tables show", "",
        "Each figure is a whole number of problems, answered once. No pairs: the answers are not published.",
        "Every report has the same sentences.", "",
        *(f"- {sentence}" for sentence in sentences), "",
    ]  # fmt: skip


def training_logs() -> list[str]:
    """What is read of each log that is tried (tests/unit/cases/training_logs.yaml)."""
    rows = []
    for case in read_yaml(ROOT / "tests" / "unit" / "cases" / "training_logs.yaml")["logs"]:
        others = [f"{name} ({near})" if near else name for name, near in case.get("left_out", {}).items()]
        reads = ", ".join(case.get("reads", ["refused; the error says what to import instead"]))
        rows.append((case["log"], reads, ", ".join(others), ", ".join(case.get("unseen", []))))
    return [
        "# Training logs of each release", "",
        "What `crosszero import-log` reads of logs made elsewhere ([how](../how-to/import.md#training-logs)). Each row",
        "is a small log with the names that the release's source has. A report names the signs of collapse that a log",
        "cannot show beside its verdict.", "",
        *table(("log", "columns read", "left out (nearest known name)", "signs of collapse it cannot show"), rows),
    ]  # fmt: skip


PAGES: dict[str, Callable[[], list[str]]] = {
    "run-file": run_file, "configuration": configuration, "protocols": protocol_page, "benchmarks": benchmarks,
    "recipes": recipes, "commands": commands, "metrics": metrics, "tables": table_page, "exit-statuses": exit_statuses,
    "provenance": provenance_fields, "environment-variables": environment_variables,
    "conformance": conformance, "promises": promises, "gpu-differences": gpu_differences,
    "published-tables": published, "training-logs": training_logs,
}  # fmt: skip


def write(folder: Path) -> None:
    """Write every page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / f"{name}.md").write_text("\n".join(page()), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

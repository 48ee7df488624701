"""What is used of Snakemake's private parts is there, and a release that was not tested is refused."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess

import pytest
import snakemake.api  # its other modules import each other in a circle

from cluster import snakemake_internals, snakemake_release
from contracts.run_file import ROOT
from tests.user_errors import refused

NAMES = [(module, name, key) for module, name, keys, _ in snakemake_internals.USED for key in keys.split() or [""]]


@pytest.mark.parametrize(("module", "name", "attribute"), NAMES, ids=[".".join(names).strip(".") for names in NAMES])
def test_the_installed_snakemake_has(module: str, name: str, attribute: str) -> None:
    value = getattr(importlib.import_module(module), name)
    if attribute and attribute not in dir(value):
        assert re.search(rf"\bself\.{attribute} = |\b{attribute}\b.*: ", inspect.getsource(value)), "set by __init__"


def test_functions_that_are_replaced_take_the_same_arguments() -> None:
    for module in ("snakemake.executors.local", "snakemake_executor_plugin_slurm"):
        executor = importlib.import_module(module).Executor
        assert list(inspect.signature(executor.report_job_error).parameters)[:3] == ["self", "job_info", "msg"]
    assert list(
        inspect.signature(importlib.import_module("snakemake.common").overwrite_function_params).parameters
    ) == [
        "func",
        "params",
    ]


def test_no_other_module_imports_from_snakemake() -> None:
    files = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    importing = [
        file
        for file in files.split()
        if not file.startswith("tests/")
        and re.search(r"^\s*(from|import) snakemake\b", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    starting = "cluster/start_snakemake.py"  # its command line, which is documented
    assert importing == ["cluster/snakemake_internals.py", "cluster/snakemake_release.py", starting]


def test_the_pinned_release_is_the_tested_one() -> None:
    snakemake_release.check_version()
    pinned = re.search(r"^snakemake==(.*)$", (ROOT / "envs/base/requirements.in").read_text(), re.MULTILINE)
    assert pinned and pinned[1] == snakemake.__version__
    snakemake_release.check_version(pinned[1])


@pytest.mark.parametrize("version", ["9.26.3", "9.28.0", "9.270.1", "10.0.0"])
def test_another_release_is_refused(version: str) -> None:
    with refused("untested-snakemake", version=version, tested=snakemake_release.TESTED):
        snakemake_release.check_version(version)


def test_the_sentence_of_a_refusal() -> None:
    printed = (
        'InputFunctionException in rule x in file "S", line 2:\nError:\n  WorkflowError:\n    a b [c-d]\nWildcards:\n\n'
    )
    assert snakemake_internals.sentence_of(printed) == "a b [c-d]"
    assert snakemake_internals.sentence_of(printed.replace("  WorkflowError", "  ValueError")) is None
    printed = 'WorkflowError in file "/a b/Snakefile", line 5:\nc d [e-f]\n  File "x", line 1, in <module>\n'
    assert snakemake_internals.sentence_of(printed) == "c d [e-f]"
    assert snakemake_internals.sentence_of(printed.replace(" [e-f]", "")) is None

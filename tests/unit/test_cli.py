"""The program `crosszero`: its table, its help texts, and how it starts modules and targets."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from snakemake.cli import parse_config

from cli import environments, graph, runs, study
from cli.main import crosszero
from cli.table import COMMANDS, GROUPS, Module, Target
from contracts.run_file import ROOT, switches
from eval import lm_eval
from system.command_line import PROGRAM
from tests.forked_command import run_snakemake
from tests.user_errors import refused


def help_of(name: str) -> str:
    result = CliRunner().invoke(crosszero, [name, "--help"], prog_name="crosszero")
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_has_every_command_in_its_group() -> None:
    output = CliRunner().invoke(crosszero, ["--help"], prog_name="crosszero").output
    listed = [line.split()[0] for line in output.splitlines() if line.startswith("  ") and line.split()[0] in COMMANDS]
    assert listed == list(COMMANDS)
    assert [title for title in GROUPS if f"\n{title}:\n" in output] == list(GROUPS)


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if not isinstance(row.starts, Module)])
def test_a_help_text_has_a_usage_line_and_an_example(name: str) -> None:
    text = help_of(name)
    assert text.startswith(f"Usage: crosszero {name} ")
    assert f"Example: crosszero {name}" in text


@pytest.mark.parametrize(
    "row", [row for row in COMMANDS.values() if isinstance(row.starts, Module)], ids=lambda r: r.name
)
def test_a_program_has_a_parser_and_names_itself_as_the_user_does(row) -> None:  # type: ignore[no-untyped-def]
    path = ROOT / row.starts.module.replace(".", "/")
    file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
    text = file.read_text(encoding="utf-8")
    assert f"crosszero {row.name} " in (ast.get_docstring(ast.parse(text)) or ""), f"{file} has no worked example"


def test_the_help_of_lm_eval_is_ours_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(PROGRAM, "crosszero lm-eval")
    monkeypatch.setattr(sys, "argv", ["lm_eval.py", "--help"])
    lm_eval.main()
    assert capsys.readouterr().out.startswith("usage: crosszero lm-eval {")


def test_studies_are_listed_and_their_programs_start(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = CliRunner().invoke(crosszero, ["study"], prog_name="crosszero").output
    assert [line.split()[0] for line in listed.splitlines()] == list(study.study_folders())
    started: list[tuple[str, str, list[str]]] = []
    monkeypatch.setattr(
        environments, "run_module", lambda *parts, program, device: started.append((*parts[:2], [*parts[2]]))
    )
    monkeypatch.setattr(graph, "run_target", lambda target, *rest: started.append((target, "", [])))
    for typed in ("step_trials --traces 5", "kl", "kl study --help", "gpu_memory --environment eval --run a",
                  "gate_validation simulation"):  # fmt: skip
        CliRunner().invoke(crosszero, ["study", *typed.split()], prog_name="crosszero")
    assert started == [
        ("base", "studies.step_trials.study", ["--traces", "5"]), ("study_kl", "", []),
        ("base", "studies.kl.study", ["--help"]), ("eval", "studies.gpu_memory.study", ["--run", "a"]),
        ("base", "studies.gate_validation.simulation", []),
    ]  # fmt: skip


def test_every_study_has_a_command_with_its_question() -> None:
    for name, folder in study.study_folders().items():
        text = CliRunner().invoke(crosszero, ["study", "--help"], prog_name="crosszero").output
        assert name in text
        command = study.study_command(folder)
        assert (command.short_help or "").endswith("?")


def test_runs_are_listed_with_what_they_need() -> None:
    output = CliRunner().invoke(crosszero, ["runs", "tinyzero", "--scale", "full"], prog_name="crosszero").output
    rows = {line.split()[0]: line for line in output.splitlines()}
    assert {"tinyzero/grpo-3b", "tinyzero/ppo-7b"} < set(rows) and not any(name.startswith("openr1") for name in rows)
    assert "qwen2.5-3b " in rows["tinyzero/grpo-3b"] and "× 80 GB" in rows["tinyzero/grpo-3b"]
    with refused("unknown-name", name="tinyzeroo"):
        runs.chosen_names(("tinyzeroo",), "demo")


def test_a_target_of_the_table_exists() -> None:
    rules = (ROOT / "Snakefile").read_text() + "".join(file.read_text() for file in ROOT.glob("workflows/*.smk"))
    for row in COMMANDS.values():
        if isinstance(row.starts, Target):
            assert f"rule {row.starts.name}:" in rules, row.name


def complete(typed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the shell is offered for a line: its last word is completed."""
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    with pytest.raises(SystemExit):
        crosszero.main([], prog_name="crosszero", complete_var="_CROSSZERO_COMPLETE")
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("crosszero repr", ["reproduce"]),
        ("crosszero reproduce tinyzero/grpo-7", ["tinyzero/grpo-7b"]),
        ("crosszero compare tinyzero/grpo-7", ["tinyzero/grpo-7", "tinyzero/grpo-7b"]),  # the first: files
        ("crosszero grade generations/math", ["generations/math"]),
        ("crosszero evaluate --benchmark gsm8", ["gsm8k"]),
        ("crosszero claims --sca", ["--scale"]),
        ("crosszero claims --scale d", ["demo"]),
    ],
)
def test_the_shell_completes_commands_runs_and_options(
    typed: str, offered: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CROSSZERO_COMPLETE", "bash_complete")
    assert complete(typed, capsys, monkeypatch) == offered


class Started(list[list[str]]):
    """The commands that would have been started."""

    def start(self, command: list[str], **_: object) -> int:
        self.append(command)
        return 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Keeps what a command would start, which other tests start in earnest."""
    commands = Started()
    monkeypatch.setattr(graph, "run_interruptible", commands.start)
    return commands


def test_a_variant_of_a_run_on_a_cluster(started: Started) -> None:
    line = "reproduce openr1 --set objective.kl_coefficient=0 --seeds 0,1 --profile slurm -n -- --keep-going"
    assert CliRunner().invoke(crosszero, line.split()).exit_code == 0
    ((_, _, program, target, *options),) = started
    assert (program, target, options[:7]) == (
        "cluster.start_snakemake", "reproduce_all",
        ["--profile", "slurm", "--dry-run", "--keep-going", "--quiet", "rules", "host"],
    )  # fmt: skip
    settings = dict(pair.split("=", 1) for pair in options[options.index("--config") + 1 :])
    assert {key: yaml.safe_load(text) for key, text in settings.items()} == {
        "seeds": [0, 1], "reproduce": ["openr1"], "set": {"objective.kl_coefficient": "0"}
    }  # fmt: skip


@pytest.mark.parametrize("line", ["claims --seeds 0,x", "claims --config seeds", "claims --scale large", "claims x"])
def test_an_option_that_cannot_be_is_refused_before_anything_starts(line: str, started: Started) -> None:
    result = CliRunner().invoke(crosszero, line.split())
    assert result.exit_code == 2 and "Error:" in result.output and not started


@pytest.mark.parametrize("line", ["claims", "reproduce openr1", "compare a b", "benchmark"])
@pytest.mark.parametrize("text", ["[", "a: b: c", "*x", "{a: 1, a: 2}"])
def test_a_value_that_is_no_yaml_is_refused_before_anything_starts(line: str, text: str, started: Started) -> None:
    result = CliRunner().invoke(crosszero, [*line.split(), "--config", f"seeds={text}"])
    said = f"{result.output}{result.exception}"  # `compare` says so itself, for its own statuses
    assert result.exit_code and "--config seeds is not valid YAML" in said and not started


def test_names_reach_the_workflow_as_they_are() -> None:
    names = {"a_1": "my model & 'co'", "a_2": "a: b #c", "a_3": "007", "a_4": '"x"', "a_5": "true", "a_6": "\\é"}
    assert parse_config([f"{key}={text}" for key, text in graph.configuration(names).items()]) == names


@pytest.mark.slow
def test_every_switch_of_a_command_reaches_the_workflow() -> None:
    chosen = graph.configuration(dict.fromkeys(switches("config"), True))
    assert {"paired_seeds", "bare"} <= chosen.keys()
    done = run_snakemake("--list-rules", "--config", *(f"{key}={text}" for key, text in chosen.items()))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_command_that_does_not_exist_names_the_nearest() -> None:
    with refused("unknown-name", name="clams"):
        crosszero.main(["clams"], prog_name="crosszero", standalone_mode=False)


def test_modules_are_found_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One process with what `run_module` gives each of them, in a folder that is not the project's."""
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(environments, "interpreter", lambda *_: Path(sys.executable))
    monkeypatch.setattr(
        environments, "run_interruptible", lambda command, *, environment: started.append((command, environment))
    )
    for row in COMMANDS.values():
        if isinstance(row.starts, Module):
            environments.run_module(row.starts.environment, row.starts.module, [], program=row.name)
    modules = {command[command.index("-m") + 1]: environment["PYTHONPATH"] for command, environment in started}
    assert len(set(modules.values())) == 1 and len(modules) == sum(
        isinstance(r.starts, Module) for r in COMMANDS.values()
    )
    find = "import sys; from importlib.util import find_spec; print([n for n in sys.argv[1:] if not find_spec(n)])"
    missing = subprocess.run(
        [sys.executable, "-c", find, *modules], env=started[0][1], cwd=tmp_path, capture_output=True, text=True
    )
    assert missing.stdout == "[]\n", missing


def test_ctrl_c_is_the_program_s_own_affair() -> None:
    program = "import sys, time\ntry: print('on', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: sys.exit(7)"
    call = f"graph.run_interruptible([sys.executable, '-c', {program!r}], environment={{}})"
    outer = f"import sys; from cli import graph; sys.exit({call})"
    with subprocess.Popen([sys.executable, "-c", outer], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == b"on\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait() == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_command_leaves_no_snakemake_behind(number: signal.Signals) -> None:
    program = "import time; print('on', flush=True); time.sleep(60); print('still there')"
    call = f"graph.run_interruptible([sys.executable, '-c', {program!r}], environment={{}})"
    outer = f"import sys; from cli import graph; {call}"
    with subprocess.Popen([sys.executable, "-c", outer], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"on\n"
        process.send_signal(number)
        assert process.stdout.read() == b""  # its end is where the last process with it has ended


def test_ctrl_c_before_snakemake_has_started_is_one_line() -> None:
    command = [sys.executable, "-m", "cluster.start_snakemake", "help"]
    call = f"graph.run_interruptible({command!r}, environment=dict(os.environ), cwd={str(ROOT)!r}, answered_later=True)"
    program = f"import os, sys; from cli import graph; print('on', flush=True); sys.exit({call})"
    outer = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {program}"
    with subprocess.Popen(
        [sys.executable, "-c", outer], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"on\n"
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.01)
        assert process.returncode == 130
        assert process.stderr is not None and process.stderr.read() == b"\nInterrupted; nothing was started.\n"


def test_a_mistyped_benchmark_is_no_model(started: Started) -> None:
    for line, status in (("evaluate --benchmark gsm8k math50 m", 1), ("compare a b --benchmark gsm8k math50", 3)):
        result = CliRunner().invoke(crosszero, line.split())
        said = result.output if status == 3 else getattr(result.exception, "code", "")
        assert result.exit_code == status and "unknown-name" in said and not started
    assert not CliRunner().invoke(crosszero, ["evaluate", "--benchmark", "gsm8k", "math500", "./model"]).exit_code
    assert parse_config([started[0][-1]])["checkpoint"] == "./model"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["compare-checkpoints needed --difference 2", "runs", "show README.md"])
def test_a_reader_that_ends_early_gets_no_traceback(command: str) -> None:
    reader, output = os.pipe()
    os.close(reader)
    arguments = [sys.executable, "-P", "-m", "cli.main", *command.split()]
    done = subprocess.run(
        arguments, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=output, stderr=subprocess.PIPE
    )
    os.close(output)
    assert done.returncode and b"Traceback" not in done.stderr and b"Exception" not in done.stderr, done.stderr

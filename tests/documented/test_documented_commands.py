"""The commands of README, docs and help texts: each exists, has a cost, and `make test-all` runs the quick ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.study import study_folders
from cli.table import COMMANDS
from contracts.run_file import ROOT
from system.yaml_files import read_yaml
from tests.documented import __main__ as runner
from tests.documented.__main__ import Workplace, first_failure, run_documented
from tests.documented.commands import Documented, distinct_commands, documented_commands, of_page, read_lines
from tests.documented.costs import COSTS, inputs, rule_of, rules, runnable_script
from tests.documented.figures import figures, stale_figures

COMMANDS_OF_PAGES = distinct_commands()
QUICK = [command for command in COMMANDS_OF_PAGES if (rule := rule_of(command)) and rule.cost == "quick"]


def test_every_command_has_a_cost_and_no_rule_is_stale() -> None:
    assert len(COMMANDS_OF_PAGES) > 100
    assert [command for command in COMMANDS_OF_PAGES if rule_of(command) is None] == []
    deciding = {rule.match for command in COMMANDS_OF_PAGES if (rule := rule_of(command))}
    assert [rule.match for rule in rules() if rule.match not in deciding] == []
    assert {rule.cost for rule in rules()} <= set(COSTS)


def test_every_input_and_every_replaced_word_is_used() -> None:
    needed = {name for rule in rules() for name in rule.needs} | {
        name for entry in inputs().values() for name in entry.get("needs", ())
    }
    assert needed == set(inputs())
    for rule in rules():
        texts = " ".join(command.script for command in COMMANDS_OF_PAGES if rule_of(command) == rule)
        assert [word for word in rule.replace if word not in texts] == [], rule.match


@pytest.mark.parametrize("command", COMMANDS_OF_PAGES, ids=lambda command: f"{command.page}:{command.line}")
def test_what_a_command_names_exists(command: Documented) -> None:
    """Commands of `crosszero`, studies, targets of Snakemake, modules of Python, and keys of the configuration."""
    text = command.text
    for name in re.findall(r"(?:^|&& )crosszero (\w[\w-]*)", text):
        assert name in COMMANDS
    for name in re.findall(r"^crosszero study (\w+)", text):
        assert name in study_folders()
    for module in re.findall(r"^python -m ([\w.]+)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
    if text.startswith("snakemake"):
        targets = re.findall(r"(?<= )(?:help|[a-z]+_[a-z_]+|[a-z]{4,})(?= |$)", text.partition(" --config")[0])
        rules_of_graph = "".join(file.read_text() for file in (*ROOT.glob("workflows/*.smk"), ROOT / "Snakefile"))
        rules_of_graph += "".join(file.read_text() for file in ROOT.glob("studies/*/rules.smk"))
        for target in targets:
            assert f"rule {target}:" in rules_of_graph or target.startswith("reproduce_") or target == "slurm", target
    keys = re.findall(r" ([a-z_]+)=", text.partition(" --config ")[2] and f" {text.partition(' --config ')[2]}")
    assert set(keys) <= set(read_yaml(ROOT / "config/schemas/config.schema.yaml")["properties"])


def test_commands_are_read_as_they_stand(tmp_path: Path) -> None:
    lines = [
        "F=a/b   # a folder",
        "snakemake help    # targets",
        "",
        "crosszero runs \\",
        "    openr1   # one",
        "# only a note",
    ]
    first, second = read_lines(lines, "page.md", 4)
    assert (first.text, first.line, first.script) == ("snakemake help", 5, "F=a/b\nsnakemake help")
    assert (second.text, second.line) == ("crosszero runs openr1", 7)
    page = ROOT / "config" / "README.md"
    assert [command.text for command in of_page(page)][1] == "snakemake -n reproduce_all"
    assert {"README.md", "CONTRIBUTING.md", "studies/kl/study.py", "cli/table.py"} <= {
        command.page for command in documented_commands()
    }


def test_optional_parts_and_names_are_replaced() -> None:
    command = Documented("x", 1, "crosszero why FIRST SECOND [--step 20 --benchmark math500]")
    rule = rule_of(command)
    assert rule and "FIRST" not in (script := runnable_script(command, rule)) and "[" not in script
    assert script.startswith("crosszero why results/demo/")


def test_the_first_line_of_a_failure() -> None:
    assert (
        first_failure("starting\nError: no such run [unknown-name]\nfurther\n") == "Error: no such run [unknown-name]"
    )
    assert first_failure("a\nb\n") == "b" and first_failure("") == "no output"


def test_every_stated_figure_is_there_and_has_a_command() -> None:
    for figure in figures():
        assert figure.stated(), f"{figure.page} no longer states {figure.states}"
        assert any(command.text.startswith(figure.command) for command in COMMANDS_OF_PAGES), figure.command


def test_a_figure_that_differs_is_reported(tmp_path: Path) -> None:
    (figure,) = [figure for figure in figures() if figure.page == "docs/how-to/first-gpu.md"]
    (number,) = figure.stated()[0]
    fitting = "| gsm8k/one | model | 1 | yes | 8 |\n"
    assert stale_figures(figure.command, fitting * int(number), tmp_path) == []
    assert stale_figures(figure.command, fitting, tmp_path) != []
    assert stale_figures(figure.command, "nothing\n", tmp_path) != []


def test_what_succeeded_is_not_run_again_and_what_needs_other_files_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MIRROR", tmp_path / "none")
    workplace = Workplace(tmp_path)
    good, bad = workplace.run("echo fine", 60), workplace.run("echo start; echo 'Error: no [none]' >&2; exit 3", 60)
    assert (good.status, good.failure, bad.status, bad.failure) == (0, "", 3, "Error: no [none]")
    assert workplace.run("sleep 60", 60, interrupt=1).failure == "" != workplace.run("sleep 60", 0.2).failure
    for command, outcome in zip(QUICK, (good, bad), strict=False):
        workplace.keep(command, outcome)
    assert workplace.succeeded() == {workplace.key(QUICK[0])}
    lacking = workplace.make_inputs(["data"])
    assert lacking is not None and lacking.left_out and not lacking.failure


@pytest.mark.long
@pytest.mark.slow
def test_the_quick_commands_run(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path)
    outcomes = {command.text: run_documented(command, rule, workplace)
                for command in QUICK if (rule := rule_of(command))}  # fmt: skip
    assert len(outcomes) > 8
    assert {text: done.failure for text, done in outcomes.items() if done.failure} == {}

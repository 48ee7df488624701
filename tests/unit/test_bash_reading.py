"""What was read of a launch script has to agree with what bash makes of it, in a sandbox with every program a stub."""

from __future__ import annotations

from pathlib import Path

import pytest

from system.errors import UserError
from tests.unit.sandboxes import needs_sandbox
from tests.unit.shell_scripts import ENTRY
from tests.user_errors import refused
from translate import script_commands
from translate.bash_reading import refuse_other_trainings, started_programs
from translate.shell.branches import Call
from translate.shell.interpreter import Interpreter
from translate.shell.values import unknown

pytestmark = [needs_sandbox, pytest.mark.usefixtures("empty_folder")]


def train_first(arguments: list[str]) -> int | None:
    return 0 if arguments[0] == "train" else None


@pytest.mark.parametrize(
    ("script", "started"),
    [
        ('train a \'b c\' "" $X "$1" $#', ["train", "a", "b c", "", "3", "p", "2"]),
        ("srun --n 2 bash -c 'train $0 $1' a b", ["train", "a", "b"]),
        ("nohup env X=4 sh -c 'train $X' > /dev/null", ["train", "4"]),
        ("env -u X bash -c 'train ${X-none}'", ["train", "none"]),
        ("env A=1 train a", ["env", "A=1", "train", "a"]),
        ("export N=2; bash <<< 'train $N'", ["train", "2"]),
        ("set -eu; cd /nowhere; mkdir -p a/b; exec train $HOME; train no", ["train", "/root"]),
        ("source lib/env.sh; train $FROM_FILE", ["train", "5"]),
        ("cat > f <<'E'\n#!/bin/bash\ntrain \"$@\"\nE\nchmod +x f; ./f a", ["train", "a"]),
        ("sed s/1/2/ lib/env.sh > f; echo 'train x' | tee g | bash", ["train", "x"]),
        ("ls / /home; rm -rf / 2> /dev/null; train $(cat /etc/passwd | grep -c root)", ["train", "0"]),
        ("train | tee log | grep x", ["train"]),
        ("train {1..3000} | other {1..3000} | another {1..3000}", ["train", *map(str, range(1, 3001))]),
    ],
)
def test_bash_starts_stubs_of_programs(script: str, started: list[str]) -> None:
    reader = Interpreter(train_first, Path(), {"X": "3", "1": "p", "2": "q"}, beside={"lib/env.sh": "FROM_FILE=5"})
    programs = started_programs(reader, script)
    assert [one for one in programs if "train" in one] == [started]


def test_a_script_that_does_not_end_says_what_it_started_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("translate.bash_reading.WALL_S", 2.0)
    reader = Interpreter(train_first, Path(), {})
    assert ["train", "a"] in started_programs(reader, "train a; while :; do :; done")
    assert started_programs(reader, "X=x; while :; do X=$X$X; done") == []


def test_what_a_script_puts_where_stubs_write_is_no_trap() -> None:
    script = "mkdir /started/a; ln -s /etc/passwd /started/b; ln -s /dev/zero /started/c; ln -s . /started/d; train a"
    assert started_programs(Interpreter(train_first, Path(), {}), script) == [["train", "a"]]


@pytest.mark.parametrize(
    ("read", "started", "fits"),
    [
        (["a", "b"], "a b", True),
        (["a", "b"], "a", False),
        (["a"], "a b", False),
        ([], "''", False),
        (["a", ""], "a ''", True),
        (["--lr", unknown("$X"), "b"], "--lr 3 b", True),
        (["--lr", unknown("$X"), "b"], "--lr b", True),
        ([f"x={unknown('$X')}/y{unknown('$Z')}z"], "x=1/y2z", True),
        ([f"x={unknown('$X')}/y{unknown('$Z')}z"], "x=1y2z", False),
        ([f"a{unknown('$X')}a"], "a", False),
        ([unknown("$X")], "", True),
    ],
)
def test_words_fit_where_what_is_known_of_them_agrees(read: list[str], started: str, fits: bool) -> None:
    reader = Interpreter(train_first, Path(), {}, calls=[Call(["train", *read], 0, {}, 1, [])])
    if fits:
        refuse_other_trainings(reader, f"train {started}")
    else:
        with refused("read-otherwise"):
            refuse_other_trainings(reader, f"train {started}")


@pytest.mark.parametrize("program", ["/opt/conda/bin/train", "./bin/train", "/usr/local/bin/train", "lib/train"])
@pytest.mark.parametrize("output", ["", " > logs/a/train.log", " &>> /data/log.txt"])
def test_a_program_by_its_path_and_a_log_in_a_folder_are_followed(program: str, output: str) -> None:
    script = f"readonly N=1; N=2; :\n{program} a=$N b{output}"
    with refused("read-otherwise"):
        script_commands.training_commands(script, ENTRY, {}, Path())
    script_commands.training_commands(f"readonly N=1; {program} a=$N{output}", ENTRY, {}, Path())


def test_a_script_that_is_read_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a shell may do that the reader does not know: here `readonly`, which ends the assignment's command."""
    script = "readonly N=1; N=2; train $N\ntrain $N"
    with refused("read-otherwise"):
        script_commands.training_commands(script, ENTRY, {}, Path())

    monkeypatch.setattr("translate.bash_reading.shutil.which", lambda name: None)  # as where there is no bubblewrap
    assert script_commands.training_commands(script, ENTRY, {}, Path())


@pytest.mark.parametrize("script", ["X=$(hostname); train $X", "if nvidia-smi; then X=1; else X=2; fi; train $X"])
def test_what_the_reader_says_in_place_of_a_program_is_not_held_against_bash(script: str) -> None:
    with pytest.raises(UserError):
        script_commands.training_commands(script, ENTRY, {}, Path())
    (command,) = script_commands.training_commands(script, ENTRY, {"X": "7"}, Path())
    assert command.arguments == ["7"]

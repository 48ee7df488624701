"""What a launch script leaves open is asked for by name, and decides nothing in silence."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest

from system.errors import UserError
from tests.unit.shell_scripts import ENTRY, read, run
from tests.user_errors import refused
from translate.script_commands import training_commands

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ('train a=1 "${GIVEN[@]}"', ["GIVEN"]),
        ("train a=1 $EXTRA", ["EXTRA"]),
        ('if [ "$D" = npu ]; then A=(x=1); else A=(x=2); fi; train "${A[@]}"', ["D"]),
        ('D=${D:-$(python -c "import x" && echo a || echo b)}\ncase $D in a) A=1;; *) A=2;; esac\ntrain $A', ["D"]),
        ("train ${1}", ["1"]),
        ("[ $U = x ] && shopt -s lastpipe; N=1; echo 2 | read N; train $N", ["U"]),
        ("if nvidia-smi; then X=(a=1); else X=(a=2); fi; train ${X[@]}", ["X"]),
    ],
)
def test_what_nobody_says_is_asked_for_by_name_and_can_be_said(script: str, names: list[str]) -> None:
    with refused("unknown-settings", variables=names):
        read(script)
    assert read(script, **dict.fromkeys(names, "b=2"))


@pytest.mark.parametrize(
    "script",
    ["N=4; ((N += U)); train $N", "N=4; N=$((N + $U)); train $N", "N=4; let N=N*U; train $N",
     "N=4; ((N++ > U)); train $N", "N=4; for ((N = U; N < 9; N++)); do :; done; train $N"],
)  # fmt: skip
def test_a_sum_of_what_nobody_says_leaves_nothing_as_it_was(script: str) -> None:
    with refused("unknown-settings", variables=["U"]):
        read(script)
    assert read(script, U="3") == run(script, U="3")


@pytest.mark.parametrize(
    "test", ['[ -z "$MODE" ]', "[[ -z $MODE ]]", '[ ! -n "${MODE}" ]', '[ -z "$MODE" ] || [ "$MODE" = b ]']
)
def test_a_script_that_ends_since_a_variable_is_not_set_asks_for_it(test: str) -> None:
    script = f"if {test}; then echo usage; exit 1; fi\ntrain x=$MODE"
    with refused("ends-before-training", variables=["MODE"]):
        read(script)
    assert read(script, MODE="a") == run(script, MODE="a")


def test_a_script_whose_defaults_end_it_says_so() -> None:
    script = 'G=${GPUS:-1}\nif [ "$G" -lt 2 ]; then echo two are needed; exit 1; fi\npython -m train g=$G'
    with refused("ends-before-training", variables=[]):
        read(script)
    assert read(script, GPUS="2") == [["g=2"]]
    assert read("[ ${GPUS:-1} -lt 2 ] && exit; echo untrained") == []  # no training follows


def test_a_command_that_branches_add_to_asks_for_what_decides_them() -> None:
    script = 'C="train a"; if [ $U = x ]; then C="$C b"; fi; if [ $V = x ]; then C="$C c"; fi; C="$C d"; $C'
    with refused("unknown-program", variables=["U", "V"]):
        read(script)
    assert read(script, U="x", V="y") == run(script, U="x", V="y") == [["a", "b", "d"]]


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("T=$1; accelerate launch --a 3 src/$T.py --lr 1", "1"),
        ("python -m a.b.$M a=1", "M"),
        ("if [ $U = a ]; then T=x; else T=y; fi; torchrun $T.py", "U"),
        ("$RUN a=1", "RUN"),
    ],
)
def test_a_program_whose_name_nobody_says_is_asked_for(script: str, name: str) -> None:
    with refused("unknown-program", variables=[name]):
        read(script)
    assert read(f"{script}; train b") and not read("ray start --address $X; python a.py $Y; python $DIR/c.py; echo $Z")


PRINTED = ["if [ $U = x ]; then echo a; else echo b; fi", "[ $U = x ] && echo a || echo b",
           "[ $U = x ] && exit; echo a", "for i in 1 2; do [ $U = x ] && break; echo $i; done"]  # fmt: skip


@pytest.mark.parametrize("command", PRINTED)
def test_what_one_of_two_branches_prints_is_no_guess(command: str) -> None:
    with pytest.raises(UserError):
        read(f'V=$({command}); train "$V"')
    assert read(f'V=$({command}); train "$V"', U="y") == run(f'V=$({command}); train "$V"', U="y")


@pytest.mark.parametrize("command", ["$(cat args.txt)", "`cat args.txt`", "$(seq -s, 1 3)", "$(python x.py | tail -1)"])
def test_settings_that_a_command_prints_are_asked_for_in_its_place(command: str) -> None:
    with refused("unknown-output"):
        read(f"N=3; train {command} a=$N")


@pytest.mark.parametrize(
    ("script", "arguments"),
    [("echo a 'b c' | xargs train x", ["x", "a", "b", "c"]),
     ("xargs -r train <<< \"a 'b c' d\\ e\"", ["a", "b c", "d e"]),
     ("printf 'a\\nb' | xargs train; ls | xargs rm", ["a", "b"])],
)  # fmt: skip
def test_xargs_gives_a_training_its_input_as_words(script: str, arguments: list[str]) -> None:
    assert read(script) == [arguments]


@pytest.mark.parametrize(
    "script",
    [
        "if [ $U = q ]; then echo 'train a' > f; else echo 'train b' > f; fi; bash f",
        "if [ $U = q ]; then echo 'N=1' > f; fi; . ./f; train ${N-0}",
        "echo 'train a' > f; [ $U = q ] && echo 'train b' >> f; bash f",
        "if [ $U = q ]; then f() { train a; }; else f() { train b; }; fi; f",
        "N=1; f() { N=2; }; [ $U = q ] && f() { N=3; }; f; train $N",
        'if [ $U = q ]; then set -- a; else set -- b; fi; train "$1"',
        "[ $U = q ] && shift; train $1 $#",
        '[ $U = q ] && shift; set -- $* end; train "$@"',
        "[ $U = q ] && shift; for i in $@; do train $i; done",
        "f() { [ $U = q ]; }; N=1; f && N=2; train $N",
        'declare -A L=([q]=1); train "${L[$U]:-d}"',
        "A=(1 2); train ${A[U]}",
    ],
)
def test_what_a_branch_leaves_of_files_functions_and_arguments_is_no_guess(script: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(script, **{"1": "x", "2": "y"})
    assert refusal.value.facts["variables"] in (["U"], ["N"])
    for value in ("1", "q"):
        with contextlib.suppress(UserError):
            assert read(script, U=value, **{"1": "x", "2": "y"}) == run(script, "x", "y", U=value)


def test_a_function_of_one_branch_that_trains_nothing_decides_nothing() -> None:
    script = "if [ $U = q ]; then log() { echo a >&2; }; else log() { :; }; fi; log; train c"
    assert read(script) == run(script) == [["c"]]


@pytest.mark.parametrize(
    "change",
    ["sed -i s/1/2/ {}", "perl -pi -e s/1/2/ ./{}", "date >> {}", "echo 'train 2' | tee {}", "cp other {}",
     "mv other ./{}", "ln -s other {}", "yq -i .a=1 {}", "python patch.py --out={}"],
)  # fmt: skip
@pytest.mark.parametrize("use", ["bash f", ". ./f; train $N", "train --config f"])
def test_what_a_program_makes_of_a_file_is_not_known(change: str, use: str) -> None:
    with refused("unknown-content"):
        read(f"echo 'train 1' > f; {change.format('f')}; {use}")
    assert read(f"echo 'N=1' > f; {change.format('g')}; . ./f; train $N") == [["1"]]


def test_what_a_program_alone_decides_is_said_where_it_counts() -> None:
    script = "if grep -q x /a; then shift; fi; train $1"
    with refused("unknown-settings", variables=["1"]):
        read(script)
    assert read(script, **{"1": "x"}) == [["x"]]
    assert read("if grep -q x /a; then f() { train a; }; else f() { train b; }; fi; f") == [["a"], ["b"]]


@pytest.mark.parametrize(
    "script",
    ["A=$3; bash -c \"train a=$A b='$A' $1\"", 'A=$1; bash -c "train a=$A" x y; srun bash -c "N=$A; train n=\\$N $2"',
     "bash <<E\ntrain a=$2 \"$1\"\nE", 'C="train a=$2"; ssh host "cd /x && $C b=$(cat /etc/x | wc -l) && train $1"',
     "f() { bash -c \"train x=$1\"; }; f $2"],
)  # fmt: skip
def test_what_is_unknown_stays_so_in_another_shell(script: str) -> None:
    with contextlib.suppress(UserError):
        assert all(any("$" in word for word in arguments) for arguments in read(script))
    stated = {"1": "p", "2": "q r", "3": "s"}
    assert "ssh" in script or read(script, **stated) == run(script, *stated.values())


def test_a_text_for_what_may_be_empty_is_asked_for() -> None:
    with refused("unknown-settings", variables=["X"]):
        read('X=$(hostname); train "${X:+--flag}"')
    with refused("unknown-settings", variables=["X"]):
        read("X=1; [[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab =~ (a+)+$ ]] && X=2; train $X")


def test_exported_variables_come_in_the_script_s_own_order() -> None:
    names = [f"V{number * 7 % 40}" for number in range(40)]
    (call,) = training_commands("".join(f"export {name}=1\n" for name in names) + "train x", ENTRY, {}, Path())
    assert list(call.environment) == names
    (call,) = training_commands("export A=1 B=2; export -n B; env -u A C=3 train x", ENTRY, {}, Path())
    assert call.environment == {"C": "3"} and not call.launcher


@pytest.mark.parametrize(
    "script",
    ["xargs -a f python -m train", "cat f | xargs train", "echo a b | xargs -n 1 python -m train",
     "echo a | xargs -I{} bash -c 'train {}'",
     "parallel train {} ::: 1 2", "echo \"it's\" | xargs train"],
)  # fmt: skip
def test_words_that_come_from_elsewhere_are_not_left_out(script: str) -> None:
    with refused("words-from-elsewhere"):
        read(script)


def test_a_branch_that_decides_which_training_runs_is_asked_for() -> None:
    script = "if [ $MODE = a ]; then train x=1\nelse train x=2; fi"
    with refused("branch-not-decided", variables=["MODE"]):
        read(script)
    assert read(script, MODE="a") == [["x=1"]] and read(script, MODE="b") == [["x=2"]]
    assert read("if [ $RANK = 0 ]; then train x=1; else ray start; fi") == [["x=1"]]  # the other trains nothing
    assert read('if [ -z "$M" ]; then M=d; fi; [ $# -lt 1 ] && exit 1; train m=$M') == [["m=d"]]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("train a='1", "quote-not-closed"),
        ("train a=$((1", "quote-not-closed"),
        ("if true; then train a", "not-bash"),
        ("for v in (; do train a; done", "not-bash"),
        ("train --a <your key> \\\n --lr 3", "placeholder"),
        ("f() { f; }; f; train a", "endless-script"),
        pytest.param(
            "while true; do n=$(( ${n:-0} + 1 )); sleep 1; done; train a", "endless-script", marks=pytest.mark.slow
        ),
        ("for i in $(seq 10001); do N=$i; done; train $N", "endless-script"),
        ("A=x; for i in {1..60}; do A=$A$A; done; train $A", "endless-script"),
        ("train {1..20000}", "endless-script"),
        ("env -S 'X=1 train a'", "option-not-read"),
        ("shopt -s expand_aliases; alias go='train a'\ngo b", "alias-not-read"),
        ("[ $U = x ] && shopt -s expand_aliases; alias go=N=2; f() { go; }; N=1; f; train $N", "alias-not-read"),
        ("train {1..200}{1..200}", "endless-script"),
        pytest.param(
            'A=(x); for i in {1..60}; do A+=("${A[@]}"); done; train "${A[@]}"',
            "endless-script",
            marks=pytest.mark.slow,
        ),
        ("train a=" + "${A:-" * 2000 + "x" + "}" * 2000, "endless-script"),
    ],
)
def test_what_is_no_script_has_a_code(script: str, code: str) -> None:
    with refused(code):
        read(script)


@pytest.mark.parametrize(
    "script",
    ["if [ $U = x ]; then trap 'train t' EXIT; fi", "[ $U = x ] && trap 'train t' EXIT || trap 'train s' EXIT",
     "f() { trap 'train t' RETURN; }; f", "trap 'bash -c \"train t\"' DEBUG",
     "N=1; trap 'train $N' EXIT; if [ $U = x ]; then N=2; exit; fi"],
)  # fmt: skip
def test_a_training_in_a_trap_that_may_run_is_refused(script: str) -> None:
    with refused("training-in-trap"):
        read(f"{script}; ls")
    assert not read(script.replace("train", "kill"))


CHAIN = "".join(f"a{n}=1; " for n in range(1, 16)) + "a16=2; "
SHIFTS = "".join(f"a{n}=$a{n + 1}; " for n in range(1, 16))
LEFT_ON_THE_WAY = [
    "N=1; while true; do case $U in x) break;; esac; N=2; break; done; train $N a",
    "N=1; for i in 1 2 3; do [ $U = x ] && continue; N=$i; done; train $N $i",
    "N=1; for i in 1 2 3; do if [ $U = x ]; then break; fi; N=$i; done; train $N",
    "N=1; i=0; while [ $i -lt 3 ]; do i=$((i + 1)); if [ $U = x ]; then continue; fi; N=$i; done; train $N",
    "N=1; until [ $U = x ]; do N=2; break; done; train $N b; train c",
    "for i in 1 2; do for j in 3 4; do [ $U = x ] && break; N=$j; done; M=$i; done; train ${N:-0} $M",
    "A=(1); for i in 2 3; do [ $U = x ] && continue; A+=($i); done; train a ${A[0]}",
    "set -- p q r; while [ $# -gt 0 ]; do case $U in x) break;; esac; shift; done; train $# b",
    "for i in 1 2; do for j in 3 4; do [ $U = x ] && break 2; N=$j; done; M=$i; done; train ${N:-0} ${M:-0}",
    "for i in 1 2; do for j in 3 4; do [ $U = x ] && continue 2; N=$j; done; M=$i; done; train ${N:-0} ${M:-0}",
    "while read -r l; do [ $U = x ] && read -r m; N=$l; done <<< $'1\\n2\\n3\\n4'; train $N",
    "N=2; for i in 1 2 3; do N=$((N + 2)); [ $U = x ] && continue; N=2; done; train $N",
    "N=0; for i in 1 2; do [ $i = 1 ] && { [ $U = x ] && break; }; N=$i; done; train $N",
    "N=0; while true; do N=$((N + 1)); [ $N = 3 ] && { [ $U = x ] && break; }; [ $N = 5 ] && break; done; train $N",
    "N=0; for i in 1 2; do [ $U = x ] && { N=$i; continue; }; break; done; train $N",
    "f() { while true; do [ $U = x ] && return; N=3; break; done; N=$((N + 1)); }; N=0; f; train $N",
    # a function that may have returned, a script that may have ended
    "f() { [ $U = x ] && return; N=2; }; N=1; f; train a $N",
    "f() { for i in 1 2 3; do [ $U = x ] && return 1; N=$i; done; }; N=0; f; train $N",
    "f() { local M=1; [ $U = x ] && return; M=2; G=$M; }; G=0; M=5; f; train $M $G",
    "f() { case $U in x) N=3; return;; esac; N=2; }; N=1; f; train $N",
    "if [ $U = x ]; then train a; exit; fi; train b",
    "if [ $U = x ]; then train a; exit; fi; train a",
    "f() { if [ $U = x ]; then train a; return; fi; train b; }; f; train c",
    # a value that reaches the first of fifteen variables after as many rounds
    f"{CHAIN}i=0; while true; do i=$((i + 1)); [ $U = x ] && [ $i = 5 ] && break; [ $i = 40 ] && break; {SHIFTS}done; "
    "train $a1",
]


@pytest.mark.parametrize("script", LEFT_ON_THE_WAY)
def test_what_nobody_says_to_leave_a_loop_decides_nothing_in_silence(script: str) -> None:
    ran = {value: run(script, U=value) for value in "xy"}
    assert {value: read(script, U=value) for value in "xy"} == ran
    with contextlib.suppress(UserError):
        calls = read(script)
        assert [len(call) for call in calls] == [len(call) for call in ran["x"]]
        for read_word, *ran_words in zip(*map(itertools.chain.from_iterable, (calls, *ran.values())), strict=True):
            assert {read_word} == set(ran_words) or read_word.startswith("$"), (read_word, ran_words)


PARSING = "while [[ $# -gt 0 ]]; do case $1 in --m) M=$2; shift 2;; -h) exit 0;; *) break;; esac; done; "


def test_a_loop_over_arguments_that_nobody_says_does_not_end_the_script() -> None:
    script = f"{PARSING}train n=8 m=$M"
    ((first, second),) = read(script)
    assert first == "n=8" and second.startswith("m=$M")
    assert read(script, **{"1": "--m", "2": "q"}) == run(script, "--m", "q") == [["n=8", "m=q"]]


def test_a_loop_that_only_writes_a_log_has_no_end() -> None:
    assert read("while true; do echo x >> log; sleep 5; done & train a") == [["a"]]
    assert read("for ((i = 1; i < U; i++)); do echo $i >> log; done; train a") == [["a"]]

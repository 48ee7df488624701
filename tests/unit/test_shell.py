"""A launch script is read as bash reads it: held against real bash, in which `train` prints its words."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system.errors import UserError
from tests.budgets import examples
from tests.unit.shell_scripts import ENTRY, read, run
from tests.user_errors import refused
from translate.script_commands import training_commands

pytestmark = pytest.mark.usefixtures("empty_folder")
SCRIPTS = [
    'declare -i I=3; I+=4; train $I; typeset -i J; J=3*4; train $J; declare -i K=2*3 L=K*2; train $K $L',
    'declare -u X=abc; X+=d; train $X; declare -l M=Foo; M=BAR; train $M; declare -i N=010; train $N',
    'f() { local -i n=$1*2; n+=1; train $n; }; f 3; n=1+1; train $n; g() { declare -gi G=3; }; g; G+=4; train $G',
    'declare -i X; declare +i X; X=2+2; train $X; Y=1+1; declare -i Y; train $Y; Y+=1; train $Y; unset Y; Y=1+1; '
    'train $Y',
    'declare -i A; A=(1 2); A[1]+=3; A+=3; train ${A[@]}; A=7; train ${A[@]}; '
    'declare -xi R=512; R+=512; train $R; bash -c "train \\$R"',
    'declare -i N; read N <<< 5; train $N; for N in 1 2; do N+=N; train $N; done; N="7 / 2"; train $N; N=-4; train $N',
    'N=4; A=(a.b=1 c.d=$((1024 * 8)))\ndeclare -a B=(\n  x=5e-7  # ends nothing: (a "quote\n  y=$((N * 2))\n)\n'
    'B+=(z="o/m")\n'
    'train "${A[@]}" "${B[@]}" n=${#A[@]} "s=${A[*]}" ${A[1]} ${B[@]:1:1}',
    "N=4\nN+=6; M=3; ((M+=2)); let K=M*2; train $N $M $K $((N > 3 ? 7 : 8)) $((2**10 % 7)) $((-7 / 2)) $((0x1f + 010))",
    'D=${D:-gpu}\nB=1024\nif [ "$D" = npu ]; then B=16; elif [[ $D == g* ]]; then B=$((B * 2)); fi\ntrain b=$B',
    'X=abc-1.5b.sh; train ${X%.sh} ${X##*-} ${X/b/_} ${X//b/_} ${X^^} ${X:0:3} ${X: -2} ${#X} "${X%%-*}" ${X#*-}',
    "S=\"it's 8\"; train \"${S@Q}\" ${S@U} ${S@u} ${S@L}; bash -c \"train ${S@Q}\"",
    """U="${U:-['a']}"; train "$U" "${V:-it's '}" "${W:-"p 'q'"}" ${X:-'r s'} "${Y:+'no'}${U:+'$U'}" "${A[@]:-'t'}" """,
    """train $'it\\'s' x\\ y "${U:-a\\}b}"; Z=a\\ b\\'; train "$Z" ${U:-c\\ d} $"e f"; A=($'g\\'h'); train "$A" """,
    """X=$(cat <<E\n  it's \\"a\\" \\$N "$(echo b) isn't\nE\n); train "$X"; Y=$(  # don't\necho a\\\\ ); train "$Y" """,
    'case "$1$T" in a|b*) R=1;; *.yaml) R=2;; *) R=3;; esac; train $R',
    'bash -c "train a=1 \'b=[1, 2]\'"; export Z=3; Y=2; bash -c \'train z=$Z\'; srun bash -c "train s=$Y"',
    'read -r -d \'\' C <<EOF\n  --x ${N:-3} \\\n  --y 2\nEOF\ntrain $C; cat > /dev/null <<\'E\'\n'
    'train not=this "\nE\ntrain z',
    'f() { local n=$1; shift; train n=$n "$@"; }\nf 3 "a b" c; for s in 1 2; do (cd / && train s=$((s + 1))); done',
    'for i in ; do train $i; done; for i in; do train $i; done; train "for i in ;"; train in',
    'for i in {1..3} a{x,y}; do train $i; done; for ((i = 0; i < 2; i++)); do train i=$i; done',
    "i=0; while [ $i -lt 3 ]; do i=$((i + 1)); [ $i = 2 ] && continue; train w=$i; done; until ((i < 1)); "
    "do ((i--)); done\n"
    "train $i",
    'train a \\\n  --b "two words" \'single $N\' $\'tab\\t\' e\\ f ""  "$E" g',
    'A=(); train "${A[@]}" x "${A[@]+"${A[@]}"}"; B=("a b" c); train "${B[@]+"${B[@]}"}" ${B[@]}; unset B; '
    'train ${B[@]-d}',
    'V=$(echo "a b"); W=$(basename /x/y.sh .sh)-$(seq 2 | cat); train "$V" $V $W `echo q`; '
    'train "$(printf "%s=%d" k 3)"',
    'train b 2>/dev/null c 2>&1 d; train --a 2>&1 --b=c \\\n  e | cat; 2>/dev/null train x y; '
    'train a <<< x b < /dev/null c',
    'time train a; time -p train b; f() { echo out; return 1; }; X=$(f) || train failed $X; Y=$(f) && train no; '
    'if Z=$(f); then train a; else train b $Z; fi; X=$(true) && train t; X=$(echo a; false) Y=2 || train $X $Y',
    'f() { local v=$(false) && train local; }; f; export W=$(false) && train exported; '
    'declare -p V 2>/dev/null || train undeclared; V=1; declare -p V >/dev/null && train declared',
    'X=; [ -n $X ] && train a; [ -z $X ] && train b; [ -n "$X" ] || train c; [ $X ] || train d; [ -f $X ] && train e; '
    '[ $X = a ] || train f; [ $X != a ] || train g; [ "$X" != a ] && train h; [ x$X = x ] && train i; '
    '[[ -n $X ]] || train j',
    'i=0; while [ $((i++)) -lt 3 ]; do train $i; done; [ -n $((i++)) ] && train $i; [ $((i++)) ] && train $i',
    "[ 08 -eq 8 ] && train a; [ abc -eq 0 ] || train b; [ '' -eq 0 ] || train c; [[ '' -eq 0 ]] && train d; "
    "[ -1 -lt 0 ] && train e; [ 1.5 -gt 1 ] || train f",
    'if echo abc | grep -q z; then train no; else train lacks; fi; echo abc | grep -q b && train has; '
    "X=$(printf 'a1\\nb2\\n' | grep b); train $X; echo ABC | grep -qi b && train i; "
    "train $(printf 'a\\nb\\nc\\n' | grep -v a)",
    'declare -A M=([lr]=1e-6 [n]=8); M[k]=v; train lr=${M[lr]} n=${M[n]} k=${M["k"]}',
    "declare -A M=([a]='1e-6' [\"b\"]=\"8 9\" [c]=x\\ y); M[d]='z'; train ${M[a]} \"${M[b]}\" \"${M[c]}\" ${M[d]}",
    "set -- p q r; train $# $2 \"$@\"; shift; train $1 ${@:2}",
    "N=x; x=5; train ${!N} $((N + 1))",
    'N=x; if ! false && true || exit 3; then train ok; fi; [[ a < b && ! -z $N ]] && train and',
    'X=0; X=1 Y="$N" train $X; train $X; train "${U:-d e}" ${U:-d e} ${U:+no} "${N:+yes}" ${U-} end',
    "train a 2>&1 | cat; train b || true; train last &\nwait",
    'a=$HOME/x/$N/y; b=\'{m.\\{*\\}:{},\'\\\n\'{l}\'; train "$a" "p=$b" x={1,2} "q={1,2}"',
    'IFS=, read -r x y <<< "1,2,3"; IFS=\';\' read -ra P <<< "p;q r;;s"; train $x $y "${P[@]}" ${#P[@]}',
    "s='a=1;b=2 c;;d'; IFS=';'; for p in $s; do train \"$p\"; done; unset IFS; train $s",
    "A=(a b c d); unset 'A[1]'; A+=(e f); train \"${A[@]}\" \"${!A[@]}\" ${A[2]} \"${A[@]: -2}\"",
    "set -- a b\nfor v\ndo train $v\ndone\nfor w\n  in 1 2; do train $w; done\n"
    "while read -r l; do train $l; done <<E\nx $N\ny\nE",
    'train $(printf "%02d-%5.2f|%-3s|" 7 1.5 x); printf -v Q "%s=%d" n 4; train $Q $(expr 7 / 2 + 3)',
    'r=$(( (1 + 2) * 3 )); s=$(((4 + 5) * 6)); train $r $s; T=(1 2); T[1]=9; T[2]=8; train "${T[@]}" ${!T[@]}',
]  # fmt: skip


LINES = Path(__file__).with_name("cases") / "shell_lines.txt"  # arrays, read, getopts, references, matches, printf


@pytest.mark.parametrize("script", LINES.read_text(encoding="utf-8").strip("\n").split("\n"))
def test_a_line_gives_its_training_the_words_that_bash_gives(script: str) -> None:
    assert read(script, **{"1": ""}) == run(script)


@pytest.mark.parametrize(
    "script",
    [
        "echo train a > f; echo train b > f; bash f",
        "echo train a > f; echo train b >> f; bash f; > f; echo train c >> f; bash f",
        "printf 'train %s\\n' x y > f; cat <<E > f\ntrain z\nE\ncat >> f <<E\ntrain w\nE\nbash f",
        "{ echo train a; echo train b; } > f; (echo train c) >> f; source ./f; true > f; bash f; train end",
        "for n in 1 2; do echo train $n > f; done; bash f; for n in 1 2; do echo train $n >> f; done; . ./f",
        "f() { echo train $1 >| g; }; f 1; f 2; bash g; echo train d 1> g; bash ./g; echo train e >> ./g; . ./g",
        "printf '#!/bin/bash\\ntrain \"$@\"\\n' > ./g; chmod +x g; ./g 'a b' c",
        "echo train w &> h; echo train v &>> h; bash h",
        "echo 'a 1' > f; echo 'b 2' >> f; while read -r k v; do train $k $v; done < f; { read -r k; train $k; } < f",
        "cat > f <<< $'a 1\\nb 2'; while read -r k v; do train $k $v; done < f",
    ],
)
def test_a_script_s_own_files_hold_what_was_written_last(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read(script) == run(script)


@pytest.mark.parametrize("word", ['"0,1 2"', "ab", '"$X"', "$X", "'a b'", "$((1 << 3))", "x\\ y", "~/z", "'a'\"b c\"d"])
@pytest.mark.parametrize("space", ["", " ", " \\\n "])
def test_a_here_string_ends_where_its_word_ends(word: str, space: str) -> None:
    lines = [f'<<<{space}{word}{after}\ntrain "$a" "$b"\n' for after in ("", " || true", "; train c", " # it's")]
    script = f'X="q r"; HOME=/h\nread a b {"read a b ".join(lines)}b=$(cat <<<{space}{word}\necho d)\ntrain "$b"'
    assert read(script) == run(script)


@pytest.mark.parametrize(
    "line",
    ["cat <<E | bash", "bash <<E", "bash -s <<E && train z", "cat - <<'E' | cat | bash -s -- a 'b c'",
     "bash -s a b <<E", "cat <<E > f && bash f a", "if cat <<E | bash; then train z; fi",
     "cat <<E | while read -r l; do train \"$l\"; done", "(cat <<E | bash -x -o pipefail) 2> /dev/null",
     "cat <<-E | bash | cat; cat <<F | bash\n\ttrain f\n\tE\ntrain g\nF\ncat <<E | bash",
     "{ cat <<E; echo train z; } | bash", "! cat <<E | bash || train z"],
)  # fmt: skip
def test_a_heredoc_is_the_input_of_its_command_wherever_it_is_written(line: str) -> None:
    script = f'export X="q r"\n{line}\ntrain "$X" \\$# \\$1 "it\'s"\nE\ntrain end'
    assert read(script, **{"1": ""}) == run(script)


PARTS = {
    "E": "E",
    "-1": "-1",
    "@": "@",
    "$X": "$X",
    "'a b'": "a b",
    '"c"': "c",
    "'\"'": '"',
    "\\d": "d",
    "{e}": "{e}",
    "é": "é",
}


@given(st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=4))
@examples("costly")
def test_any_word_ends_a_heredoc(parts: list[str]) -> None:
    end = "".join(PARTS[part] for part in parts)
    script = f"export X=x\nbash << {''.join(parts)}\ntrain a$X \\$X\n{end}\ntrain end"
    assert read(script) == run(script)


@pytest.mark.parametrize(
    "script",
    ["n=2; ((x = 1 << n))\ntrain $x", "((x = 1<<2)); train $x\ncat > /dev/null <<E\nhi\nE\ntrain y",
     "((x = (1 << 2) << (1 << 1),\ny = x << 1)) # it's\ntrain $x $y\n( (train a) )\ntrain b",
     "for ((i = 1; i < (1 << 3); i <<= 1)); do train $i\ndone\ntrain end", "X=$( ((x=1<<2)); echo $x )\ntrain $X"],
)  # fmt: skip
def test_a_shift_in_a_sum_begins_no_heredoc(script: str) -> None:
    assert read(script) == run(script)


@pytest.mark.parametrize(
    "line",
    ["A=1 B=$A", "A=1 A=$A$A B=$A", "A=2 G=8 B=$((A*G))", 'A="1 2" B="$A 3"', "A[0]=1 A[1]=${A[0]}2 B=${A[1]}",
     "A=(\nx=1 y=2\nz=3 w=4\n) B=${A[1]}", "A=1 B=$A > f", "A=1 \\\n B=`echo $A`", "A=0; A=1 B=$A"],
)  # fmt: skip
def test_assignments_of_a_line_read_each_other_and_end_with_it(line: str) -> None:
    behind = ["; {}", " && {}", " # c\n{}", "\nD=3 E=$B {}", "\n[[ $B ]] && {}", "\n\n((x=1))\n{}"]
    scripts = [line + one.format('train "$A" "$B"\nunset A B\n') for one in behind]
    within = f'if {line}\nthen {line}\nelse train no\nfi\nexport D=$B\nfor v in 1; do {line}\ndone; train "$D" "$B"'
    assert read("".join([*scripts, within])) == run("".join([*scripts, within]))


PIECES = ["a", "?b", "[ab]", "*a", "[!a]", "@(a|ab)", "+(a|b)", "?(b)c", "*(a|bc)", "!(a)", "!(a|*c)b", "@(b|!(c))"]
USED = """\
[[ $v == PATTERN ]] && train y
case $v in PATTERN) train y;; esac
p='PATTERN'; train "${v#$p}" "${v##$p}" "${v%$p}" "${v%%$p}"
train "${v/PATTERN/X}" "${v//PATTERN/X}" "${v/#PATTERN/X}" "${v%%PATTERN}"
"""


@pytest.mark.parametrize("piece", PIECES)
def test_a_pattern_matches_what_it_matches_in_bash(piece: str) -> None:
    lines = "".join(USED.replace("PATTERN", piece + other) for other in ["", *PIECES])
    script = "shopt -s extglob\n" + "".join(f"v={value}\n{lines}" for value in ("aab", "abc", "b"))
    assert read(script) == run(script)


GROUPS = """\
case 'x yc' in +(a|b)|"x y"@("q r"|c)) train 1;; esac; case d in !(a|@(b|d))) train 2;; !(b)) train 3;; esac
A=(+(a|b c) @(q)); train x?(b)y '@(a)' "${A[@]}" ${#A[@]}; for i in @(a|b) z; do train $i; done
p='@(7|8)'; v=7b; train ${v#$p}; (shopt -u extglob; train ${v#$p}); bash -c 'v=7b; p="@(7)"; train ${v#$p}'
f() { shopt -u extglob; shopt -q extglob || train off; }; f; v=@; train ${v/@(7)/x}; shopt -s extglob; train ${v%@(@)}x
"""


@pytest.mark.parametrize("line", GROUPS.strip().split("\n"))
def test_groups_of_patterns_are_read_where_extglob_is_on(line: str) -> None:
    script = f"shopt -s extglob\n{line}"
    assert read(script) == run(script)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("case 7 in @(7|8)) train x;; esac", "not-bash"),
        ("train x@(a|b)", "not-bash"),
        ("case $U in @(7|8)) train x;; esac; shopt -s extglob", "not-bash"),
        ("[[ ab == *!(a) ]] && train x", "odd-pattern"),
        ("v=abc; train ${v/b/[&]}", "unknown-output"),
        ("case a in $U) train a;; *) train b;; esac", "branch-not-decided"),
        ("[ $U = a ] && shopt -s extglob; p='@(7)'; v=7b; train ${v#$p}", "unknown-settings"),
        ("v=abc; train ${v%$U}", "unknown-settings"),
        ("v=abc; train ${v/$U/x}", "unknown-settings"),
    ],
)
def test_a_pattern_that_is_not_decided_is_no_guess(script: str, code: str) -> None:
    names = {"variables": ["U"]} if code in ("unknown-settings", "branch-not-decided") else {}
    with refused(code, **names):
        read(script)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_gives_its_training_the_words_that_bash_gives(script: str) -> None:
    outside = {"HOME": "/home/me", "N": "x", "E": "", "T": "b.yaml"}
    assert read(script, **outside, **{"1": ""}) == run(script, **outside)


WITH_ARGUMENTS = [
    ('B=1; while [[ $# -gt 0 ]]; do case "$1" in --n) B=$2; shift 2;; --x=*) X=${1#*=}; shift;; --) shift; break;; '
     '*) Y+=("$1"); shift;; esac; done\ntrain b=$B x=${X:-none} m=$(expr $B \\* 2 + 1) "${Y[@]+"${Y[@]}"}" $# "$@"',
     ["--n", "4", "--x=q", "p q", "--", "z"]),
    ('while getopts "n:vm:" o; do case $o in n) N=$OPTARG;; m) M=$OPTARG;; v) V=1;; esac; done; '
     'shift $((OPTIND - 1)); train n=$N m=${M:-0} v=${V:-0} "$@"', ["-n", "3", "-vm5", "rest", "-n"]),
    ('train "${@: -1}" "${@:2}" "${*:1:2}" $# "$*" ${1:-d} "${4-e}"; IFS=,; train "$*"', ["a", "b c", "d"]),
    ("case ${1,,} in qwen*) M=q;;& *7b) M+=7;& none) M+=n;; *) M=z;; esac; train m=$M", ["QWEN-7B"]),
    ("[[ $1 =~ ^([0-9]+)b(x)?$ ]] && S=${BASH_REMATCH[1]}; train s=${S:-none} $#", ["7b"]),
    ('f() { local -n out=$1; out+=("k=$2"); }; A=(); f A 3; f A 4; out=5; train "${A[@]}" $out "$1"', ["z"]),
    ("while [ $# -gt 0 ]; do train $1; shift; done; train none", []),
]  # fmt: skip


@pytest.mark.parametrize(("script", "arguments"), WITH_ARGUMENTS)
def test_a_script_with_arguments_is_read_as_bash_runs_it(script: str, arguments: list[str]) -> None:
    stated = {str(number): word for number, word in enumerate(arguments, 1)} or {"1": ""}
    assert read(script, **stated) == run(script, *arguments)


WORDS = st.sampled_from(["1", "a b", "x=2", "", "$A", '"$A"', "'$A'", "${B:-d}", '"${C[@]}"', "${C[1]}", "$((N * 2))",
                         "${A%b}", "e{1,2}", '"p $B"', "${#A}", "$(echo $N)", "\\$A", "a\\ b", "$N$B",
                         '"${C[*]:1}"', '"x${C[@]#1}y"', "$[N + 1]", "\"${V:-['x y']}\"",
                         "${V:-'p q'}", "$'r\\'s'", "$(printf %s_%d $N 3)"])  # fmt: skip


LOOPS = [
    "{i}=0\nwhile [ ${i} -lt 3 ]; do\n{i}=$(({i} + 1))\n{leave}\n{body}\ndone",
    "{i}=0\nuntil (({i} >= 2)); do\n(({i}++))\n{leave}\n{body}\ndone",
    "for (({i} = 0; {i} < 3; {i}++)); do\n{leave}\n{body}\ndone",
    "{i}=0\nwhile read -r A B; do\n(({i}++))\n{leave}\n{body}\ndone <<< $'p q r\\ns\\n\\nt'",
    "{i}=0\nwhile read -r A; do\n(({i}++))\n{leave}\n{body}\ndone < <(printf '%s\\n' {word} z)",
    "f{i}() {{\nfor {i}; do\n{leave}\n{body}\ndone\n}}\nf{i} 1 2 {word}",
]


@st.composite
def statements(draw: st.DrawFn, depth: int = 2) -> str:
    """Statements; each loop has a counter of its own, or a list, so that it ends."""
    kind = draw(
        st.sampled_from(
            ["assign", "array", "add", "train", "train", *["if", "case", "for", "or", "loop", "loop"] * (depth > 0)]
        )
    )
    one, other = draw(WORDS), draw(WORDS)
    quoted = '"${B:-d}$N"'
    if kind == "assign":
        return (
            f"{draw(st.sampled_from('AB'))}={one}"
            if "@" not in one and "{1" not in one and not re.search(r"^[^$]* ", one)
            else f"A={quoted}"
        )
    if kind == "array":
        grows = "C" not in one + other  # what is added to itself in a loop in a loop fills any memory
        return f"C{draw(st.sampled_from(['=', '+=' if grows else '=']))}({one} {other})"
    if kind == "add":
        return draw(st.sampled_from(["N=$((N + 3))", "((N += 2))", "let N=N*2", "N=$((N % 5 + 1))"]))
    if kind == "train":
        return f"train {one} --k {other}"
    inner, rest = draw(statements(depth - 1)), draw(statements(depth - 1))
    if kind == "if":
        test = draw(st.sampled_from([f'[ "$A" = {quoted} ]', "[[ -n $A && $N -gt 4 ]]", "(( N % 2 ))", '[ -z "$B" ]']))
        return f"if {test}; then\n{inner}\nelse\n{rest}\nfi"
    if kind == "case":
        return f'case "$A" in\n*b) {inner} ;;\n[0-9]*|x) {rest} ;;\n*) : ;;\nesac'
    if kind == "for":
        return f"for v in {one} {other}; do\n{inner}\nA=$v\ndone"
    if kind == "loop":
        i, leave = f"i{depth}", draw(st.sampled_from(["", "break", "continue", "break 2", "continue 2", "return"]))
        leave = leave and f"[ ${i} = {draw(st.sampled_from('12'))} ] && {leave}"
        return draw(st.sampled_from(LOOPS)).format(i=i, leave=leave, word=one, body=inner)
    return f"[ $N -gt 3 ] && {{ {inner}; }} || {{ {rest}; }}"


@given(st.lists(statements(), min_size=1, max_size=6))
@examples("costly")
def test_any_script_is_read_as_bash_runs_it(lines: list[str]) -> None:
    script = "\n".join(["A='a b'; B=; C=(1 'two words' 3); N=4", *lines, "train end"])
    assert read(script) == run(script), script


DECIDING = re.compile(r'\[ \$i\d = [12] \]|\[ -z "\$B" \]|\[ \$N -gt 3 \]')


@given(st.lists(statements(), min_size=1, max_size=6))
@examples("costly")
def test_what_nobody_says_decides_nothing_in_silence_in_any_script(lines: list[str]) -> None:
    undecided = [DECIDING.sub("[ $U = x ]", line).replace("train ", ": ") for line in lines]
    script = "\n".join(["A='a b'; B=; C=(1 'two words' 3); N=4", *undecided, 'train "$A" "$B" $N "${C[*]}"'])
    with contextlib.suppress(UserError):
        (settings,) = read(script)
        for value in "xy":
            for ran in run(script, U=value):
                assert all("$" in mine or mine == theirs for mine, theirs in zip(settings, ran, strict=True)), script


ENDS = """\
trap 'bash -c "train a"' EXIT; train b; X=$(trap 'echo t' EXIT; echo a); train $X; (trap 'train s' 0; train d); exit 3
trap -- 'N=3; train $N' exit TERM; N=4; bash -c 'trap "train t" EXIT; train b; exec bash -c "train c"; train d'
f() { train f$1; }; trap 'f 1' EXIT; f() { train g$1; }; f 2; f 3 & wait; trap 'train t' INT ERR USR1
N=1 & train ${N-0}
trap 'train t' EXIT; trap - EXIT; train a; trap 'train u' EXIT; trap EXIT; (exec bash -c 'train in'; train no); train c
exec 2> /dev/null; exec {fd}> f; exec 3<&-; { train a; exit; } & wait; trap 'train t' EXIT; exec bash -c 'train e'
f() { exec bash -c 'train in'; }; exec; exec bash -c 'train a' & wait; if [ $# = 0 ]; then f; fi; train after
f() { train "in $1"; }; time f a; time -p f b; command f c; command -v train > /dev/null; exec false || train d
bash() { command bash "$@"; }; bash -c 'train a'
"""


@pytest.mark.parametrize("script", ENDS.strip().split("\n"))
def test_a_shell_ends_as_in_bash_with_its_trap_or_its_last_program(script: str) -> None:
    assert read(script, **{"1": ""}) == run(script)


def test_a_hundred_thousand_lines_are_read_in_linear_time() -> None:
    """Minutes if it were quadratic."""
    assert read("train a \\\n" + "\\\n" * 100_000 + "b") == [["a", "b"]]
    assert read("# a comment\n" * 30_000 + "train a" + " \\\n" * 30_000) == [["a"]]


def test_a_loop_without_an_end_ends_the_reading() -> None:
    assert read("train a; while true; do sleep 1; done; train b") == [["a"]]
    assert read("while true; do if curl x; then break; fi; done; train b") == [["b"]]


def test_scripts_that_a_script_writes_or_calls_are_read(tmp_path: Path) -> None:
    (tmp_path / "inner.sh").write_text("train from=$1 x=$X\n")
    script = "export X=1\nbash inner.sh file\ncat > job.sh <<EOF\ntrain job=$X\nEOF\nsbatch job.sh"
    commands = [one.arguments for one in training_commands(script, ENTRY, {}, tmp_path)]
    assert commands == [["from=file", "x=1"], ["job=1"]]

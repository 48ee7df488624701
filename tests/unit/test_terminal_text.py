"""What foreign tables and files hold never reaches a terminal or a Markdown page as code."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.pages import table_texts
from contracts import tables
from contracts.run_file import ROOT
from system.text_safety import VisibleStream, markdown_code, markdown_text, one_line
from tests.forked_command import run_module
from tests.unit.report.report_runs import graded_row

ESCAPES = "\x1b]0;taken\x07\x1b[2J\x1b[31m\x9b1m\r\x08\u202e\u2028"
MARKUP = "<img src=x onerror=alert(1)>[a](javascript:alert(1))![b](//c)`*_|"
EVIL = f"{ESCAPES}{MARKUP}"
LINK = re.compile(r"(?<!\\)\]\(")


def run(*command: object, cwd: Path = ROOT) -> tuple[int, str]:
    """Exit status, and all that a command printed; its bytes are those that a terminal would get."""
    path = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = run_module(str(command[0]), *command[1:], cwd=cwd, environment=path)
    return done.returncode, done.stdout + done.stderr


def harmless(text: str) -> bool:
    return all(character in "\n\t" or character.isprintable() for character in text)


def save(path: Path, *more: dict[str, object]) -> Path:
    common = dict.fromkeys(tables.GRADED.names)
    rows = [
        common | graded_row(0, f"p{EVIL}{i}", 0, "correct", benchmark="math500") | row for i, row in enumerate(more)
    ]
    tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
    return path


@pytest.mark.slow
def test_a_foreign_table_in_the_gate(tmp_path: Path) -> None:
    one = save(
        tmp_path / "one" / "math500.parquet", *[{"answer": EVIL, "gold": EVIL, "grader": EVIL, "protocol": EVIL}] * 4
    )
    two = save(tmp_path / "two" / "math500.parquet", *[{"verdict": "wrong", "protocol": "other" + EVIL}] * 3)
    outputs = []
    for command in (
        (
            "--checkpoint",
            one.parent,
            "--baseline",
            two.parent,
            "--output",
            tmp_path / "out",
            f"--checkpoint-name={EVIL}",
        ),
        ("--checkpoint", one.parent, "--baseline", one.parent, f"--baseline-name={EVIL}", "--format", "markdown"),
        ("--checkpoint", one.parent, "--baseline", one.parent, f"--baseline-name={EVIL}", "--format", "json"),
        ("--checkpoint", one.parent, "--baseline", f"nowhere{EVIL}"),
        ("--checkpoint", one.parent, "--baseline", one.parent, "--benchmark", EVIL),
    ):
        _, output = run("analysis.compare_checkpoints", "compare", *command)
        outputs.append(output)
        assert output and harmless(output), repr(output)
    assert all("alert(1)" in output for output in outputs)
    (tmp_path / "out" / "comparison.txt").write_text(EVIL)
    assert harmless(run("analysis.compare_checkpoints", "show", tmp_path / "out" / "comparison.json")[1])
    page = (tmp_path / "out" / "comparison.md").read_text()
    assert (
        "<" not in page.replace("<0.0001", "") and "&lt;img src=x" in page and not LINK.search(page) and harmless(page)
    )


@pytest.mark.slow
def test_foreign_tables_and_names_in_other_commands(tmp_path: Path) -> None:
    graded = save(tmp_path / "graded" / "step-0" / "math500.parquet", {"answer": EVIL, "gold": EVIL}, {"answer": "1"})
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(EVIL.encode())
    lines = tmp_path / "lines.jsonl"
    lines.write_text(EVIL)
    commands = [
        ("eval.score", "--graded", graded.parent.parent, "--output", tmp_path / "scores.parquet"),
        ("eval.score", "--graded", tmp_path / f"none{EVIL.replace('/', '')}", "--output", tmp_path / "scores.parquet"),
        ("eval.grader_agreement", "--samples", damaged, "--output", tmp_path / "agreement.md"),
        ("studies.grader_validation.human_labels", "--input", lines, "--output", tmp_path / "labels.md"),
        ("eval.importers", "--format", "jsonl", "--input", lines, "--benchmark", EVIL, "--run", "a", "--output", "x"),
        (
            "eval.importers",
            "--format",
            "jsonl",
            "--input",
            lines,
            "--benchmark",
            "math500",
            "--run",
            "a",
            "--output",
            "x",
        ),
        ("analysis.report", "--results", tmp_path, "--run", EVIL, "--output", tmp_path / "report"),
        ("analysis.provenance_diff", tmp_path / f"a{ESCAPES}", tmp_path),
        ("tasks.load_problems", EVIL, "--output", tmp_path / "x.parquet"),
        ("cluster.capacity", "--run", f"{EVIL}=0", "--scale", "demo", "--results", "r", "--output", "x"),
    ]
    for command in commands:
        _, output = run(*command)
        assert output and harmless(output) and "Traceback" not in output, (command[0], output)


def test_a_stream_shows_codes_and_keeps_the_return_of_a_progress_line() -> None:
    under = io.StringIO()
    stream = VisibleStream(under)
    assert stream.write("\r12 %") == 5
    stream.writelines([" a\x1b[2Jb\r", "\n"])
    print("c\x07", file=stream, flush=True)
    assert under.getvalue() == "\r12 % a␛[2Jb␍\nc␇\n"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("<b>&", "&lt;b&gt;&amp;"), ("a_b minerva_math", "a_b minerva_math"), ("_a_ *b*", r"\_a\_ \*b\*"),
        ("[x](y)", r"[x\](y)"), ("a|b`c`", r"a\|b\`c\`"), ("a\nb\x1b", "a b␛"), (r"\frac~$", r"\\frac\~\$"),
    ],
)  # fmt: skip
def test_markdown(text: str, printed: str) -> None:
    assert markdown_text(text) == printed


def test_markdown_of_code_and_names_on_one_line() -> None:
    assert markdown_code("a|b `c`\n\x1b") == "`a b c ␛`" and markdown_code("") == ""
    assert one_line("a\n\tb") == "a␊␉b"


def test_markdown_tables_have_no_markup_of_their_cells() -> None:
    import pandas as pd

    text = table_texts.markdown(pd.DataFrame({EVIL: [EVIL]}), bold=(0,))
    assert "<" not in text and not LINK.search(text) and text.count("\n") == 3 and harmless(text)

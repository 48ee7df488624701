"""The report's page in a real browser: tables sorted and copied, links to a run and a figure, widths."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import subprocess
from pathlib import Path

import pytest
from synthetic_results import NAMES, RUNS, write_run
from test_sample_browser import edited

from analysis.load_results import load_results
from analysis.pages import page, table_texts
from analysis.report.build import report
from system.text_safety import markdown_text
from tests import needs
from tests.hostile_text import TEXTS
from tests.waiting import WORKFLOW_LIMIT

pytestmark = [
    pytest.mark.slow,
    needs.chromium,
]
READY = 'document.body.dataset.tables = "ready";'
CELLS = [
    "1,200",
    "-3",
    "−7.5 [−9.0, −6.0]",
    "",
    "–",
    "about 40",
    "=1+2",
    'a "quoted", text',
    *(text[:2000] for text in TEXTS.values()),
]
TABLE = """<!doctype html><html lang="en"><head><meta charset="utf-8">{{ policy([], [script], loads=False) }}</head>
<body><div><table><thead><tr><th>value</th></tr></thead>
<tbody>{% for cell in cells %}<tr><td>{{ cell }}</td></tr>{% endfor %}</tbody></table></div>
<script>{{ script }}</script></body></html>"""


def answer(file: Path, code: str, profile: Path, *more: str, fragment: str = "") -> object:
    """What JavaScript that runs at the end of a page's own script gives for `answer`."""
    page_with_question = file.with_name(f"asked-{file.name}")
    code = f"(async () => {{ {code}; document.body.dataset.answer = JSON.stringify(answer); }})();"
    page_with_question.write_text(edited(file, READY, READY + code), encoding="utf-8")
    command = [
        needs.CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        f"--user-data-dir={profile}", "--virtual-time-budget=2000", "--enable-logging=stderr", *more, "--dump-dom",
        f"file://{page_with_question}{fragment}",
    ]  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=WORKFLOW_LIMIT, check=False
    )
    match = re.search(r'data-answer="([^"]*)"', done.stdout)
    assert match, [line for line in done.stderr.split("\n") if "CONSOLE" in line]
    return json.loads(html.unescape(match[1]))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.html"
    text = page.environment().from_string(TABLE).render(cells=CELLS, script=page.script("tables.js"))
    file.write_text(text, encoding="utf-8", errors="backslashreplace")
    return file


@pytest.fixture(scope="module")
def report_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two runs."""
    folder = tmp_path_factory.mktemp("page")
    for name, ceiling in RUNS.items():
        write_run(folder / "demo", name, ceiling, steps=(0, 20), problems=6, repeats=2)
    return report([load_results(folder / "demo", name) for name in NAMES], folder / "report", "Two runs", "demo")


def test_copies_are_what_the_files_of_the_table_hold(table: Path, tmp_path: Path) -> None:
    code = "const rows = grid(document.querySelector('table'));"
    code += "const answer = [rows, FORMS.CSV(rows), FORMS.LaTeX(rows), FORMS.Markdown(rows)]"
    rows, as_csv, latex, markdown = answer(table, code, tmp_path / "profile")  # type: ignore[misc]
    cells = [row[0] for row in rows]
    assert len(cells) == len(CELLS) + 1 and cells[1:4] == CELLS[:3]
    read = [row[0] if row else "" for row in csv.reader(io.StringIO(as_csv))]
    assert read == [str(table_texts.csv_value(cell)) for cell in cells]
    body = [line.removesuffix(" \\\\") for line in latex.split("\n") if line.endswith("\\\\")]
    assert body == [table_texts.latex_text(cell) for cell in cells]
    lines = [line.removeprefix("| ").removesuffix(" |") for line in markdown.rstrip("\n").split("\n")]
    assert [lines[0], *lines[2:]] == [markdown_text(cell) for cell in cells] and lines[1] == "---"


def test_a_click_on_a_heading_sorts_up_then_down_then_as_it_was(table: Path, tmp_path: Path) -> None:
    code = "const answer = [], head = document.querySelector('thead button');"
    code += "for (const _ of '123') { head.click(); answer.push([head.parentElement.ariaSort,"
    code += " grid(document.querySelector('table')).slice(1).map((row) => row[0])]); }"
    up, down, before = answer(table, code, tmp_path / "profile")  # type: ignore[misc]
    assert [up[0], down[0], before[0]] == ["ascending", "descending", "none"]
    numbers = ["−7.5 [−9.0, −6.0]", "-3", "=1+2", "1,200"]
    assert [cell for cell in up[1] if cell in numbers] == numbers
    assert [cell for cell in down[1] if cell in numbers] == numbers[::-1]
    assert up[1][-1] in ("", "–") and down[1][-1] in ("", "–")
    assert before[1][:4] == CELLS[:4] and sorted(up[1]) == sorted(before[1])


def test_every_table_of_the_report_can_be_sorted_and_copied(report_page: Path, tmp_path: Path) -> None:
    code = "const all = [...document.querySelectorAll('table')].filter((t) => t.tBodies[0].rows.length);"
    code += "const answer = [all.length, all.filter((t) => t.querySelectorAll('thead button').length === "
    code += "t.tHead.rows[0].cells.length && t.parentElement.nextElementSibling.matches('.tools')).length,"
    code += "[...document.querySelectorAll('button')].filter((b) => !b.textContent && !b.ariaLabel).length]"
    tables, usable, nameless = answer(report_page, code, tmp_path / "profile")  # type: ignore[misc]
    assert tables == usable > 10 and nameless == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_wider_than_the_window(report_page: Path, tmp_path: Path, dark: bool) -> None:
    # In frames, because a window of Chromium has at least 500 pixels. A frame runs the page's script, this one with it.
    code = "if (self !== top) return; const answer = [], text = document.documentElement.outerHTML;"
    code += "for (const width of [390, 1280, 2560]) { const shown = document.createElement('iframe');"
    code += "shown.srcdoc = text; shown.style = `width: ${width}px; height: 900px; border: 0`;"
    code += "document.body.replaceChildren(shown); await new Promise((go) => { shown.onload = go; });"
    code += "const inner = shown.contentDocument; answer.push([width, inner.documentElement.scrollWidth,"
    code += "shown.contentWindow.getComputedStyle(inner.body).backgroundColor,"
    code += "inner.querySelector('.summary').getBoundingClientRect().width]); }"
    file = report_page.with_name("without-policy.html")
    file.write_text(re.sub(r"<meta http-equiv[^>]*>", "", report_page.read_text(encoding="utf-8")), encoding="utf-8")
    more = ["--blink-settings=preferredColorScheme=0"] if dark else []
    measured = answer(file, code, tmp_path / "profile", *more)
    for width, needed, paper, text in measured:  # type: ignore[attr-defined]
        assert needed <= width and text > 300
        assert paper == ("rgb(18, 18, 18)" if dark else "rgb(255, 255, 255)")
    assert len(measured) == 3  # type: ignore[arg-type]


def test_links_lead_to_a_run_and_a_figure(report_page: Path, tmp_path: Path) -> None:
    code = "await new Promise((go) => setTimeout(go, 300));"
    code += "const answer = document.querySelector(':target')?.className || document.querySelector(':target')?.tagName"
    for fragment, what in ((f"#run-{NAMES[1]}", "headline"), ("#figure-reward", "FIGURE")):
        assert answer(report_page, code, tmp_path / "profile", fragment=fragment) == what


def test_the_page_without_a_mouse(report_page: Path, tmp_path: Path) -> None:
    """Each control is reached with the keyboard, and each figure, table and part of the page has a name."""
    code = "const answer = [...document.querySelectorAll('svg[role=img], [role=region], section, nav')]"
    code += ".filter((e) => !(e.ariaLabel || document.getElementById(e.getAttribute('aria-labelledby')))).length"
    code += "+ [...document.querySelectorAll('a, button, summary')].filter((e) => e.tabIndex < 0).length"
    assert answer(report_page, code, tmp_path / "profile") == 0

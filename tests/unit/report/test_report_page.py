"""The page: whole, self-contained, and indifferent to what completions hold."""

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from synthetic_results import NAMES, RUNS, write_run

from analysis.load_results import load_results
from analysis.pages import page
from analysis.report.build import report
from analysis.report.sections import completions as completions_section
from analysis.results import RunResults
from analysis.statistics import published_tables
from contracts import tables
from eval.score import score_run
from system.text_safety import clipped, visible
from tests.hostile_text import TEXTS, encodable

BESIDE = ("samples/index.html", "tables/", "figures/", "claims.html#", "fidelity.html#", "settings.html#", "index.html")
HOSTILE = [encodable(text) for text in TEXTS.values()]


class Outline(HTMLParser):
    """The elements and attribute names of a page in order, and the texts inside chosen elements."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs if name != "open")))
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment in the page: {data[:80]}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"a processing instruction in the page: {data[:80]}")


PAIR = page.environment().from_string("{% from 'parts.html.j2' import sample_pair %}{{ sample_pair(pair) }}")


def pair_html(completion: str, answer: str | None, problem: str, prompt: str) -> str:
    side = completions_section.ShownCompletion("base model", completion, "wrong", answer, "stop", 10)
    pair = completions_section.SamplePair("sums", problem, prompt, answer, "kind", "meaning", 1, 2, side, side)
    return PAIR.render(pair=pair)


PLAIN = Outline(pair_html("plain", "2", "problem", "prompt")).elements
EMPTY = Outline(pair_html("", "2", "problem", "prompt")).elements
anything = st.text(st.characters(exclude_categories=[]))  # lone surrogates too


@given(anything, anything, anything)
@example("<script>", "</code><script>", "\ud800")
@example("\r\n\r", '" onload="', "</pre>")
def test_nothing_in_a_sample_changes_the_page(completion: str, answer: str, prompt: str) -> None:
    html = pair_html(completion, answer, "problem", prompt)
    outline = Outline(html)
    assert outline.elements == (PLAIN if completion else EMPTY)
    html.encode("utf-8")
    text = "".join(outline.text)
    assert visible(clipped(completion, 3000)) in text
    assert visible(clipped(answer, 300)) in text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_samples_everywhere_in_a_sample(text: str) -> None:
    html = pair_html(text, text, text, text)
    assert Outline(html).elements == (PLAIN if text else EMPTY)
    assert len(html) < 60_000
    for character in html:
        assert character in "\n\t" or character.isprintable() or character.isspace()


@given(anything)
def test_visible_text_is_printable_and_loses_nothing_plain(text: str) -> None:
    safe = visible(text)
    safe.encode("utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", safe)
    assert visible(safe) == safe
    plain = [c for c in text if " " <= c <= "~"]
    assert [c for c in safe if c in set(plain)][: len(plain)] == plain or "⟨U+" in safe


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\rb", "a␍b"),
        ("\x1b[1m", "␛[1m"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\ud83d", "⟨U+D83D⟩"),
        ("né 数\n\t", "né 数\n\t"),
    ],
)
def test_visible(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_clipping_keeps_beginning_and_end_and_says_how_much_is_gone() -> None:
    assert clipped("abcdef", 6) == "abcdef"
    assert clipped("a" * 50 + "b" * 50, 10) == "aaaaa\n[… 90 characters left out …]\nbbbbb"


@pytest.fixture
def hostile_results(results: Path) -> Path:
    """Every text column of every graded sample holds something hostile; verdicts stay."""
    for name in NAMES:
        folder = results / "runs" / name
        for path in sorted(folder.glob("graded/*/*.parquet")):
            rows = tables.read(path, tables.GRADED).to_pylist()
            for i, row in enumerate(rows):
                text = HOSTILE[i % len(HOSTILE)]
                row |= {"completion": text, "prompt": text, "gold": text[:1000], "answer": text[:1000]}
                row |= {
                    "problem_id": f"{row['problem_id']} <script>alert({row['problem_id']})</script>",
                    "grader": text[:50],
                }
            tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
            path.with_name(f"{path.name}.provenance.json").write_text(
                json.dumps({"<b>key": ["</dd><script>", {"x": 1}]})
            )
        tables.write(score_run(folder / "graded"), tables.SCORE, folder / "scores.parquet")
    return results


def check_page(html: str) -> None:
    """One file that runs only its own script for tables and asks the network for nothing."""
    outline = Outline(html.removeprefix("<!doctype html>"))
    names = {tag for tag, _ in outline.elements}
    assert re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL) == [page.script("tables.js")]
    assert not names & {"iframe", "object", "embed", "link", "img", "base", "form", "foreignobject"}
    assert not [name for _, name, _ in outline.attributes if name.startswith("on")]
    for tag, name, value in outline.attributes:
        if name in {"src", "href", "xlink:href", "action", "data", "srcset"}:
            assert value.startswith(("#", "data:image/png;base64,", *BESIDE)), (tag, name, value)
    style = "".join(re.findall(r"<style.*?</style>", html, re.DOTALL))
    assert "@import" not in style and not re.search(r"url\((?!#)", html)
    ids = [value for _, name, value in outline.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    used = {v[1:] for _, name, v in outline.attributes if name in ("href", "xlink:href") and v.startswith("#")}
    links = [v for _, name, v in outline.attributes if name == "href"]
    assert len([v for v in links if v.startswith("#run-")]) == html.count('class="headline"')
    assert used | set(re.findall(r"url\(#([^)]+)\)", html)) <= set(ids)
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(svg.replace("role=img", 'role="img"'))


@pytest.mark.slow
@pytest.mark.long
def test_report_of_hostile_results(hostile_results: Path, tmp_path: Path) -> None:
    runs = [load_results(hostile_results, name) for name in NAMES]
    html = report(runs, tmp_path / "report", '<script>alert("title")</script>', "demo").read_text(encoding="utf-8")
    check_page(html)
    for own in ("claims", "settings"):
        check_page((tmp_path / "report" / f"{own}.html").read_text(encoding="utf-8"))
    assert "verdicts come from different graders" in html


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[RunResults], Path, Path]:
    """Two runs, an overlap with their training data, and the folder with their report."""
    folder = tmp_path_factory.mktemp("two")
    for name, ceiling in RUNS.items():
        write_run(folder / "demo", name, ceiling, steps=(0, 20, 40), problems=6, repeats=2)
    runs, overlap = [load_results(folder / "demo", name) for name in NAMES], folder / "overlap.csv"
    header = "train,benchmark,problems,exact,exact_share,gram13_half,gram13_half_share,gram8_half,gram8_half_share"
    overlap.write_text(f"{header}\n<b>train</b>,math500,500,3,0.006,20,0.04,50,0.1\n")
    return runs, overlap, report(runs, folder / "report", "Two runs", "demo", overlap).parent


@pytest.mark.slow
def test_the_page_opens_with_four_questions_and_the_full_scale_s_command(
    two_runs: tuple[list[RunResults], Path, Path],
) -> None:
    html = (two_runs[2] / "index.html").read_text(encoding="utf-8")
    opening = html.partition("<nav")[0]
    for question in ("What was run?", "Did it get better, and by how much?", "Can it be trusted?", "What next?"):
        assert f"<b>{question}</b>" in opening
    assert "crosszero reproduce openr1/math-7b --scale full" in " ".join(re.sub(r"<[^>]*>", " ", opening).split())
    assert "These are demo-scale numbers" in html and len(html) < 700_000


@pytest.mark.slow
def test_each_run_and_their_recipe_have_a_headline(two_runs: tuple[list[RunResults], Path, Path]) -> None:
    html = (two_runs[2] / "index.html").read_text(encoding="utf-8")
    assert html.count('class="headline"') == 2 and html.count('class="headline recipe"') == 1
    assert "Over 2 training seeds, " in html


@pytest.mark.slow
def test_claims_and_settings_are_pages_of_their_own(two_runs: tuple[list[RunResults], Path, Path]) -> None:
    html, claims = ((two_runs[2] / f"{page}.html").read_text(encoding="utf-8") for page in ("index", "claims"))
    check_page(html)
    assert 'id="claims"' in claims and 'id="claims"' not in html
    assert 'href="claims.html#claims"' in html and 'href="settings.html#settings-0"' in html


@pytest.mark.slow
def test_every_figure_is_numbered_and_written_as_a_file(two_runs: tuple[list[RunResults], Path, Path]) -> None:
    html = (two_runs[2] / "index.html").read_text(encoding="utf-8")
    assert html.count("<figure id=") == html.count("<svg role=img") == 12  # no completion thinks
    assert all(f">Figure {number}.</a></b>" in html for number in range(1, 13))
    figures = {path.name for path in (two_runs[2] / "figures").iterdir()}
    assert {Path(name).suffix for name in figures} == {".svg", ".png"} and len(figures) == 24


@pytest.mark.slow
def test_every_table_is_written_in_four_forms(two_runs: tuple[list[RunResults], Path, Path]) -> None:
    _, _, output = two_runs
    written = {path.name for path in (output / "tables").iterdir()}
    names = {"accuracy", "differences", "completed", "verdicts", "patterns", "runs", "phases", "bad_cases", "claims"}
    names |= {"document_figures", "svg_drawings", "seeds", "turning_points", "overlap"}
    names |= {f"published-{name}" for name in published_tables.table_names()}
    names |= {f"accuracy-{name.replace('/', '-')}" for name in NAMES}
    assert written == {f"{name}.{form}" for name in names for form in ("csv", "md", "tex", "html")}
    assert json.loads((output / "provenance.json").read_text())["runs"] == NAMES


@pytest.mark.slow
@pytest.mark.long
def test_the_same_results_give_the_same_figures(two_runs: tuple[list[RunResults], Path, Path], tmp_path: Path) -> None:
    runs, overlap, first = two_runs
    second = report(runs, tmp_path, "Two runs", "demo", overlap).parent
    for name in ("figures/reward.svg", "figures/outcomes.svg", "figures/reward.png", "tables/accuracy.csv"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_full_scale_has_no_demo_note(results: Path, tmp_path: Path) -> None:
    html = report([load_results(results, NAMES[0])], tmp_path, "One run", "full").read_text(encoding="utf-8")
    assert "demo-scale" not in html and "scale: <b>full</b>" in html


@pytest.mark.slow
def test_overlap_of_training_data_is_on_the_page_and_escaped(two_runs: tuple[list[RunResults], Path, Path]) -> None:
    _, _, output = two_runs
    page = (output / "index.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert "3 (0.6 %)" in page and "20 (4.0 %)" in page and "50 (10.0 %)" in page
    assert "<b>train</b>" not in page
    assert "math500" in (output / "tables" / "overlap.md").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_tables_that_no_run_reproduces_are_folded(tmp_path: Path) -> None:
    name = "drgrpo/qwen2.5-math-7b/seed-0"
    write_run(tmp_path / "demo", name, 0.6, benchmarks=("words",), steps=(0, 20), problems=4, repeats=1)
    html = report([load_results(tmp_path / "demo", name)], tmp_path / "report", "title", "demo").read_text("utf-8")
    before = html[: html.index("What the published tables show")]
    assert before.count("<details") - before.count("</details>") == 1
    assert html.count("<details") == html.count("</details>")

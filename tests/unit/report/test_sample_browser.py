"""The sample browser, driven in a real browser: filters, a problem across checkpoints, mathematics, hostile text."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from report_runs import graded_row, make_run

from analysis.measures import reasoning_patterns
from analysis.pages import content_policy
from analysis.report import sample_browser
from tests import needs
from tests.browser_pipe import READY, Browser
from tests.hostile_text import TEXTS

pytestmark = [
    pytest.mark.slow,
    needs.chromium,
]
HOSTILE = TEXTS["end of the page"] + TEXTS["script"] + "\u202e\x00 \\frac{"
MATH = (
    r"Then \(\frac{1}{2} + \sqrt{x_1^2} \leq 3\) and $$\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}$$"
    r" cost $5 and \(\foo{1}\) and \(\constructor + \toString\),"
    r" \(\valueOf^\hasOwnProperty\), \(\hat{\__proto__}\)."
)


def rows() -> list[dict[str, object]]:
    graded = []
    for step in (0, 50, 100):
        for problem in range(40):
            for repeat in (0, 1):
                verdict = "correct" if problem * 5 < step * 2 + repeat else "wrong"
                text = f"That is too high at step {step}, problem {problem}.\n\\boxed{{{problem}}}"
                text = {0: HOSTILE, 1: MATH}.get(problem, text)
                more = {
                    "completion": text,
                    "completion_tokens": None if problem == 39 else 10 + problem,
                    "answer": str(problem),
                }
                graded.append(graded_row(step, f"p{problem:02}", repeat, verdict, **more))
    return graded


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    sample_browser.CHUNK, usual = 2000, sample_browser.CHUNK  # several parts
    try:
        assert sample_browser.write([make_run(rows())], reasoning_patterns.load_lists(), "A <title>", folder) == 240
    finally:
        sample_browser.CHUNK = usual
    assert len(list(folder.glob("chunk-*.js"))) > 3
    return folder / "index.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


def dom(browser: Browser, page: Path, fragment: str) -> str:
    """The page's document as the browser has it when it is ready."""
    browser.open(f"file://{page}#{fragment}")
    browser.evaluate(READY)
    return str(browser.evaluate("document.body.outerHTML")).partition("<noscript>")[0]


def edited(page: Path, old: str, new: str) -> str:
    """The page with another script, whose hash its policy names."""
    text = page.read_text(encoding="utf-8")
    script = text.partition("<script>")[2].partition("</script>")[0]
    other = script.replace(old, new)
    return text.replace(script, other).replace(content_policy.source(script), content_policy.source(other))


def count(body: str) -> str:
    match = re.search(r'id="count"[^>]*>([^<]*)<', body)
    assert match
    return match[1]


@pytest.mark.parametrize(
    ("fragment", "matches"),
    [
        ("", 240),
        ("verdict=wrong&step=100", sum(1 for r in rows() if r["verdict"] == "wrong" and r["step"] == 100)),
        ("verdict=not+correct", sum(1 for r in rows() if r["verdict"] != "correct")),
        ("min=12&max=13&step=0", 4),
        ("max=10", 6),  # and none whose length is not known
        ("text=PROBLEM+17.", 6),
        ("text=step+50&step=100", 0),
        ("benchmark=sums&run=recipe/run/seed-0", 240),
    ],
)
def test_filters(browser: Browser, page: Path, fragment: str, matches: int) -> None:
    body = dom(browser, page, fragment)
    assert count(body) == f"{matches} of 240 completions"
    listed = body.partition('<tbody id="list">')[2].partition("</tbody>")[0].count("<tr>")
    assert listed == min(matches, 50)


def test_the_same_problem_across_checkpoints_with_reflection_marked(browser: Browser, page: Path) -> None:
    body = dom(browser, page, "text=problem+17.&step=50&open=first")
    sides = re.findall(r"<section.*?</section>", body, re.DOTALL)
    assert [html.unescape(re.sub(r"<[^>]+>", "", s.partition("</h3>")[0])) for s in sides] == [
        "base model: wrong", "step 50: correct", "step 100: correct",
    ]  # fmt: skip
    assert all("<mark>too high</mark>" in side for side in sides)
    assert all(f"step {step}, problem 17" in side for step, side in zip((0, 50, 100), sides, strict=True))
    assert 'class="boxed"' in sides[0] and "side chosen" in sides[1]
    assert "runs/recipe/run/seed-0/graded/step-50/sums.parquet" in sides[1]
    assert "runs/recipe/run/seed-0/checkpoints/step-50" in sides[1] and "settings.html#settings-0" in sides[1]


def test_a_link_to_a_completion_leads_to_it_in_a_later_report_too(browser: Browser, page: Path, tmp_path: Path) -> None:
    wanted = quote(json.dumps(["recipe/run/seed-0", 50, "sums", "p17", 1], separators=(",", ":")))
    more = [graded_row(25, f"p{number:02}", repeat, "wrong") for number in range(40) for repeat in (0, 1)]
    later = tmp_path / "later"
    sample_browser.write([make_run([*rows(), *more])], reasoning_patterns.load_lists(), "t", later)
    for file in (page, later / "index.html"):
        body = dom(browser, file, f"open={wanted}")
        assert "sums: p17" in body and re.search(r"<button disabled=[^>]*>1</button>", body)
        (chosen,) = re.findall(r'<section class="side chosen">.*?</section>', body, re.DOTALL)
        assert "step 50, problem 17" in chosen
    gone = dom(browser, page, "open=" + quote('["recipe/run/seed-9",50,"sums","p17",1]'))
    assert 'id="detail" hidden' in gone and "the completion of this link is not here" in gone
    other = dom(browser, page, "run=none&step=999")
    assert "240 of 240" in other and "this report has no run none, which the link names" in other
    assert "this report has no step 999, which the link names" in other


def test_texts_that_made_room_for_others_are_read_again(browser: Browser, page: Path) -> None:
    few = page.with_name("few.html")
    few.write_text(edited(page, "OPEN = 4", "OPEN = 1"), encoding="utf-8")
    few.write_text(edited(few, "KEPT = 100", "KEPT = 1"), encoding="utf-8")
    body = dom(browser, few, "text=problem+5.&open=first")
    assert count(body) == "6 of 240 completions" and body.count("problem 5.") == 3
    for text, expected in (("problem 5.", 6), ("problem 3", 66), ("PROBLEM 5.", 6), ("no problem", 0)):
        assert (
            browser.evaluate(f"$('text').value = {json.dumps(text)}; filter().then(() => matches.length)") == expected
        )
    assert browser.evaluate("open(rows - 1).then(() => open(0)).then(() => texts.size)") == 1
    assert browser.evaluate("searchers.kept.size") == 1


def test_a_search_that_another_follows_at_once_finds_nothing(browser: Browser, page: Path) -> None:
    dom(browser, page, "")
    both = (
        "$('text').value = 'problem 5.'; const one = filter(); $('text').value = 'problem 17.'; const two = filter();"
    )
    ended = f"(async () => {{ {both} await one; await two; return $('count').textContent; }})()"
    assert browser.evaluate(ended) == "6 of 240 completions"
    assert browser.evaluate("matches.every((row) => INDEX.problems[INDEX.problem[row]] === 'p17')")


def test_long_unbroken_texts_leave_room_for_the_right_answer(browser: Browser, tmp_path: Path) -> None:
    long = "1234567890" * 10
    run = make_run([graded_row(0, "a-problem-of-many-words-0123456789", 0, "wrong", answer=long, gold=long)])
    sample_browser.write([run], reasoning_patterns.load_lists(), "t", tmp_path)
    page, ready = tmp_path / "index.html", 'document.body.dataset.ready = "yes";'
    measure = "const { scrollWidth, clientWidth } = document.querySelector('.scroll');"
    measure += "document.body.dataset.cut = scrollWidth - clientWidth;"
    page.write_text(edited(page, ready, measure + ready), encoding="utf-8")
    assert 'data-cut="0"' in dom(browser, page, "")


def test_mathematics_is_rendered_and_what_is_not_understood_is_shown_as_written(browser: Browser, page: Path) -> None:
    side = dom(browser, page, "text=cost&step=0&open=first").partition("<section")[2].partition("</section>")[0]
    assert "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>" in side
    assert "<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>" in side and "<mo>≤</mo>" in side
    assert side.count("<mtr>") == 2 and 'display="block"' in side
    assert "cost $5 and" in side and r"<code>\(\foo{1}\)</code>" in side
    assert r"<code>\(\constructor + \toString\)</code>" in side and "native code" not in side


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, page: Path) -> None:
    body = dom(browser, page, "min=10&max=10&open=first")
    side = body.partition("<section")[2].partition("</section>")[0]
    assert "&lt;script&gt;document.title='taken'" in side and "⟨U+202E⟩␀" in side
    assert "<img" not in body and body.count("<script") == 0


def test_whole_problems_are_left_out_where_there_are_too_many(tmp_path: Path) -> None:
    run = make_run(rows())
    assert (
        sample_browser.write([run], reasoning_patterns.load_lists(), "t", tmp_path, most=100) == 96
    )  # 16 problems of six
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "96 of 240 completions:" in text

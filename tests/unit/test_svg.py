"""Drawings: reading without trust, finding them in completions, rendering, the judge against known truth, problems."""

from __future__ import annotations

import io
import time
from xml.etree import ElementTree

import matplotlib.path
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from analysis.reference import DRAWINGS, read_csv
from grading import Item, grade
from grading.extraction import extract
from system.errors import ROOT
from tasks import registry
from tasks.problems import Problem
from tasks.svg import document_prompts, problems, render, safe_svg
from tasks.svg.judge import judge
from tasks.svg.regions import Picture, render_pixels
from tasks.svg.rules import RULES
from tests import budgets
from tests.unit import svg_confusion, svg_drawings
from tests.user_errors import refused

TASK = registry.get("svg")
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">{}</svg>'
RED = SVG.format('<circle cx="50" cy="50" r="40" fill="red"/>')
USE = '<use href="#g{}"/>'
USES = "".join(f'<g id="g{n}">{2 * USE.format(n + 1)}</g>' for n in range(30))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('<svg><!DOCTYPE svg [<!ENTITY a "b">]></svg>', "a document type"),
        ("<svg>&lol;</svg>", "no XML"),
        ("<svg><rect></svg>", "no XML"),
        ("<html></html>", "no XML"),
        ("<svg>" + " " * safe_svg.MOST_CHARACTERS + "</svg>", "more than 100,000 characters"),
        ("<svg>" + "<g>" * 50 + "</g>" * 50 + "</svg>", "inside each other"),
        ("<svg>" + "<g/>" * safe_svg.MOST_ELEMENTS + "</svg>", "more than 5,000 elements"),
        (SVG.format(USES + '<g id="g30"><path d="M0 0h9"/></g>'), "references that draw more than 20,000 elements"),
        (SVG.format('<g id="a"><use href="#a"/></g>'), "round in circles"),
    ],
)
def test_what_is_refused_before_it_is_drawn(text: str, why: str) -> None:
    with pytest.raises(safe_svg.Unreadable, match=why):
        safe_svg.read(text)
    assert TASK.verify(text, "", {"drawing": {}}) == "format_error"
    assert render.png_within_limits(text) is None


def test_nothing_outside_is_referred_to_and_nothing_runs() -> None:
    text = SVG.format(
        '<script>alert(1)</script><image href="file:///etc/passwd"/><foreignObject/><use href="http://a/b#c"/>'
        '<a href="javascript:alert(1)"><rect width="9" height="9" onload="alert(1)" fill="url(http://a/b)"/></a>'
        "<style>@import 'http://a';</style><style>rect { stroke: url( 'http://a' ) }</style>"
        '<style>rect { fill: red }</style><feImage href="data:x"/><animate attributeName="x"/>'
        '<rect id="r" style="fill:url( &quot;file:///x&quot;)"/><rect fill="url(#g)"/><use xlink:href="#r"/>'
    )
    kept = safe_svg.drawing(safe_svg.read(text), 64, text="drawn")
    for word in (
        "script",
        "image",
        "foreign",
        "http://a",
        "file:",
        "javascript",
        "onload",
        "import",
        "Image",
        "animate",
    ):
        assert word not in kept, word
    assert "fill: red" in kept and 'fill="url(#g)"' in kept and 'href="#r"' in kept


@given(st.text(alphabet='<>/svg="#&;url()%-.0123456789 \nrectM', max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        root = safe_svg.read(f"<svg>{text}</svg>")
        safe_svg.drawing(root, 64, text="boxes")
    except safe_svg.Unreadable:
        return
    assert root.tag == "svg"


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (f"Here:\n```svg\n{RED}\n```\nIt has a `<svg>` tag.", RED),
        (f"<think><svg>a</svg></think>First <svg>b</svg>, then {RED}", RED),
        ("an <svg> element: <svg width='1'><svg/><g/></svg>", "<svg width='1'><svg/><g/></svg>"),
        ("<svg ><svg>a</svg></svg>", "<svg ><svg>a</svg></svg>"),
        ("<svg width='1'><g>", None),
        ("</svg> <svgs></svg>", None),
    ],
)
def test_the_last_complete_element_is_the_answer(completion: str, answer: str | None) -> None:
    assert extract(completion, "svg-element").answer == answer


@pytest.mark.slow
def test_drawings_by_hand() -> None:
    counts, mistaken = svg_confusion.confusion(svg_confusion.by_hand())
    assert counts.total() >= 60 and not mistaken, "\n".join(mistaken)


@pytest.mark.slow
@pytest.mark.long
def test_drawings_by_template() -> None:
    counts, mistaken = svg_confusion.confusion(svg_confusion.by_template(share=0.2))
    assert counts.total() == 40 and not mistaken, "\n".join(mistaken)


@pytest.mark.long
@pytest.mark.slow
def test_two_hundred_drawings_by_template() -> None:
    counts, mistaken = svg_confusion.confusion(svg_confusion.by_template())
    assert counts.total() == 200 and not mistaken, "\n".join(mistaken)


@pytest.mark.slow
def test_every_rule_judges_every_drawing() -> None:
    drawings = {str(case.drawing): case.drawing for case in svg_confusion.by_hand()}
    for case in budgets.some(svg_confusion.by_hand(), 0.15):
        picture = Picture(render_pixels(safe_svg.drawing(safe_svg.read(case.svg), 256, text="none")))
        accepted = [name for name, drawing in drawings.items() if judged(picture, drawing)]
        assert len(accepted) <= 3, (case.what, accepted)


def judged(picture: Picture, drawing: dict) -> bool:
    return RULES[drawing["rule"]](picture, **{key: value for key, value in drawing.items() if key != "rule"})


def test_every_rule_has_accepted_and_refused_drawings() -> None:
    seen = {(str(case.drawing), case.truth == "right") for case in svg_confusion.by_hand()}
    missing = [
        one.name for one in document_prompts.JUDGED for right in (True, False) if (str(one.drawing), right) not in seen
    ]
    assert not missing


@pytest.mark.parametrize("shape", svg_drawings.CORNERS)
def test_resvg_fills_what_matplotlib_finds_inside(shape: str) -> None:
    corners = np.array(svg_drawings.vertices(shape, 40)) + 50
    points = " ".join(f"{x:.3f},{y:.3f}" for x, y in corners)
    rgb = render_pixels(safe_svg.drawing(safe_svg.read(SVG.format(f'<polygon points="{points}"/>')), 200, text="none"))
    y, x = np.indices(rgb.shape[:2]) + 0.5
    inside = matplotlib.path.Path(corners * 2).contains_points(np.stack([x.ravel(), y.ravel()], 1)).reshape(x.shape)
    assert (inside ^ (rgb[..., 0] < 128)).mean() < 0.005
    (part,) = Picture(rgb).parts
    assert abs(part.area / inside.sum() - 1) < 0.04


def test_a_picture_is_pixels_alone_made_in_a_process_with_limits() -> None:
    drawn = TASK.picture(RED, Problem("", "svg", "", "", {}))
    assert drawn is not None and drawn.isascii()
    names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()}
    assert names == {"svg", "rect", "image"}
    with Image.open(io.BytesIO(render.png_within_limits(RED) or b"")) as image:
        assert image.size == (render.SHOWN, render.SHOWN)
    assert TASK.picture("no drawing", Problem("", "svg", "", "", {})) is None


@pytest.mark.slow
def test_a_costly_drawing_ends_in_time() -> None:
    patterns = "".join(
        f'<pattern id="p{n}" width="1%" height="1%"><rect width="9" height="9" fill="url(#p{n + 1})"/></pattern>'
        for n in range(30)
    )
    blur = '<filter id="f"><feTurbulence numOctaves="9999999" baseFrequency="9"/></filter>'
    text = SVG.format(f'{patterns}{blur}<rect width="90" height="90" fill="url(#p0)" filter="url(#f)"/>')
    start = time.monotonic()
    render.png_within_limits(text)
    assert time.monotonic() - start < 20 * render.SECONDS


@pytest.mark.slow
def test_completions_are_graded_by_the_judge_in_processes_that_can_be_killed() -> None:
    meta = {
        "drawing": {
            "rule": "figures",
            "figures": [{"shape": "circle", "colour": "red", "count": 1}],
            "layout": "middle",
        }
    }
    completions = [RED, RED.replace("red", "blue"), "I cannot draw.", "<svg><rect></svg>", RED[:-3]]
    graded = grade([Item("svg", "x", text, meta=meta) for text in completions], workers=1)
    assert [one.verdict for one in graded] == ["correct", "wrong", "no_answer", "format_error", "no_answer"]
    assert graded[0].grader.startswith("svg verifier (resvg-py ") and graded[0].answer == RED
    (unusable,) = grade([Item("svg", "x", RED, meta={"drawing": {"rule": "none"}})], workers=1)
    assert unusable.verdict == "ungradable"


def test_problems() -> None:
    train, test = problems.generate(200, "train", 0), problems.generate(150, "test", 0)
    assert test == problems.generate(150, "test", 0)
    assert not {one.question for one in train} & {one.question for one in test}
    assert len({one.question for one in [*train, *test]}) == 350
    assert {one.meta["level"] for one in test} == set(problems.KINDS)
    for bad, code in (
        ({"split": "dev"}, "unknown-name"), ({"kinds": ["two"]}, "unknown-name"),
        ({"kinds": ["one"]}, "too-few-problems"), ({"kinds": ["document"]}, "fixed-set-of-problems"),
    ):  # fmt: skip
        with refused(code):
            problems.generate(**{"rows": 100, "split": "test", "seed": 0, **bad})


def test_the_documents_prompts_are_those_of_the_table() -> None:
    table = read_csv(DRAWINGS, text=True)
    assert [one.printed for one in document_prompts.PROMPTS] == table["prompt"].tolist()
    generated = problems.generate(len(document_prompts.JUDGED), "test", 0, kinds=["document"])
    assert [one.meta["printed"] for one in generated] == [one.printed for one in document_prompts.JUDGED]
    assert all((one.drawing is None) == bool(one.unjudged) for one in document_prompts.PROMPTS)
    files = list((ROOT.parent / "shared" / "seeds").glob("002_*.txt"))
    if not files:
        pytest.skip("the document is not in ../shared/seeds")
    lines = files[0].read_text(encoding="utf-8").split("\n")
    for one, line in zip(document_prompts.PROMPTS, pd.to_numeric(table["line"]), strict=True):
        assert lines[line - 1].startswith(one.wording)


@pytest.mark.slow
def test_a_drawing_that_shows_nothing_is_wrong_by_every_rule() -> None:
    for one in document_prompts.JUDGED:
        for text in (
            SVG.format(""),
            SVG.format('<text y="50">x</text>'),
            SVG.format('<rect width="100" height="100"/>'),
        ):
            assert judge("", text, {"drawing": one.drawing}) == "wrong", one.name

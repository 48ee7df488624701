"""The SVG that a model wrote, read without trust: limits first, then only what draws and refers to nothing outside.

Kept are shapes, paths, text, gradients, patterns, clips, masks, filters, style sheets and references such as #a.
Everything else is left out, so that it is not drawn: scripts, images, foreign objects, animations, links to anywhere.
"""

from __future__ import annotations

import copy
import re
from typing import Literal
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

MOST_CHARACTERS = 100_000
MOST_ELEMENTS = 5_000  # as written
MOST_DRAWN = 20_000  # with what each <use> repeats
DEEPEST = 40  # elements inside each other, and references to references
UNKNOWN = ("rebeccapurple", "#663399")  # the one named colour that resvg does not know
LONGEST = 20.0  # the longer side of the canvas over the shorter
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
DRAWN = (
    "svg", "g", "defs", "symbol", "use", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "a",
    "text", "tspan", "style", "linearGradient", "radialGradient", "stop", "clipPath", "mask", "pattern", "marker",
    "filter",
)  # fmt: skip
_OF_TEXT = ("font-size", "text-anchor", "dominant-baseline", "fill")
_LENGTH = re.compile(r"\s*\+?(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(px|pt|pc|mm|cm|in)?\s*")
_PIXELS = {None: 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}
_OUTSIDE = re.compile(r"url\(\s*+[\"']?+\s*+(?!#)|@|\\|image\s*+\(|image-set", re.IGNORECASE)
_BACKGROUND = re.compile(r"(?:^|;)\s*background(?:-color)?\s*:\s*([#\w(),.%\s]{1,60}?)\s*(?:;|$)", re.IGNORECASE)


class Unreadable(ValueError):
    """A text that is no drawing that can be judged; the message says why, in a few words."""


def read(text: str) -> Element:
    """The drawing of a text, without name spaces and with nothing in it that is not drawn.

    Args:
        text: from `<svg` to `</svg>`; the name spaces may be missing, as on a web page.

    Raises:
        Unreadable: it is no such drawing, or beyond the limits above.
    """
    if len(text) > MOST_CHARACTERS:
        raise Unreadable(f"more than {MOST_CHARACTERS:,} characters")
    if "<!DOCTYPE" in text or "<!ENTITY" in text or "<?" in text:
        raise Unreadable("a document type, an entity or a processing instruction")
    try:
        root = ElementTree.fromstring(_with_name_spaces(text.strip().replace(*UNKNOWN)))
    except (ElementTree.ParseError, ValueError) as error:
        raise Unreadable(f"no XML ({error})") from None
    if _local_name(root.tag) != "svg":
        raise Unreadable("no <svg>")
    _check_size(root)
    _remove_undrawn(root)
    _check_uses(root)
    return root


def _with_name_spaces(text: str) -> str:
    """The text with the name spaces that its first element lacks."""
    head, closed, rest = text.partition(">")
    if not head.startswith("<svg"):
        raise ValueError("it does not begin with <svg")
    missing = "" if "xmlns=" in head else f' xmlns="{SVG}"'
    if "xlink:" in text and "xmlns:xlink" not in head:
        missing += f' xmlns:xlink="{XLINK}"'
    return f"<svg{missing}{head[4:]}{closed}{rest}"


def _local_name(name: object) -> str:
    """The name without its name space; comments have none."""
    return name.rpartition("}")[2] if isinstance(name, str) else ""


def _check_size(root: Element) -> None:
    level, count, depth = [root], 0, 0
    while level:
        count, depth = count + len(level), depth + 1
        if count > MOST_ELEMENTS or depth > DEEPEST:
            raise Unreadable(f"more than {MOST_ELEMENTS:,} elements, or {DEEPEST} inside each other")
        level = [child for element in level for child in element]


def _remove_undrawn(element: Element) -> None:
    """Leave out what is not drawn and what refers to anything outside; drop the name spaces."""
    element.tag = _local_name(element.tag)
    kept = {_local_name(name): value for name, value in element.attrib.items()}
    element.attrib.clear()
    element.attrib.update({name: value for name, value in kept.items() if _is_harmless(name, value)})
    for child in list(element):
        name = _local_name(child.tag)
        if (
            (name not in DRAWN and not name.startswith("fe"))
            or name == "feImage"
            or (name == "style" and _OUTSIDE.search("".join(child.itertext())))
        ):
            element.remove(child)
        else:
            _remove_undrawn(child)


def _is_harmless(name: str, value: str) -> bool:
    if name == "href":
        return value.startswith("#")
    return not name.lower().startswith("on") and not _OUTSIDE.search(value)


def _check_uses(root: Element) -> None:
    """Refuse a <use> of itself, and drawings that references make larger than MOST_DRAWN."""
    by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
    known: dict[Element, int] = {}

    def drawn(element: Element, depth: int) -> int:
        if element in known:
            return known[element]
        if depth > 2 * DEEPEST:
            raise Unreadable("references that go round in circles, or are too deep")
        total = 1 + sum(drawn(child, depth + 1) for child in element)
        target = by_id.get(element.get("href", "")[1:]) if element.tag == "use" else None
        if target is not None:
            total += drawn(target, depth + 1)
        if total > MOST_DRAWN:
            raise Unreadable(f"references that draw more than {MOST_DRAWN:,} elements")
        known[element] = total
        return total

    drawn(root, 0)


def canvas_size(root: Element) -> tuple[float, float]:
    """Width and height in pixels; Unreadable if they make no canvas."""
    width, height = _read_length(root.get("width")), _read_length(root.get("height"))
    box = view_box(root)
    if box:
        width, height = (
            width or (height * box[2] / box[3] if height else box[2]),
            height or (width * box[3] / box[2] if width else box[3]),
        )
    width, height = width or 300.0, height or 150.0  # as browsers do
    if not 1 / LONGEST <= width / height <= LONGEST:
        raise Unreadable(f"a canvas of {width:g} by {height:g}")
    return width, height


def view_box(root: Element) -> tuple[float, float, float, float] | None:
    """The viewBox, if there is one; Unreadable if it is empty or too large."""
    numbers = re.findall(r"[-+]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})", root.get("viewBox", "")[:200])
    if len(numbers) != 4:
        return None
    x, y, width, height = map(float, numbers)
    if width <= 0 or height <= 0:
        raise Unreadable("an empty viewBox")
    return x, y, width, height


def _read_length(text: str | None) -> float | None:
    """A length in pixels; None if it is missing, a percentage or nothing."""
    match = _LENGTH.fullmatch(text or "")
    return float(match[1]) * _PIXELS[match[2]] or None if match else None


def drawing(root: Element, side: int, *, text: Literal["drawn", "none", "boxes"]) -> str:
    """The drawing as SVG, with as many pixels as a square of that side.

    Args:
        root: what `read` returned.
        side: of the square, in pixels.
        text: whether letters, whose form depends on a machine's fonts, are drawn, left out, or boxes of their size.
    """
    drawn = copy.deepcopy(root)
    width, height = canvas_size(root)
    box = view_box(root) or (0.0, 0.0, width, height)
    scale = side / (width * height) ** 0.5
    if text != "drawn":
        _replace_text(drawn, {}, boxes=text == "boxes")
    drawn.attrib |= {
        "xmlns": SVG,
        "width": f"{max(width * scale, 1):g}",
        "height": f"{max(height * scale, 1):g}",
        "viewBox": " ".join(f"{number:g}" for number in box),
    }
    if background := _BACKGROUND.search(root.get("style", "")):
        x, y, wide, high = (f"{number:g}" for number in box)
        drawn.insert(0, Element("rect", {"x": x, "y": y, "width": wide, "height": high, "fill": background[1]}))
    return ElementTree.tostring(drawn, encoding="unicode")


def _replace_text(parent: Element, inherited: dict[str, str], *, boxes: bool) -> None:
    """Take the texts out of an element, or put a box in place of each."""
    style = {**inherited, **{name: parent.get(name, "") for name in _OF_TEXT if parent.get(name)}}
    for name, value in re.findall(r"([\w-]{1,40})\s*:\s*([^;:]{1,80})", parent.get("style", "")):
        if name in _OF_TEXT:
            style[name] = value.strip()
    for index, child in enumerate(list(parent)):
        if child.tag != "text":
            _replace_text(child, style, boxes=boxes)
            continue
        parent[index] = _text_box(child, style) if boxes else Element("g")


def _text_box(text: Element, inherited: dict[str, str]) -> Element:
    """A box of about the size of a text, at its place and in its colour."""
    style = {**inherited, **{name: text.get(name, "") for name in _OF_TEXT if text.get(name)}}
    for name, value in re.findall(r"([\w-]{1,40})\s*:\s*([^;:]{1,80})", text.get("style", "")):
        style[name] = value.strip()
    size = _read_length(style.get("font-size")) or 16.0
    label = " ".join("".join(text.itertext()).split())
    width, height = 0.56 * size * len(label), 0.72 * size
    x, y = _read_number(text.get("x")), _read_number(text.get("y"))
    x -= {"middle": width / 2, "end": width}.get(style.get("text-anchor", ""), 0.0)
    y -= height / 2 if style.get("dominant-baseline") in ("middle", "central") else height
    kept = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
    kept |= {
        name: value for name, value in (("fill", style.get("fill")), ("transform", text.get("transform"))) if value
    }
    return Element("rect", kept)


def _read_number(text: str | None) -> float:
    """A coordinate; 0 where there is none."""
    match = re.fullmatch(r"\s*([-+]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))(?:px)?\s*", text or "")
    return float(match[1]) if match else 0.0

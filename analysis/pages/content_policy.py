"""The content security policy of every page: only its own style sheet and script, by their hashes, and embedded images.

The hashes are made from our files, never from the finished page, so that markup which slipped into a page stays dead.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

from markupsafe import Markup

STYLE = re.compile(r' style="([^"]*)"')
SVG_STYLE = re.compile(r"<defs>\s*<style[^<>]*>\*\{([^<>{}]*)\}</style>\s*</defs>")


def source(text: str) -> str:
    """The hash of an inline style sheet or script, as a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(
    styles: Sequence[str], scripts: Sequence[str] = (), *, loads: bool = True, asks_server: bool = False
) -> Markup:
    """The element for the head of a page.

    Args:
        styles: the content of each `<style>`.
        scripts: the content of each `<script>`.
        loads: whether a script may load others and start workers, as the sample browser's does.
        asks_server: whether a script may ask the server that the page came from.
    """
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "img-src data:"]
    rules.append(f"style-src {' '.join(map(source, styles))}")
    if scripts:
        named = [*map(source, scripts), *(["'strict-dynamic'"] if loads else [])]
        rules += [f"script-src {' '.join(named)}", *(["worker-src blob:"] if loads else [])]
    if asks_server:
        rules.append("connect-src 'self'")
    return Markup(f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">')


def _attributes(declarations: str) -> str:
    pairs = (declaration.split(":", 1) for declaration in declarations.split(";") if declaration.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)


def without_styles(svg: str) -> str:
    """An SVG of Matplotlib with presentation attributes in place of its styles, which the policy forbids.

    Raises:
        ValueError: it has a style sheet that is not Matplotlib's one rule for all elements.
    """
    everywhere = SVG_STYLE.search(svg)
    svg = SVG_STYLE.sub("", svg)
    if "<style" in svg:
        raise ValueError("the figure has a style sheet that cannot become attributes")
    if everywhere:
        svg = svg.replace("<svg", f"<svg{_attributes(everywhere[1])}", 1)
    return re.sub(r"<\w[^<>]*>", lambda tag: STYLE.sub(lambda match: _attributes(match[1]), tag[0]), svg)

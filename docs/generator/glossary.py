"""Anchors in the glossary, and a link from the first use of its words on each page."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "glossary.md"
ROW = re.compile(r"^\| \*\*([^*]+)\*\* \| (.+) \|$", re.MULTILINE)
EVERYDAY = {
    "run", "sample", "scale", "stage", "study", "task", "group", "control", "repeat", "claim", "judge", "power", "gate",
}  # fmt: skip
# What is left alone: code, headings, links and images, HTML, the first lines of admonitions.
SKIPPED = re.compile(
    r"^(?:```|~~~).*?^(?:```|~~~)|^#.*?$|`[^`]*`|!?\[[^][]*\]\([^)]*\)|<[^>]*>|^(?:\?\?\?|!!!).*?$",
    re.MULTILINE | re.DOTALL,
)


def meanings() -> dict[str, str]:
    """The glossary's words with their meanings, as the page has them."""
    return dict(ROW.findall(PAGE.read_text(encoding="utf-8")))


def anchor(word: str) -> str:
    """The anchor of a word: `pass@k` has `pass-k`."""
    return re.sub(r"\W+", "-", word)


def with_anchors(markdown: str) -> str:
    """The glossary, each word with an anchor."""
    return ROW.sub(lambda row: f'| <a id="{anchor(row[1])}"></a>**{row[1]}** | {row[2]} |', markdown)


def with_links(markdown: str, glossary: str) -> str:
    """A page whose first use of each word leads to the glossary.

    Words that are mostly used in their everyday sense, such as the verb "run", are linked nowhere.

    Args:
        markdown: of the page.
        glossary: address of the glossary as that page sees it.
    """
    taken: list[tuple[int, int, str]] = []
    free = SKIPPED.sub(lambda part: "\0" * len(part[0]), markdown)
    for word, meaning in sorted(meanings().items(), key=lambda entry: -len(entry[0])):
        use = re.search(rf"(?<![\w@/.-]){re.escape(word)}s?(?![\w@/-])", free, re.IGNORECASE)
        if word in EVERYDAY or use is None:
            continue
        title = meaning.replace('"', "'").replace("`", "")
        taken.append((use.start(), use.end(), f'[{use[0]}]({glossary}#{anchor(word)} "{title}"){{.term}}'))
        free = f"{free[: use.start()]}{chr(0) * len(use[0])}{free[use.end() :]}"
    for start, end, link in sorted(taken, reverse=True):
        markdown = f"{markdown[:start]}{link}{markdown[end:]}"
    return markdown

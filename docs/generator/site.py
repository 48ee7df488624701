"""What MkDocs does for this site besides its own: the generated reference, and files of the project that a page links.

A page in docs/ links them as on disk (`../../recipes/models.yaml`), so that the link works in a checkout, too. Markdown
becomes a page, any other file a text file, both below `project/`; a folder is its README, else only its name.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from docs.generator import glossary

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REFERENCE = ROOT / "work" / "docs" / "reference"  # docs.generator.reference wrote it
LINK = re.compile(r"(?<!`)\[([^][]*(?:\[[^]]*\][^][]*)*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")
COMMANDS = re.compile(
    r"^```\n(?=(?:crosszero|snakemake|make|python3?(?:\.\d+)?|git) )(.*?)^```$", re.MULTILINE | re.DOTALL
)
CODE = re.compile(r"<code.*?</code>", re.DOTALL)
OPTION = re.compile(r"(?<=[\s>])--\w[\w-]*")  # of a command
log = logging.getLogger("mkdocs.hooks.site")  # a warning ends a strict build


def origin(page: str) -> Path:
    """The file on disk that a page of the site is made of.

    Args:
        page: path below docs/, or `project/` and the path below the project's folder.
    """
    if page.startswith("project/"):
        return ROOT / page.removeprefix("project/")
    written = REFERENCE / page.removeprefix("reference/")
    return written if page.startswith("reference/") and written.is_file() else DOCS / page


def target(page: str, link: str) -> Path | None:
    """The file that a link names; None for a folder without README."""
    path = Path(os.path.normpath(DOCS / posixpath.dirname(page) / link))
    if page.startswith("project/"):
        path = Path(os.path.normpath(origin(page).parent / link))
    if path.is_dir():
        path = path / "README.md"
        return path if path.is_file() else None
    if not path.is_file() and DOCS not in path.parents:
        log.warning("%s links %s, which does not exist", page, link)
    return path


def uri(path: Path) -> str:
    """Where a file is in the site, as MkDocs names its sources."""
    if DOCS in path.parents:
        return path.relative_to(DOCS).as_posix()
    return f"project/{path.relative_to(ROOT).as_posix()}" + ("" if path.suffix == ".md" else ".txt")


def linked(page: str, text: str) -> Iterator[Path]:
    """Files outside docs/ that a page links."""
    for _, link, _ in LINK.findall(text):
        path = target(page, link)
        if path and path.is_file() and DOCS not in path.parents:
            yield path


def on_files(files: Files, config: Any) -> Files:
    """Add the reference, every linked file, and what those link in turn."""
    for written in sorted(REFERENCE.glob("*.md")):
        files.append(File.generated(config, f"reference/{written.name}", content=written.read_text(encoding="utf-8")))
    waiting = [file.src_uri for file in files.documentation_pages()]
    while waiting:
        page = waiting.pop()
        for path in linked(page, origin(page).read_text(encoding="utf-8")):
            if files.get_file_from_path(uri(path)) is None:
                content = path.read_bytes() if path.suffix != ".md" else path.read_text(encoding="utf-8")
                files.append(File.generated(config, uri(path), content=content))
                if path.suffix == ".md":
                    waiting.append(uri(path))
    return files


def as_shell(block: re.Match[str]) -> str:
    """A block of commands, in the language of the shell; what lines up its comments is left out, since lines wrap."""
    return f"```sh\n{re.sub(r' {2,}# ', '  # ', block[1])}```"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links at the files of the site, words of the glossary at the glossary, and mark commands as such."""

    def point(match: re.Match[str]) -> str:
        path = target(page.file.src_uri, match[2])
        if path is None:
            return match[1]
        return f"[{match[1]}]({posixpath.relpath(uri(path), posixpath.dirname(page.file.src_uri))}{match[3] or ''})"

    address = page.file.src_uri
    markdown = COMMANDS.sub(as_shell, LINK.sub(point, markdown))
    if address == "glossary.md":
        return glossary.with_anchors(markdown)
    if address.startswith(("project/", "reference/")):
        return markdown
    return glossary.with_links(markdown, posixpath.relpath("glossary.md", posixpath.dirname(address)))


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Keep each option of a command on one line: a browser may break `--limit` after its hyphens."""
    return CODE.sub(lambda code: OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)

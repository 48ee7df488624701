"""The documentation's site: built without network, each link and anchor followed, nothing loaded from elsewhere."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from docs.generator import glossary
from docs.generator.reference import write
from envs.build import python
from tests import needs

PYTHON = python("docs")
KINDS = {"tutorials", "how-to", "reference", "explanation", "results"}


def test_every_page_has_a_kind() -> None:
    pages = {page.relative_to(ROOT / "docs").parts for page in (ROOT / "docs").rglob("*.md")}
    assert {parts[0] for parts in pages} - KINDS <= {"index.md", "glossary.md"}


@pytest.mark.slow
@needs.environments("docs")
def test_the_site_is_built_without_warnings_and_asks_the_network_for_nothing(tmp_path: Path) -> None:
    write(ROOT / "work" / "docs" / "reference")
    options = ["--config-file", ROOT / "mkdocs.yml", "--site-dir", tmp_path]
    command = [PYTHON, "-m", "mkdocs", "build", "--strict", "--quiet", *options]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    text = "".join(page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html"))
    styles = "".join(style.read_text(encoding="utf-8") for style in tmp_path.rglob("*.css"))
    assert re.findall(r'\ssrc="?https?:[^"\s>]+', text) == re.findall(r"url\(\"?https?:[^)]+", styles) == []
    assert re.findall(r'<link[^>]*href="?https?:[^>]*', text) == []
    first = (tmp_path / "explanation" / "comparisons.html").read_text(encoding="utf-8")
    assert first.count('href="../glossary.html#checkpoint"') == 1
    assert '<span class="option">--difference</span>' in first
    assert 'id="pass-k"' in (tmp_path / "glossary.html").read_text(encoding="utf-8")
    assert "grader" in (tmp_path / "search" / "search_index.json").read_text(encoding="utf-8")


def test_a_link_that_leads_nowhere_is_a_warning() -> None:
    """A strict build ends with a warning; these are those that MkDocs leaves out by itself."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    kinds = ("omitted_files", "absolute_links", "unrecognized_links", "anchors")
    assert all(f"{kind}: warn" in settings for kind in kinds)


def test_a_link_that_shows_a_file_name_shows_that_of_its_target() -> None:
    """A page that was renamed would keep its old name there."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "studies").rglob("*.md")]
    links = [link for page in pages for link in re.findall(r"\[([^][]*\.md)\]\(([^)#]+)", page.read_text("utf-8"))]
    assert links and [link for link in links if Path(link[0]).name != Path(link[1]).name] == []


def test_the_first_use_of_a_word_is_linked_and_code_is_left_alone() -> None:
    text = "# Recipes\n\n`recipe`, [recipe](x.md), recipe-like, Recipe, recipes; run it, pass@k.\n\n```\nverdict\n```\n"
    linked = glossary.with_links(text, "../glossary.md")
    assert linked.count("glossary.md#recipe ") == 1 and ' [Recipe](../glossary.md#recipe "' in linked
    assert "glossary.md#pass-k" in linked and "#verdict" not in linked and "#run " not in linked
    meanings = glossary.meanings()
    assert len(meanings) > 35 and meanings.keys() >= glossary.EVERYDAY
    assert list(meanings) == sorted(meanings, key=str.lower)
    assert len({glossary.anchor(word) for word in meanings}) == len(meanings)


@pytest.mark.parametrize("page", [page for page in sorted((ROOT / "docs").rglob("*.md")) if ">>> " in page.read_text()])
def test_formulas_of_a_page_give_what_it_says(page: Path) -> None:
    tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried.attempted > 5 and not tried.failed
